"""How a deck's own descriptions route labelled dialogues, through the real orchestrator turn with
the offline stand-in."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from kit.bench.case import Case, read_cases
from kit.bench.routing import Catalog, RoutingKit, catalog_of, catalog_team, route_case
from kit.bench.routing_report import RoutedTurn, report
from kit.compose.deck import load_deck
from kit.stores.sqlite import SqliteStore


def print_report(deck: Path, cases: Path) -> int:
    """Prints which description loses which questions; returns 0. Nothing is stored, no paid model is called.

    Raises KitError for a deck or a case file that cannot be used.
    """
    catalog = catalog_of(load_deck(deck))
    dialogues: list[Case] = []
    left_out = 0
    for case in read_cases(cases):
        if all(catalog.names.keys() >= set(ask.expected) for ask in case.turns):
            dialogues.append(case)
        else:
            left_out += 1
    questions = sum(len(case.turns) for case in dialogues)
    head = (
        f"{questions} questions of {len(dialogues)} dialogues of {cases} over "
        f"{len(catalog.cards)} cards of {deck}, by the offline stand-in"
    )
    if left_out:
        head += f"; {left_out} dialogues are about other cards"
    lines = ["nothing to route"]
    if dialogues:
        lines = report(asyncio.run(route_dialogues(dialogues, catalog))).lines()
    print(head, *lines, sep="\n")
    return 0


async def route_dialogues(dialogues: Sequence[Case], catalog: Catalog) -> list[RoutedTurn]:
    """Routes labelled dialogues over a catalogue, one after another."""
    turns: list[RoutedTurn] = []
    with closing(SqliteStore(":memory:")) as store:
        kit = RoutingKit(catalog_team(catalog), store)
        for case in dialogues:
            predictions = await route_case(case, catalog, kit)
            for turn in case.scored:
                turns.append(RoutedTurn.of(case, turn, predictions[turn]["called"]))
    return turns
