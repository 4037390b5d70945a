"""How a deck's own descriptions route labelled dialogues, through the real orchestrator turn with
the offline stand-in."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from kit.bench.case import as_line, read_cases
from kit.bench.routing import RoutingKit, catalog_of, catalog_team, route_case
from kit.bench.routing_report import RoutedTurn, RoutingReport, report
from kit.compose.deck import Deck, load_deck
from kit.core.value import Value
from kit.stores.sqlite import SqliteStore


class Progress(Value):
    """How many dialogues are routed so far; the last one carries the report."""

    done: int
    of: int
    report: RoutingReport | None = None


class DeckRoutes:
    """Routes the dialogues of a case file that concern cards of this deck. Raises DataError for a
    file that cannot be used."""

    def __init__(self, deck: Deck, cases: Path):
        self._catalog = catalog_of(deck)
        self.descriptions = {card.id: card.description for card in self._catalog.cards}
        read = list(read_cases(cases))
        self._cases = [
            case
            for case in read
            if all(set(ask.expected) <= {*self.descriptions} for ask in case.turns)
        ]
        self.left_out = len(read) - len(self._cases)
        """Dialogues about cards that are not bound here."""

    @property
    def questions(self) -> int:
        """Turns of all dialogues."""
        total = 0
        for case in self._cases:
            total += len(case.turns)
        return total

    @property
    def key(self) -> str:
        """A digest of descriptions and dialogues: two reports are of the same exactly when theirs are equal."""
        return hashlib.sha256(
            json.dumps([self.descriptions, *map(as_line, self._cases)]).encode()
        ).hexdigest()[:12]

    def run(self) -> Iterator[Progress]:
        """Routes them one after another; nothing is stored, no paid model is called. Not from inside a running loop."""
        turns: list[RoutedTurn] = []
        with closing(SqliteStore(":memory:")) as store, asyncio.Runner() as runner:
            kit = RoutingKit(catalog_team(self._catalog), store)
            for done, case in enumerate(self._cases, 1):
                predictions = runner.run(route_case(case, self._catalog, kit))
                turns += [
                    RoutedTurn.of(case, turn, predictions[turn]["called"]) for turn in case.scored
                ]
                yield Progress(
                    done=done,
                    of=len(self._cases),
                    report=report(turns) if done == len(self._cases) else None,
                )


def print_report(deck: Path, cases: Path) -> int:
    """Prints which description loses which questions; returns 0.

    Raises KitError for a deck or a case file that cannot be used.
    """
    routes = DeckRoutes(load_deck(deck), cases)
    *_, last = [Progress(done=0, of=0), *routes.run()]
    head = (
        f"{routes.questions} questions of {last.of} dialogues of {cases} over "
        f"{len(routes.descriptions)} cards of {deck}, by the offline stand-in"
    )
    print(
        head + (f"; {routes.left_out} dialogues are about other cards" if routes.left_out else "")
    )
    print(*(last.report.lines() if last.report else ["nothing to route"]), sep="\n")
    return 0
