"""Grids that the app plays: one at a time, each in a process of its own, so that no session waits for it."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kit.core.errors import DataError

GRID_COMMAND = (sys.executable, "-m", "kit.ui.benchmarks.grid_process")
"""The command that plays a grid; the grid's file and folder are its arguments."""
GRACE = 5.0
"""Seconds a grid that is told to stop gets to finish its cell and to write its results."""
State = Literal["running", "stopping", "complete", "stopped", "failed"]


@dataclass
class Job:
    """One run of a grid, as far as its process has reported. Any thread may read it."""

    name: str
    file: Path
    folder: Path
    process: "subprocess.Popen[str]" = field(repr=False)
    state: State = "running"
    done: int = 0
    total: int = 0
    """0 until the grid has been read."""
    dollars: float | None = None
    message: str = ""
    """What went wrong, or why it stopped by itself, in a sentence."""

    @property
    def over(self) -> bool:
        return self.state not in ("running", "stopping")


class Grids:
    """Starts, follows and stops grids, one at a time. Finished cells are kept whatever happens."""

    def __init__(self, command: Sequence[str] = GRID_COMMAND) -> None:
        self._command = command
        self._lock = threading.Lock()
        self.job: Job | None = None
        """The newest."""

    def start(self, file: Path, folder: Path) -> Job:
        """Plays what is missing of a grid's file into a folder. Raises DataError while another one runs."""
        with self._lock:
            if self.job is not None and not self.job.over:
                raise DataError(
                    f"one grid is played at a time: wait for {self.job.name}, or stop it"
                )
            # Streamlit finds the kit beside app.py, which is on its own path alone.
            path = os.pathsep.join(sys.path)
            process = subprocess.Popen(
                [*self._command, str(file), str(folder)],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
            )
            self.job = Job(folder.name, file, folder, process)
            threading.Thread(
                target=_follow, args=(self.job,), name=f"grid {folder.name}", daemon=True
            ).start()
            return self.job

    def stop(self) -> None:
        """Has the running grid begin no further cell; its results are written from the finished ones."""
        with self._lock:
            if self.job is not None and self.job.state == "running":
                self.job.state = "stopping"
                _hang_up(self.job.process)

    def close(self) -> None:
        """Stops the running grid, and waits until it has ended."""
        self.stop()
        if self.job is not None:
            try:
                self.job.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.job.process.kill()


# The process reads its stdin and nothing else of us: the end of it says "stop", also when the app itself is killed.
def _hang_up(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()


def _follow(job: Job) -> None:
    assert job.process.stdout is not None
    last: dict[str, Any] = {}
    noise = "it said nothing"
    with job.process.stdout as lines:
        for line in lines:
            # Its stderr comes on the same pipe, so that the last words of one that breaks are known.
            try:
                last |= json.loads(line)
            except (ValueError, TypeError):
                noise = line.strip() or noise
                continue
            if "total" in last:
                job.done = last["done"]
                job.total = last["total"]
    code = job.process.wait()
    _hang_up(job.process)
    if last.get("complete"):
        job.dollars = last["dollars"]
        job.state = "complete"
    elif "complete" in last:
        job.dollars = last["dollars"]
        # It stops by itself for one reason alone.
        if job.state != "stopping":
            job.message = "It reached its limit of dollars."
        job.state = "stopped"
    else:
        job.message = (
            last.get("error")
            or f"the process of the grid ended ({code}): {noise}; start it again, finished cells are kept"
        )
        job.state = "failed"
