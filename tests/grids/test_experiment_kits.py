"""What settings mean to notebooks and grids: where traces go, said first; kits that keep and send
nothing while a grid runs."""

import ast
import json
from pathlib import Path

from kit.bench.grid.stand_ins.simulated_tools import with_simulated_tools
from kit.compose.deck import load_deck
from kit.experiment_kits import ExperimentKits, trace_home
from kit.settings import HOME, Settings

PLAYS_NOTHING = ("14_conformance",)
"""Notebooks that read a stored result, so that there are no traces to speak of."""
NOTEBOOKS = [
    path for path in sorted((HOME / "notebooks").glob("*.ipynb")) if path.stem not in PLAYS_NOTHING
]


def outputs(path: Path) -> list[str]:
    """What a notebook puts out, in order: printed lines and the values cells end on, as source."""
    found: list[str] = []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            body = ast.parse("".join(cell["source"])).body
            for node in body:
                said = ast.unparse(node)
                if isinstance(node, ast.Expr) and (node is body[-1] or said.startswith("print(")):
                    found.append(said)
    return [said for said in found if said != "OfflineModel.warm()"]


def test_the_first_thing_a_notebook_says_is_where_its_traces_go():
    for path in NOTEBOOKS:
        assert outputs(path)[0].startswith("print(trace_home("), path.stem


def test_where_traces_go_without_opik():
    first, second = trace_home(Settings(store="/data/kit.db")).splitlines()
    assert first.endswith("are kept in /data/kit.db.") and second.startswith("Opik: not configured")
    assert "in memory, until the kit is closed" in trace_home(Settings(store=":memory:"))


async def test_a_kit_of_a_grid_keeps_and_sends_nothing_whatever_is_configured():
    settings = Settings(
        store="/nowhere/kit.db", pace=0.0, opik_url="http://127.0.0.1:9/api", today="2020-01-01"
    )
    kits = ExperimentKits(settings)
    deck = with_simulated_tools(load_deck(settings.deck))
    async with kits(models="offline", deck=deck, faults=False) as kit:
        assert (kit.settings.store, kit.recorder.sinks, kit.today) == (":memory:", (), "2026-11-01")
    assert kits.has_opik
