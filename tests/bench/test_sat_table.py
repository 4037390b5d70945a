"""The published table of models is one file: its messages, batches, models and patterns, and the
models of a grid by role."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.cell import cells
from kit.bench.grid.grid_file import GridSpec, read_grid
from kit.bench.grid.run import run_grid
from kit.core.errors import DataError
from kit.home import HOME
from kit.settings import Settings
from kit.wire import open_kit
from tests.grids.test_grid import MIXED

TABLE = HOME / "data" / "grids" / "sat_table.yaml"
OPENER = partial(open_kit, Settings(store=":memory:", pace=0.0, today="2026-11-01"))


def changed(folder: Path, **fields: Any) -> GridSpec:
    """A small simulated grid with these fields."""
    law = {"latency": {"median": 1.0, "sigma": 0.4}, "drop": 0.5}
    specs = {
        "simulated-a": {"provider": "simulated", "law": law},
        "simulated-b": {"provider": "simulated", "law": {**law, "drop": 0}},
    }
    path = folder / "small.yaml"
    path.write_text(
        json.dumps(
            {
                "models": ["simulated-a"],
                "specs": specs,
                "cases": [MIXED],
                "settings": {"wide": {"cap": 8}},
                **fields,
            }
        )
    )
    return read_grid(path)


@pytest.mark.req("SAT-25")
def test_the_table_is_thirty_pairs_in_three_batches_on_every_model_pattern_and_failsafe():
    spec = read_grid(TABLE)
    every = list(cells(spec))
    ways = Counter((cell.model, cell.setting, cell.pattern) for cell in every)
    assert len(ways) == 3 * 2 * 2 and set(ways.values()) == {90} and len(spec.cases) == 30
    assert Counter(case.turns[0].expected[0] for case in spec.cases) == {"support": 15, "shop": 15}
    guards = {name: deck.settings.guards.failsafe for (_, name), deck in spec.decks.items()}
    assert guards == {"failsafe on": True, "failsafe off": False}
    assert spec.grid.others == "gpt-4.1-mini" and spec.grid.sub_agents == "cards"


def test_the_orchestrator_varies_over_the_same_sub_agents(tmp_path: Path):
    roles = {"orchestrator": ["simulated-a", "simulated-b"], "others": "offline"}
    spec = changed(tmp_path, models=roles)
    asked: list[tuple[str, str]] = []

    def opener(**options: Any) -> Any:
        models = options["models"]
        asked.append((models["orchestrator"], models["*"]))
        return OPENER(**options)

    run_grid(spec, tmp_path / "out", opener, 1)
    assert sorted(asked) == [("simulated-a", "offline"), ("simulated-b", "offline")]
    alone = changed(tmp_path, models=["simulated-a", "simulated-b"])
    assert not {cell.key for cell in cells(spec)} & {cell.key for cell in cells(alone)}, (
        "other sub-agents, other cells"
    )
    with pytest.raises(DataError, match=r"small\.yaml:1.*unknown model 'ofline'.*offline"):
        changed(tmp_path, models={"orchestrator": "simulated-a", "others": "ofline"})
    with pytest.raises(DataError, match=r"models by role are {orchestrator: KEY"):
        changed(tmp_path, models={"lead": "simulated-a"})
