"""Plays cells in this process, or in other ones that send finished cells back in batches."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice

from kit.bench.grid.cell import GO_ON, Cell, Halt, Sample, sample_of
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
AHEAD = 2
"""Tasks that a process has or is about to get."""
Keep = Callable[[Sequence[FinishedCell]], object]
"""Takes finished cells; what it raises ends the run."""
HaltNow = Callable[[], Halt]
"""Says what must not begin any more."""
Part = tuple[list[FinishedCell], str]
"""What came of some cells in another process."""


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


def play_in_tasks(
    spec: GridSpec,
    cells: Sequence[Cell],
    begin: Callable[[Sequence[Cell]], Future[Part]],
    ahead: int,
    keep: Keep,
    halt: HaltNow,
) -> None:
    """Plays all cells in other processes: `begin` hands a few of them to one, and `ahead` says how many such
    tasks go out before the first has come back.

    No cell that `halt` forbids by then goes out; tasks in flight are kept. Raises DataError, in the
    words of the process that met it.
    """
    # A process plays a task in one piece: of a large one nothing is kept for long, and the loop of a
    # worker of a cluster is silent for so long that its scheduler gives it up.
    size = BATCH if spec.timeless else spec.concurrency
    waiting = iter([cells[start : start + size] for start in range(0, len(cells), size)])
    begun: set[Sample] = set()

    def begin_next() -> Future[Part] | None:
        """The next task that has a cell to play; None when there is none."""
        for batch in waiting:
            now = halt()
            allowed = [cell for cell in batch if not now.forbids(cell, begun)]
            if allowed:
                begun.update(map(sample_of, allowed))
                return begin(allowed)
        return None

    running = set(islice(iter(begin_next, None), ahead))
    while running:
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        for task in ended:
            finished, sentence = task.result()
            keep(finished)
            if sentence:
                raise DataError(sentence)
            following = begin_next()
            if following is not None:
                running.add(following)


def play_part(spec: GridSpec, opener: Opener, cells: Sequence[Cell]) -> Part:
    """In another process: the finished cells, and the sentence of the error that ended them, if one did."""
    finished: list[FinishedCell] = []
    try:
        play_here(spec, cells, opener, finished.extend, lambda: GO_ON)
    except KitError as error:
        return finished, str(error)
    return finished, ""


def _with_workers(
    spec: GridSpec, cells: Sequence[Cell], opener: Opener, keep: Keep, halt: HaltNow, workers: int
) -> None:
    # A forked process would share the loop and the SQLite files of this one.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _set_up, (spec, opener))

    def begin(part: Sequence[Cell]) -> Future[Part]:
        with _no_interrupt():
            return pool.submit(_play_part_of_grid, part)

    try:
        play_in_tasks(spec, cells, begin, AHEAD * workers, keep, halt)
    except BrokenProcessPool:
        raise DataError(
            "a process of the grid died; run the grid again: it goes on from the finished cells"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


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


_grid: list[tuple[GridSpec, Opener]] = []
"""What a process plays parts of: it comes once, and not with each part."""


def _set_up(spec: GridSpec, opener: Opener) -> None:
    _grid.append((spec, opener))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A pool whose parent was killed would wait for its next task for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play_part_of_grid(cells: Sequence[Cell]) -> Part:
    spec, opener = _grid[0]
    return play_part(spec, opener, cells)
