"""Writes data/cases and its pictures from data/source: `python data/make_cases.py [FOLDER]`, the
same bytes on every run."""

import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, permutations
from pathlib import Path
from typing import TypeVar

from case_facts import fact
from case_pictures import SHOWS, draw_picture
from case_source import (
    SOURCE,
    Attempt,
    Frame,
    Hop,
    Long,
    MixedSource,
    Request,
    Short,
    SwitchSource,
    read_source,
)
from kit.bench.case import ANYBODY, FAILING, Ask, Case, Fact, as_line
from kit.core.context import Principal
from kit.core.errors import DataError
from kit.home import HOME
from kit.worlds.consumer.world import World, load_world
from switch_cases import switch_cases

DATA = HOME / "data"
SEED = 11
SIZES: Mapping[int, int] = {2: 124, 3: 92, 4: 60, 5: 36}
"""Mixed cases by the number of their parts."""
PAIRS = 30
PARTIAL = 72
RESERVING = "partial_envelope"
"""A fault after which an answer holds with a reservation."""
DEFAULT = "shop"
"""The sub-agent that gets a message no other one fits, in the consumer deck (decisions 5)."""
DEMO = Principal(tenant_id="acme", user_id="u-001")
PEOPLE = (
    DEMO,
    *(
        Principal(tenant_id=t, user_id=u)
        for t, u in (("acme", "u-014"), ("globex", "u-001"), ("globex", "u-007"))
    ),
)
T = TypeVar("T")


