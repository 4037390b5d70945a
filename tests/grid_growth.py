"""`python -m tests.grid_growth [CELLS]`: what writing and reporting so many finished cells takes;
fails above the bar."""

import json
import resource
import sys
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kit.bench.grid.cell import Cell, cells
from kit.bench.grid.grid_file import GridSpec, read_grid
from kit.bench.grid.ledger import FinishedCell, Ledger
from kit.bench.grid.report import report
from kit.bench.grid.results import Results
from kit.bench.grid.run import LEDGER, run_grid
from kit.experiment_kits import ExperimentKits
from kit.settings import HOME, Settings

BAR = 300
"""Megabytes that a process may take for a hundred thousand cells."""
FULL = 100_000
EXAMPLE = HOME / "data" / "results" / "reference" / "patterns_example"


def grid_of(folder: Path, count: int) -> GridSpec:
    """The grid of data/grids/scale.yaml with so many repeats that it has `count` cells or a few more."""
    text = (HOME / "data" / "grids" / "scale.yaml").read_text()
    path = folder / "scale.yaml"
    path.write_text(text.replace("repeats: 40", "repeats: 1"))
    once = sum(1 for _ in cells(read_grid(path)))
    path.write_text(text.replace("repeats: 40", f"repeats: {-(-count // once)}"))
    return read_grid(path)


def fill(spec: GridSpec, folder: Path) -> None:
    """Puts every cell into the ledger: turns of the example, under the names of the cell."""
    turns = list(Results(EXAMPLE))
    ledger = Ledger(folder / LEDGER)
    ledger.begin(json.dumps({"grid": spec.grid.name, "kinds": spec.kinds}))
    finished = (
        _finished(spec, cell, turns[place % len(turns)]) for place, cell in enumerate(cells(spec))
    )
    while batch := list(islice(finished, 2_000)):
        ledger.keep(batch)
    ledger.close()


def _finished(spec: GridSpec, cell: Cell, turn: Mapping[str, Any]) -> FinishedCell:
    names = {
        "model": cell.model,
        "setting": cell.setting,
        "pattern": cell.pattern,
        "fault": cell.fault,
        "repeat": cell.repeat,
    }
    row = {**turn, **names, "case": spec.cases[cell.case].id, "cell": cell.key}
    timing = {"cell": cell.key, "turns": []}
    return FinishedCell(cell.key, json.dumps(row) + "\n", json.dumps(timing) + "\n", None)


def main(count: int = FULL) -> int:
    """Prints what it took; 1 above the bar."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        spec = grid_of(folder, count)
        fill(spec, folder)
        began = time.process_time()
        run = run_grid(spec, folder, ExperimentKits.of(Settings(store=":memory:"), virtual=True))
        lines = len(report(spec, run).splitlines())
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = time.process_time() - began
    print(
        f"{run.total:,} cells, a report of {lines} lines: {taken:,.0f} MB at most ({BAR} are "
        f"allowed), {spent:.1f} s of CPU"
    )
    return int(run.done > 0 or taken > BAR * max(1.0, count / FULL))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
