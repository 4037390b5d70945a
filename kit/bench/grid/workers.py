"""Plays cells in this process, or in one process for each core that sends finished cells back in batches."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from kit.bench.grid.cell import Cell
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import FinishedCell
from kit.bench.grid.player import Opener, Player
from kit.core.errors import DataError, KitError
from kit.core.model import RateLimits
from kit.runtime.clock import run_virtual

NO_LIMITS = RateLimits()
WORTH = 5000
"""Cells for which starting processes pays: each takes some two seconds of CPU until its first turn."""
BATCH = 32
Keep = Callable[[Sequence[FinishedCell]], object]
"""Takes finished cells; what it raises ends the run."""
GoOn = Callable[[], bool]
"""Says whether another cell may begin."""


def play(
    spec: GridSpec,
    cells: Sequence[Cell],
    opener: Opener,
    keep: Keep,
    go_on: GoOn,
    workers: int | None,
) -> None:
    """Plays all cells; `workers` None is one a core where time is virtual and there is enough to
    do, else none but this process.

    No further cell is begun once `go_on` says no; those in flight are kept.
    """
    if workers is None:
        workers = cores() if spec.virtual and len(cells) >= WORTH else 1
    if workers > 1 and not any(
        model.limits != NO_LIMITS for model in spec.every_model.values()
    ):  # one gate is in one process
        _with_workers(spec, cells, opener, keep, go_on, workers)
    else:
        play_here(spec, cells, opener, keep, go_on)


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def play_here(
    spec: GridSpec, cells: Sequence[Cell], opener: Opener, keep: Keep, go_on: GoOn
) -> None:
    """In this process and thread. What costs money is kept at once, the rest in batches."""
    batch: list[FinishedCell] = []
    most = BATCH if spec.virtual and spec.grid.limits.dollars is None else 1

    def one(cell: FinishedCell) -> None:
        batch.append(cell)
        if len(batch) >= most:
            full = batch.copy()
            batch.clear()
            keep(full)

    async def main() -> None:
        player = Player(spec, opener)
        try:
            await player.play(cells, one, go_on)
        finally:
            await player.close()

    try:
        run_virtual(main()) if spec.timeless else asyncio.run(main())
    finally:
        if batch:
            keep(batch)


def _with_workers(
    spec: GridSpec, cells: Sequence[Cell], opener: Opener, keep: Keep, go_on: GoOn, workers: int
) -> None:
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    ends: dict[Connection, Any] = {}
    try:
        for worker in range(workers):
            mine, theirs = context.Pipe(duplex=False)
            share = sorted(cells, key=lambda cell: cell.key)[worker::workers]
            process = context.Process(
                target=_work, args=(spec, share, opener, theirs, stop), daemon=True
            )
            process.start()
            theirs.close()
            ends[mine] = process
        _gather(ends, keep, go_on, stop)
    finally:
        stop.set()
        for end, process in ends.items():
            end.close()  # a worker that still has something to say hears that nobody listens, and ends
            process.join()


def _gather(ends: dict[Connection, Any], keep: Keep, go_on: GoOn, stop: Any) -> None:
    running = set(ends)
    while running:
        for end in wait(list(running)):
            assert isinstance(end, Connection)
            try:
                message: list[FinishedCell] | KitError | None = end.recv()
            except EOFError:
                raise DataError(
                    "a process of the grid died; run the grid again: it goes on from the finished cells"
                ) from None
            if message is None:
                running.discard(end)
            elif isinstance(message, list):
                keep(message)
                if not go_on():
                    stop.set()
            else:
                raise message


def _work(
    spec: GridSpec, cells: Sequence[Cell], opener: Opener, end: Connection, stop: Any
) -> None:
    """One process: sends batches of finished cells, then None, or the error a person can mend."""
    with suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            play_here(
                spec, cells, opener, lambda batch: end.send(list(batch)), lambda: not stop.is_set()
            )
            end.send(None)
        except KitError as error:
            end.send(DataError(str(error)))