class Maker:
    """Makes every set from its source; the seed decides what is drawn."""

    def __init__(self, world: World, folder: Path = SOURCE, seed: int = SEED):
        self.world, self.seed = world, seed
        singles = read_source("single", dict[str, tuple[str | Request, ...]], folder)
        self.singles = {
            name: [Request(ask=a) if isinstance(a, str) else a for a in asks]
            for name, asks in singles.items()
        }
        self.mixed = read_source("mixed", MixedSource, folder)
        self.folder = folder

    def sets(self) -> dict[str, list[Case]]:
        """Makes all sets; returns file stem -> cases."""
        return {
            "single": self.single(),
            "mixed": self.mixed_cases(),
            "pairs": self.pairs(),
            "fastpath": self.fastpath(),
            "partial": self.partial(),
            "injection": self.injection(),
            "references": self.references(),
            "long": self.long(),
        }

    def single(self) -> list[Case]:
        """Makes cases of one request each: for every vertical, for none, and small talk."""
        rng, cases = random.Random(f"{self.seed} single"), list[Case]()
        for domain, asks in self.singles.items():
            for number, request in enumerate(asks, 1):
                expected = (
                    ()
                    if domain == "small_talk"
                    else (DEFAULT if domain == "out_of_scope" else domain,)
                )
                kind = {"small_talk": "small_talk", "out_of_scope": "oos"}.get(domain, "single")
                who, facts = self._facts(rng, {domain: request.fact})
                ask = Ask(user=request.ask, expected=expected, facts=facts)
                raw = {
                    "id": f"{domain}-{number:02}",
                    "kind": kind,
                    "domain": domain,
                    "turns": (ask,),
                    "principal": who,
                }
                cases.append(Case.model_validate(raw))
        return cases

    def mixed_cases(self) -> list[Case]:
        """Makes messages of two to five parts, with every ordered pair of verticals at least once."""
        rng = random.Random(f"{self.seed} mixed")
        dealer, cases = _Dealer(self.mixed, self.singles, rng), list[Case]()
        for size, count in SIZES.items():
            combinations = list(permutations(self.mixed.verticals, 2)) if size == 2 else []
            rng.shuffle(combinations)
            combinations += [
                tuple(dealer.verticals(size)) for _ in range(count - len(combinations))
            ]
            frames = dealer.shuffle(self.mixed.frames[size])
            for number, agents in enumerate(combinations, 1):
                cases.append(
                    self._mixed(f"mixed-{size}-{number:03}", agents, next(frames), dealer, rng)
                )
        return cases

    def pairs(self) -> list[Case]:
        """Makes messages for support and the shop, each of them first in half: those of the
        published table of models."""
        rng = random.Random(f"{self.seed} pairs")
        dealer, orders = (
            _Dealer(self.mixed, self.singles, rng),
            (("support", "shop"), ("shop", "support")),
        )
        frames = dealer.shuffle(self.mixed.frames[2])
        cases: dict[frozenset[str], Case] = {}
        while len(cases) < PAIRS:  # the same two parts in another frame would be the same question
            case = self._mixed(
                f"pair-{len(cases) + 1:02}", orders[len(cases) % 2], next(frames), dealer, rng
            )
            cases.setdefault(frozenset(case.turns[0].queries.values()), case)
        return list(cases.values())

    def partial(self) -> list[Case]:
        """Makes messages of two to four parts of which some, or all, fail."""
        rng = random.Random(f"{self.seed} partial")
        dealer, kinds = (
            _Dealer(self.mixed, self.singles, rng),
            cycle([*sorted(FAILING), RESERVING]),
        )
        cases: list[Case] = []
        for number in range(1, PARTIAL + 1):
            size = 2 + number % 3
            agents = tuple(dealer.verticals(size))
            case = self._mixed(
                f"partial-{number:03}", agents, rng.choice(self.mixed.frames[size]), dealer, rng
            )
            failing = rng.sample(agents, size if number % 9 == 0 else rng.randint(1, size - 1))
            faults = tuple(f"{agent}={next(kinds)}" for agent in agents if agent in failing)
            topics = {agent: self.mixed.verticals[agent].topic for agent in agents}
            facts = [fact for fact in case.turns[0].facts if fact.agent not in failing]
            ask = case.turns[0].model_copy(update={"facts": tuple(facts)})
            cases.append(
                case.model_copy(
                    update={"kind": "partial", "faults": faults, "topics": topics, "turns": (ask,)}
                )
            )
        return cases

    def fastpath(self) -> list[Case]:
        """Makes pleasantries, requests that only sound like one, and short replies to a question."""
        source = read_source("fastpath", dict[str, tuple[str | Short, ...]], self.folder)
        cases: list[Case] = []
        for group, lines in source.items():
            for number, line in enumerate(lines, 1):
                short = Short(user=line) if isinstance(line, str) else line
                turns = [Ask(user=short.user, expected=short.expect)]
                if short.after:
                    agent, user, answer = short.after
                    turns.insert(0, Ask(user=user, expected=(agent,), assistant=answer, skip=True))
                domain = short.expect[0] if short.expect else "small_talk"
                kind = "single" if short.expect else "small_talk"
                raw = {
                    "id": f"fastpath-{group}-{number:02}",
                    "kind": kind,
                    "domain": domain,
                    "turns": tuple(turns),
                }
                cases.append(Case.model_validate(raw))
        return cases

    def injection(self) -> list[Case]:
        """Makes attempts at prompt injection, by the user and by what a sub-agent answers."""
        source = read_source("injection", dict[str, tuple[Attempt, ...]], self.folder)
        cases: list[Case] = []
        for group, attempts in source.items():
            for number, attempt in enumerate(attempts, 1):
                expected = attempt.expect or (attempt.agent,)
                ask = Ask(
                    user=attempt.user,
                    expected=expected,
                    answers={attempt.agent: attempt.answer} if attempt.agent else {},
                )
                raw = {
                    "id": f"injection-{group}-{number:02}",
                    "kind": "injection",
                    "domain": expected[0],
                    "turns": (ask,),
                }
                cases.append(Case.model_validate({**raw, "forbids": attempt.forbids}))
        return cases

    def references(self) -> list[Case]:
        """Makes dialogues whose last request refers to what another vertical named."""
        hops = read_source("references", tuple[Hop, ...], self.folder)
        cases: list[Case] = []
        for number, hop in enumerate(hops, 1):
            earlier = [
                Ask(user=user, expected=(agent,), assistant=answer, skip=True)
                for agent, user, answer in hop.turns
            ]
            last = Ask(user=hop.last[1], expected=(hop.last[0],), carried=hop.carried)
            cases.append(
                Case(
                    id=f"reference-{number:02}",
                    kind="reference",
                    domain=hop.last[0],
                    turns=(*earlier, last),
                )
            )
        return cases

    def long(self) -> list[Case]:
        """Makes dialogues that are played whole, so that their old turns are summarised."""
        return [
            Case(
                id=f"long-{long.id}",
                kind="long",
                domain="mixed",
                turns=tuple(
                    Ask(user=user, expected=(agent,), answers={ANYBODY: answer})
                    for agent, user, answer in long.turns
                ),
                kept=long.kept,
                live=True,
            )
            for long in read_source("long", tuple[Long, ...], self.folder)
        ]

    def _mixed(
        self, name: str, agents: Sequence[str], frame: Frame, dealer: "_Dealer", rng: random.Random
    ) -> Case:
        parts = [
            dealer.part(agent, kind)
            for agent, kind in zip(agents, frame.kinds.split(), strict=True)
        ]
        who, facts = self._facts(
            rng, {agent: part.fact for agent, part in zip(agents, parts, strict=True)}
        )
        queries = {agent: part.ask for agent, part in zip(agents, parts, strict=True)}
        ask = Ask(
            user=fill_frame(frame.text, [part.ask for part in parts]),
            expected=tuple(agents),
            queries=queries,
            facts=facts,
        )
        return Case(id=name, kind="mixed", domain="mixed", turns=(ask,), principal=who)

    def _facts(
        self, rng: random.Random, keys: Mapping[str, str | None]
    ) -> tuple[Principal, tuple[Fact, ...]]:
        """Returns a user for whom everything asked about exists, and what is true for this user."""
        questions = {agent: key for agent, key in keys.items() if key}
        for who in (*rng.sample(PEOPLE, len(PEOPLE)), DEMO) if questions else (DEMO,):
            try:
                return who, tuple(
                    fact(self.world, who, agent, key) for agent, key in questions.items()
                )
            except DataError:
                continue
        raise DataError(
            f"no user has all of {', '.join(questions.values())}: ask about something else"
        )


