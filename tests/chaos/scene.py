"""Scenes of chaos, from a seed: who is asked, what goes wrong with whom, and how the orchestrator's
model lies about it.

Every healthy agent's answer holds a value of its own, every failure's raw text a mark of its own,
and every failed agent has a value it never delivered: whoever judges the reply needs to know
nothing but these.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

AGENTS: Mapping[str, str] = {
    "shop": "coffee",
    "rewards": "points",
    "support": "password",
    "play": "puzzles",
    "restaurants": "dinner",
    "offer_details": "coupons",
    "ereceipts": "invoices",
    "retailer_context": "parking",
}
"""Agent id -> what it is asked about."""
SPANISH: Mapping[str, str] = {
    "shop": "café",
    "rewards": "puntos",
    "support": "contraseña",
    "play": "rompecabezas",
    "restaurants": "cena",
    "offer_details": "cupones",
    "ereceipts": "facturas",
    "retailer_context": "aparcamiento",
}
HEALTHY = ("well", "partial", "part_of_data")
FAULTS = (
    "raise",
    "hang",
    "empty",
    "refuses",
    "no_data",
    "foreign_principal",
    "tool_raises",
    "cancelled",
    "over_budget",
    "unsure",
)
COMPOSERS = (
    "honest",
    "topical",
    "stitches",
    "claims",
    "claims_in_words",
    "claims_while_denying",
    "claims_namelessly",
    "owns_and_claims",
    "silent",
    "retells",
    "waffles",
    "omits",
    "omits_all",
    "leaks",
    "leaks_ids",
    "instructs",
    "nothing",
    "refuses",
    "triumphs",
    "blames_another",
    "calls_again",
    "calls_forever",
)
SECOND = ("the same", "honest", "leaks", "nothing", "raises", "hangs")
"""What a composer does when it is asked a second time."""
QUERIES = ("verbatim", "short", "translated")
"""How a model words the part of a call: in the user's words, in one of them, in another language."""
SYLLABLES = ("ve", "lo", "mar", "qui", "dra", "pel", "sto", "nim", "zor", "hax")


@dataclass(frozen=True)
class Fate:
    """What becomes of one agent in one scene."""

    agent: str
    kind: str
    value: str
    """In the answer of a healthy agent; of any other it was never delivered, and is a number."""
    raw: str
    """The raw text of what goes wrong."""
    mark: str
    """The part of `raw` that stands nowhere else."""

    @property
    def label(self) -> str:
        return self.agent.replace("_", " ")

    @property
    def topic(self) -> str:
        return AGENTS.get(self.agent, self.agent)

    @property
    def said_raw(self) -> bool:
        """Its raw text came up in the turn, provided it ran."""
        return self.kind not in (
            "well",
            "partial",
            "part_of_data",
            "hang",
            "empty",
            "foreign_principal",
        )

    @property
    def healthy(self) -> bool:
        return self.kind in HEALTHY

    @property
    def answer(self) -> str:
        """What it says when it can."""
        if self.value[0].isalpha():
            return f"On your {self.topic}, {self.value}."
        return f"Your {self.topic} came to {self.value} today."


@dataclass(frozen=True)
class Scene:
    """One turn to come."""

    seed: int
    fates: tuple[Fate, ...]
    """In the order they are asked."""
    cap: int
    composer: str
    second: str
    streamed: bool
    uncalled: tuple[Fate, ...] = ()
    """Parts of the message that the model makes no call for, told again or not."""
    count: int | None = 0
    """Parts that the model says it counted; 0 stands for as many as it calls for, None for no count."""
    language: str = "en"
    queries: str = "verbatim"

    @property
    def owed(self) -> int:
        """How many parts were counted and not called for; no message has more parts than it has."""
        size = len(self.fates) + len(self.uncalled)
        return max(0, min(self.count or 0, size) - len(self.fates))

    @property
    def message(self) -> str:
        return (
            f"{'¿' * self.spanish}{self.joint.join(map(self.part, (*self.fates, *self.uncalled)))}?"
        )

    @property
    def spanish(self) -> bool:
        return self.language == "es"

    @property
    def joint(self) -> str:
        return " y " if self.spanish else " and "

    def part(self, fate: Fate) -> str:
        """Its part of the message, as the user words it."""
        return (
            f"qué hay de mis {SPANISH[fate.agent]}"
            if self.spanish
            else f"what about my {fate.topic}"
        )

    def query(self, fate: Fate) -> str:
        """Its part as the model words it."""
        if self.queries == "translated":
            return f"search {fate.topic}" if self.spanish else f"busca {SPANISH[fate.agent]}"
        return self.word(fate) if self.queries == "short" else self.part(fate)

    def word(self, fate: Fate) -> str:
        """What its part is about, in the user's language."""
        return SPANISH[fate.agent] if self.spanish else fate.topic

    @property
    def ran(self) -> tuple[Fate, ...]:
        return self.fates[: self.cap]

    @property
    def over(self) -> tuple[Fate, ...]:
        return self.fates[self.cap :]

    @property
    def good(self) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.ran if fate.healthy)

    @property
    def bad(self) -> tuple[Fate, ...]:
        """Owed to the user: failed, or never asked."""
        return (*(fate for fate in self.ran if not fate.healthy), *self.over)

    @property
    def reserved(self) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.good if fate.kind != "well")

    @property
    def raw(self) -> str:
        """Some raw text of this turn, for those who leak."""
        return next(
            (fate.raw for fate in self.ran if fate.said_raw), "It raised ValueError at line 3."
        )

    @property
    def clean(self) -> bool:
        return not self.bad and not self.reserved and not self.owed


