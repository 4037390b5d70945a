"""All patterns in one run: the same cases, cards, tools and budgets for each, and a verdict on
every one beside the baseline."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.bench.grid.cell import cells
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.report import compare_run
from kit.bench.grid.results import read_results
from kit.bench.grid.run import run_grid
from kit.compose.deck import Deck
from kit.home import HOME
from kit.patterns import PATTERNS
from kit.wire import Kit, open_kit
from tests.kits import EMBEDDED

SEVEN = {"monolith", "classifier_gateway", "supervisor", "swarm", "a2a", "direct", "mediated"}


@pytest.mark.req("SAT-11")
def test_all_seven_patterns_play_one_case_set_in_one_run_on_one_kit_and_are_compared(
    tmp_path: Path,
):
    grid = yaml.safe_load((HOME / "data" / "grids" / "patterns_small.yaml").read_text())
    grid["cases"] = [{**cases, "every": 40 * cases["every"]} for cases in grid["cases"]]
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(grid))
    spec = read_grid(tmp_path / "few.yaml")
    opened: list[dict[str, Any]] = []
    ways: dict[str, Deck] = {}

    @asynccontextmanager
    async def opener(**asked: Any) -> AsyncGenerator[Kit]:
        opened.append(asked)
        async with open_kit(EMBEDDED, **asked) as kit:
            yield kit
            ways.update({name: kit.stages.team(pattern).deck for name, pattern in PATTERNS.items()})

    run = run_grid(spec, tmp_path / "out", opener, 1)
    rows = read_results(tmp_path / "out")
    assert run.complete and {row["pattern"] for row in rows} == set(PATTERNS) == SEVEN
    for pattern in SEVEN:
        asked = {row["case"] for row in rows if row["pattern"] == pattern}
        assert asked == {case.id for case in spec.cases}, "the same cases"
    (only,) = opened
    own = only["deck"]
    for name, deck in ways.items():
        for card in own.cards.values():
            assert deck.policy(deck.cards[card.id]) == own.policy(card), f"{name}: the same budgets"
        assert (deck.settings.cap, deck.settings.guards) == (own.settings.cap, own.settings.guards)
    _, verdicts = compare_run(spec, tmp_path / "out")
    exact = {v.way["pattern"]: v.difference.n for v in verdicts if v.scorer == "exact"}
    assert exact == dict.fromkeys(SEVEN - {"mediated"}, len(spec.cases)), "paired by case"


def test_the_grids_that_are_shipped_can_be_read_and_those_of_patterns_have_every_one_there_is():
    for path in (HOME / "data" / "grids").glob("*.yaml"):
        spec = read_grid(path)
        assert next(cells(spec))
        assert not path.stem.startswith("patterns") or set(spec.grid.patterns) == set(PATTERNS)
