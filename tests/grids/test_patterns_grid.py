"""All patterns in one run: the same cases, cards, tools and budgets for each, and a verdict on
every one beside the baseline."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.report import compare_ways
from kit.bench.grid.results import read_results
from kit.bench.grid.run import run_grid
from kit.compose.deck import Deck
from kit.home import HOME
from kit.patterns import PATTERNS
from kit.settings import Settings
from kit.wire import Kit, open_kit

SHIPPED = sorted((HOME / "data" / "grids").glob("patterns*.yaml"))
SEVEN = {"monolith", "classifier_gateway", "supervisor", "swarm", "a2a", "direct", "mediated"}


@pytest.mark.req("SAT-11")
def test_all_seven_patterns_play_one_case_set_in_one_run_on_one_kit_and_are_compared(
    tmp_path: Path,
):
    grid = yaml.safe_load((HOME / "data" / "grids" / "patterns_small.yaml").read_text())
    grid["cases"] = [{**cases, "every": 20 * cases["every"]} for cases in grid["cases"]]
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(grid))
    spec = read_grid(tmp_path / "few.yaml")
    opened: list[dict[str, Any]] = []
    ways: dict[str, Deck] = {}

    @asynccontextmanager
    async def opener(**asked: Any) -> AsyncGenerator[Kit]:
        opened.append(asked)
        async with open_kit(
            Settings(store=":memory:", pace=0.0, today="2026-11-01"), **asked
        ) as kit:
            yield kit
            ways.update({name: kit.stages.team(pattern).deck for name, pattern in PATTERNS.items()})

    run = run_grid(spec, tmp_path / "out", opener, 1)
    rows = read_results(tmp_path / "out")
    asked = {
        pattern: {row["case"] for row in rows if row["pattern"] == pattern} for pattern in SEVEN
    }
    assert run.complete and {row["pattern"] for row in rows} == set(PATTERNS) == SEVEN
    assert all(cases == {case.id for case in spec.cases} for cases in asked.values()), (
        "the same cases"
    )
    (only,) = opened
    own, budgets = (
        only["deck"].settings,
        {card.id: only["deck"].policy(card) for card in only["deck"].cards.values()},
    )
    for name, deck in ways.items():
        assert {card.id: deck.policy(card) for card in deck.cards.values()} == budgets, (
            f"{name}: the same cards and budgets"
        )
        assert (deck.settings.cap, deck.settings.guards, deck.settings.defaults) == (
            own.cap,
            own.guards,
            own.defaults,
        ), name
    _, verdicts = compare_ways(spec, rows)
    assert {v.way["pattern"] for v in verdicts if v.scorer == "exact"} == SEVEN - {"mediated"}
    assert {v.difference.n for v in verdicts if v.scorer in ("exact", "seconds")} == {
        len(spec.cases)
    }, "paired by case"


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_grid_of_patterns_has_every_one_there_is(path: Path):
    assert set(read_grid(path).grid.patterns) == set(PATTERNS)