def scene(seed: int) -> Scene:
    """The scene of a seed: one in eight clean, the rest with faults of any kind and number; about
    one in three is shortened."""
    rng = random.Random(seed)
    agents = rng.sample(sorted(AGENTS), rng.randint(2, 8))
    numbers = [
        100 * n + rng.randrange(100) for n in rng.sample(range(100, 990, 6), 2 * len(agents))
    ]
    clean, rate = seed % 8 == 0, rng.choice((0.2, 0.5, 0.8, 1.0))
    cap = 8 if clean or rng.random() < 0.6 else rng.randint(1, 4)
    fates: list[Fate] = []
    for place, agent in enumerate(agents):
        kind = (
            rng.choice(FAULTS)
            if not clean and rng.random() < rate
            else "well"
            if clean
            else rng.choice((*HEALTHY, "well"))
        )
        mark = f"x{numbers[2 * place]}"
        raw = rng.choice(
            (
                f"peer db-{mark} refused the connection (errno 111)",
                f"GET https://inner.example/{mark} gave 503 Service Unavailable",
                f"KeyError: '{mark}' in /srv/app/{agent}.py, line 88",
                f'{{"code": "E_{mark}", "partial": ["ledger_{mark}"]}}',
            )
        )
        fates.append(
            Fate(
                agent,
                kind,
                _value(rng, numbers[2 * place + 1], kind in HEALTHY and place < cap),
                raw,
                mark,
            )
        )
    whole = Scene(
        seed, tuple(fates), cap, rng.choice(COMPOSERS), rng.choice(SECOND), rng.random() < 0.5
    )
    return _shortened(whole, rng) if seed % 4 == 3 or seed % 16 == 8 else whole


OVERCOUNT = 1_000_000_000


def miscounted(seed: int) -> Scene:
    """A scene in which every call is answered, others were never made, and the model reports a wrong number of parts.
    In every second one it answers what it asked nobody for."""
    rng = random.Random(seed)
    size = rng.randint(2, 8)
    fates: list[Fate] = []
    for agent in rng.sample(sorted(AGENTS), size):
        number = rng.randrange(100_000, 1_000_000)
        fates.append(Fate(agent, "well", f"{number:,}", f"raw x{number}", f"x{number}"))
    calls = rng.randint(1, size - 1)
    return Scene(
        seed,
        tuple(fates[:calls]),
        8,
        "answers_unasked" if seed % 2 else rng.choice(("honest", "silent", "stitches", "triumphs")),
        rng.choice(("the same", "nothing")),
        rng.random() < 0.5,
        uncalled=tuple(fates[calls:]),
        count=rng.choice((None, 1, calls, OVERCOUNT)),
        language=rng.choice(("en", "es")),
        queries=rng.choice(QUERIES),
    )


def _shortened(whole: Scene, rng: random.Random) -> Scene:
    """The same message, of which the model calls for the first parts only; a clean scene is one of
    which it counted no more."""
    size, calls = len(whole.fates), rng.randint(1, len(whole.fates) - 1)
    count = (
        rng.choice((None, 1))
        if whole.clean
        else rng.choice((size, size, rng.randint(calls + 1, size), None, 1))
    )
    language, queries = rng.choice(("en", "es")), rng.choice(QUERIES)
    fates = whole.fates[:calls]
    uncalled = tuple(
        replace(fate, value=f"{rng.randrange(100_000, 1_000_000):,}")
        for fate in whole.fates[calls:]
    )
    return replace(
        whole, fates=fates, uncalled=uncalled, count=count, language=language, queries=queries
    )


def _value(rng: random.Random, number: int, delivered: bool) -> str:
    match rng.randrange(4):
        case 0 if delivered:
            return " ".join(
                "".join(SYLLABLES[int(digit)] for digit in str(number + add))
                for add in range(0, 500, 100)
            )
        case 1:
            return f"{number:,}"
        case 2:
            return f"${number}.50"
        case _:
            return f"{number}"
