"""Scenes of chaos, from a seed: who is asked, what goes wrong with whom, and how the orchestrator's model lies about it.

Every healthy agent's answer holds a value of its own, every failure's raw text a mark of its own, and every failed agent has a
value it never delivered: whoever judges the reply needs to know nothing but these.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

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
        return self.kind not in ("well", "partial", "part_of_data", "hang", "empty", "foreign_principal")

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
        return next((fate.raw for fate in self.ran if fate.said_raw), "It raised ValueError at line 3.")

    @property
    def clean(self) -> bool:
        return not self.bad and not self.reserved


def scene(seed: int) -> Scene:
    """The scene of a seed: one in eight clean, the rest with faults of any kind and number."""
    rng = random.Random(seed)
    agents = rng.sample(sorted(AGENTS), rng.randint(2, 8))
    numbers = [100 * n + rng.randrange(100) for n in rng.sample(range(100, 990, 6), 2 * len(agents))]
    clean, rate = seed % 8 == 0, rng.choice((0.2, 0.5, 0.8, 1.0))
    cap = 8 if clean or rng.random() < 0.6 else rng.randint(1, 4)
    fates: list[Fate] = []
    for place, agent in enumerate(agents):
        kind = rng.choice(FAULTS) if not clean and rng.random() < rate else "well" if clean else rng.choice((*HEALTHY, "well"))
        mark = f"x{numbers[2 * place]}"
        raw = rng.choice(
            (
                f"peer db-{mark} refused the connection (errno 111)",
                f"GET https://inner.example/{mark} gave 503 Service Unavailable",
                f"KeyError: '{mark}' in /srv/app/{agent}.py, line 88",
                f'{{"code": "E_{mark}", "partial": ["ledger_{mark}"]}}',
            )
        )
        fates.append(Fate(agent, kind, _value(rng, numbers[2 * place + 1], kind in HEALTHY and place < cap), raw, mark))
    return Scene(seed, tuple(fates), cap, rng.choice(COMPOSERS), rng.choice(SECOND), rng.random() < 0.5)


def _value(rng: random.Random, number: int, delivered: bool) -> str:
    match rng.randrange(4):
        case 0 if delivered:
            return " ".join("".join(SYLLABLES[int(digit)] for digit in str(number + add)) for add in range(0, 500, 100))
        case 1:
            return f"{number:,}"
        case 2:
            return f"${number}.50"
        case _:
            return f"{number}"
