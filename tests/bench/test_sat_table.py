"""The published table of models is one file: its messages, batches, models and patterns, and the
models of a grid by role."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.cell import cells
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.run import run_grid
from kit.core.errors import DataError
from kit.home import HOME
from tests.grids.test_grid import OPENER, spec_of

TABLE = HOME / "data" / "grids" / "sat_table.yaml"


SPECS = {
    key: {"provider": "simulated", "law": {"latency": {"median": 1.0}, "drop": drop}}
    for key, drop in (("simulated-a", 0.5), ("simulated-b", 0))
}


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
    spec = spec_of(tmp_path, specs=SPECS, models=roles)
    asked: list[tuple[str, str]] = []

    def opener(**options: Any) -> Any:
        models = options["models"]
        asked.append((models["orchestrator"], models["*"]))
        return OPENER(**options)

    run_grid(spec, tmp_path / "out", opener, 1)
    assert sorted(asked) == [("simulated-a", "offline"), ("simulated-b", "offline")]
    alone = spec_of(tmp_path, specs=SPECS, models=["simulated-a", "simulated-b"])
    assert not {cell.key for cell in cells(spec)} & {cell.key for cell in cells(alone)}, (
        "other sub-agents, other cells"
    )
    with pytest.raises(DataError, match=r"small\.yaml:\d+: unknown model 'ofline'.*offline"):
        spec_of(tmp_path, specs=SPECS, models={"orchestrator": "simulated-a", "others": "ofline"})
    with pytest.raises(DataError, match=r"models by role are {orchestrator: KEY"):
        spec_of(tmp_path, specs=SPECS, models={"lead": "simulated-a"})