class _Dealer:
    """Hands out verticals and parts so that all come up about equally often."""

    def __init__(
        self, mixed: MixedSource, singles: Mapping[str, Sequence[Request]], rng: random.Random
    ):
        self.rng, self.names = rng, list(mixed.verticals)
        self.order = self.shuffle(self.names)
        self.decks: dict[tuple[str, str], Iterator[Request]] = {}
        for name, parts in mixed.verticals.items():
            for kind, texts in (("do", parts.do), ("ask", parts.ask)):
                self.decks[name, kind] = self.shuffle(
                    [Request(ask=text, fact=mixed.facts.get(text)) for text in texts]
                )
            self.decks[name, "free"] = self.shuffle(singles[name])

    def shuffle(self, items: Sequence[T]) -> Iterator[T]:
        """Yields all items in some order, then all in another, without end."""
        while True:
            yield from self.rng.sample(items, len(items))

    def verticals(self, count: int) -> list[str]:
        names: list[str] = []
        while len(names) < count:
            name = next(self.order)
            if name not in names:
                names.append(name)
        return names

    def part(self, agent: str, kind: str) -> Request:
        return next(self.decks[agent, kind])


def fill_frame(frame: str, parts: Sequence[str]) -> str:
    """Fills a frame with its parts, without doubled punctuation."""
    text = frame.format(*(part.rstrip(". ") for part in parts))
    return re.sub(r"([?!.])[.,;?]+(?!\.)", r"\1", text)


def write(folder: Path = DATA / "cases") -> dict[str, int]:
    """Writes every set into a folder; returns file stem -> cases."""
    lines = {
        name: [as_line(case) for case in cases]
        for name, cases in Maker(load_world(DATA / "world")).sets().items()
    }
    switches = switch_cases(read_source("switches", SwitchSource, DATA / "source"))
    lines["switches"] = [json.dumps(case) + "\n" for case in switches]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8", newline="\n")
    (folder / "pictures").mkdir(exist_ok=True)
    for kind in SHOWS:
        (folder / "pictures" / f"{kind}.png").write_bytes(draw_picture(kind).data)
    return {name: len(rows) for name, rows in lines.items()}


if __name__ == "__main__":
    for stem, total in write(*map(Path, sys.argv[1:2])).items():
        print(f"{total:5}  {stem}")
