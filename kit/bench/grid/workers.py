"""Plays cells in this process, or in one process for each core that sends finished cells back in batches."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from multiprocessing.connection import Connection, wait
from typing import Any

from kit.bench.grid.cell import GO_ON, Cell, Halt, by_sample
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import FinishedCell
from kit.bench.grid.player import Opener, Player
from kit.core.errors import DataError, KitError
from kit.core.model import RateLimits
from kit.runtime.clock import run_virtual
from kit.tools.bounds import DaemonThreads

NO_LIMITS = RateLimits()
WORTH = 5000
"""Cells for which starting processes pays: each takes some two seconds of CPU until its first turn."""
BATCH = 32
Keep = Callable[[Sequence[FinishedCell]], object]
"""Takes finished cells; what it raises ends the run."""
HaltNow = Callable[[], Halt]
"""Says what must not begin any more."""


def play(
    spec: GridSpec,
    cells: Sequence[Cell],
    opener: Opener,
    keep: Keep,
    halt: HaltNow,
    workers: int | None,
) -> None:
    """Plays all cells; `workers` None is one a core where time is virtual and there is enough to
    do, else none but this process.

    No cell is begun that `halt` forbids by then; those in flight are kept.
    """
    if workers is None:
        workers = cores() if spec.virtual and len(cells) >= WORTH else 1
    # The gate that keeps a model's limits is in one process.
    has_limits = any(model.limits != NO_LIMITS for model in spec.every_model.values())
    if workers > 1 and not has_limits:
        _with_workers(spec, cells, opener, keep, halt, workers)
    else:
        play_here(spec, cells, opener, keep, halt)


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def play_here(
    spec: GridSpec, cells: Sequence[Cell], opener: Opener, keep: Keep, halt: HaltNow
) -> None:
    """In this process and thread. What costs money is kept at once, the rest in batches."""
    batch: list[FinishedCell] = []
    costs_nothing = spec.virtual and spec.grid.limits.dollars is None
    batch_size = BATCH if costs_nothing else 1

    def keep_one(cell: FinishedCell) -> None:
        batch.append(cell)
        if len(batch) >= batch_size:
            full = batch.copy()
            batch.clear()
            keep(full)

    async def main() -> None:
        if spec.systems:
            # A plain function that hangs is left behind, and must not keep the run from ending.
            asyncio.get_running_loop().set_default_executor(DaemonThreads())
        player = Player(spec, opener)
        try:
            await player.play(cells, keep_one, halt)
        finally:
            await player.close()

    try:
        run_virtual(main()) if spec.timeless else asyncio.run(main())
    finally:
        if batch:
            keep(batch)


def _with_workers(
    spec: GridSpec, cells: Sequence[Cell], opener: Opener, keep: Keep, halt: HaltNow, workers: int
) -> None:
    # A forked process would share the loop and the SQLite files of this one.
    context = multiprocessing.get_context("spawn")
    ends: dict[Connection, Any] = {}
    samples = by_sample(cells)
    try:
        for worker in range(workers):
            mine, theirs = context.Pipe()
            # Whole samples, so that each process can finish on every way what it has begun
            share = list(chain.from_iterable(samples[worker::workers]))
            process = context.Process(target=_work, args=(spec, share, opener, theirs), daemon=True)
            with _no_interrupt():
                process.start()
            theirs.close()
            ends[mine] = process
        _gather(ends, keep, halt)
    finally:
        for end, process in ends.items():
            with suppress(OSError):
                end.send(Halt(everything=True))
            # A worker that still has something to say hears that nobody listens, and ends.
            end.close()
            process.join()


@contextmanager
def _no_interrupt() -> Generator[None]:
    """Processes that are started in here are left alone by Ctrl-C.

    A terminal sends it to every process of the command. One that is still importing its modules
    would end with a traceback; this process tells all of them to stop.
    """
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may say what a signal does, and only it is interrupted.
        yield
        return
    earlier = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)


def _gather(ends: dict[Connection, Any], keep: Keep, halt: HaltNow) -> None:
    running = set(ends)
    last_sent = halt()
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
            else:
                raise message
        current = halt()
        if current != last_sent:
            last_sent = current
            for end in running:
                # One that has just ended does not hear it.
                with suppress(OSError):
                    end.send(current)


class _ToldByParent:
    """The halt that the process which gathers the cells has sent last."""

    def __init__(self, end: Connection):
        self._end = end
        self._halt = GO_ON

    def __call__(self) -> Halt:
        while self._end.poll():
            self._halt = self._end.recv()
        return self._halt


def _work(spec: GridSpec, cells: Sequence[Cell], opener: Opener, end: Connection) -> None:
    """One process: sends batches of finished cells, then None, or the error a person can mend."""
    # A parent that is gone closes its end: EOFError where this side reads, BrokenPipeError where it writes
    with suppress(EOFError, OSError, KeyboardInterrupt):
        try:
            play_here(spec, cells, opener, lambda batch: end.send(list(batch)), _ToldByParent(end))
            end.send(None)
        except KitError as error:
            end.send(DataError(str(error)))
