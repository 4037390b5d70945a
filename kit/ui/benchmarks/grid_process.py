"""A grid played in a process of its own, for the app: `python -m kit.ui.benchmarks.grid_process
FILE FOLDER`.

Says a line of JSON for each step on stdout: `{"done": 40, "total": 90}`, the last one with
`"complete": true, "dollars": 0.0` beside them; or `{"error": "one sentence"}`. It stops before the
next cell when its stdin ends: whoever sent it wants it to, or is gone.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from kit.bench.grid.grid_cassette import with_cassette
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.report import report
from kit.bench.grid.run import run_grid
from kit.core.errors import KitError
from kit.experiment_kits import ExperimentKits
from kit.settings import Settings


def main(file: str, folder: str) -> int:
    """Plays the grid in this process; returns 2 when it cannot be played, else 0, also when it was stopped."""
    going = threading.Event()
    going.set()
    threading.Thread(target=_listen, args=(going,), daemon=True).start()
    try:
        spec = read_grid(Path(file))
        spec, cassette = with_cassette(spec, None, None, Path(folder), Path(file))
        kits = ExperimentKits.of(Settings.read(), virtual=spec.virtual, cassette=cassette)
        run = run_grid(
            spec.at(kits.access), Path(folder), kits, 1, _count, going.is_set, traces=True
        )
        report(spec, run)
        _say(
            done=run.before + run.done, total=run.total, complete=run.complete, dollars=run.dollars
        )
    except KitError as error:
        _say(error=" ".join(str(error).split()))
        return 2
    return 0


def _count(done: int, total: int) -> None:
    _say(done=done, total=total)


def _listen(going: threading.Event) -> None:
    # Not sys.stdin, whose lock the interpreter wants when it ends.
    while os.read(0, 4096):
        pass
    going.clear()


def _say(**step: Any) -> None:
    try:
        print(json.dumps(step), flush=True)
    except BrokenPipeError:
        # Nobody listens any more; finished cells are kept all the same.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    if hasattr(os, "nice"):
        # The chat beside it goes first.
        os.nice(10)
    sys.exit(main(*sys.argv[1:3]))
