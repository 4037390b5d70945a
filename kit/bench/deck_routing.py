"""How a deck's own descriptions route labelled dialogues, through the real orchestrator turn with
the offline stand-in."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kit.bench.case import Case, read_cases
from kit.bench.grid.grid_file import digest
from kit.bench.routing import RoutingKit, catalog_of, catalog_team, route_case
from kit.bench.routing_report import RoutedTurn, RoutingReport, report
from kit.compose.deck import Deck, load_deck
from kit.stores.sqlite import SqliteStore


class DeckRoutes:
    """Routes the dialogues of a case file that concern cards of this deck. Raises DataError for a
    file that cannot be used."""

    def __init__(self, deck: Deck, cases: Path):
        self._catalog = catalog_of(deck)
        self.descriptions = {card.id: card.description for card in self._catalog.cards}
        self.cases: list[Case] = []
        self.left_out = 0
        """Dialogues about cards that are not bound here."""
        for case in read_cases(cases):
            if all(self.descriptions.keys() >= set(ask.expected) for ask in case.turns):
                self.cases.append(case)
            else:
                self.left_out += 1

    @property
    def questions(self) -> int:
        """Turns of all dialogues."""
        return sum(len(case.turns) for case in self.cases)

    @property
    def key(self) -> str:
        """A digest of descriptions and dialogues: two reports are of the same exactly when theirs are equal."""
        wordings = {card.id: [card.description, *card.requests] for card in self._catalog.cards}
        return digest(wordings, *self.cases)

    def run(self, tell: Callable[[int], object] = lambda done: None) -> RoutingReport:
        """Routes them one after another, and tells how many are done; nothing is stored, no paid model is called.

        Not from inside a running loop.
        """
        turns: list[RoutedTurn] = []
        with closing(SqliteStore(":memory:")) as store, asyncio.Runner() as runner:
            kit = RoutingKit(catalog_team(self._catalog), store)
            for done, case in enumerate(self.cases, 1):
                predictions = runner.run(route_case(case, self._catalog, kit))
                for turn in case.scored:
                    turns.append(RoutedTurn.of(case, turn, predictions[turn]["called"]))
                tell(done)
        return report(turns)


def print_report(deck: Path, cases: Path) -> int:
    """Prints which description loses which questions; returns 0.

    Raises KitError for a deck or a case file that cannot be used.
    """
    routes = DeckRoutes(load_deck(deck), cases)
    head = (
        f"{routes.questions} questions of {len(routes.cases)} dialogues of {cases} over "
        f"{len(routes.descriptions)} cards of {deck}, by the offline stand-in"
    )
    if routes.left_out:
        head += f"; {routes.left_out} dialogues are about other cards"
    lines = routes.run().lines() if routes.cases else ["nothing to route"]
    print(head, *lines, sep="\n")
    return 0
