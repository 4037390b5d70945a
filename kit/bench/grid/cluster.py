"""Plays cells on a Dask cluster that runs already: tasks go out a few ahead, finished cells come back in batches."""

from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from typing import Any

from kit.bench.grid.cell import GO_ON, Cell, Sample, sample_of
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import FinishedCell
from kit.bench.grid.player import Opener
from kit.bench.grid.workers import BATCH, HaltNow, Keep, play_here
from kit.core.errors import DataError, KitError
from kit.core.extra import require

SCHEME = "dask://"
AHEAD = 2
"""Tasks that a thread of the cluster has or is about to get."""
WAIT = 10
"""Seconds that the scheduler may take to answer."""
_AGAIN = "run the grid again: it goes on from the finished cells"


def play_on_cluster(
    address: str, spec: GridSpec, cells: Sequence[Cell], opener: Opener, keep: Keep, halt: HaltNow
) -> None:
    """Plays all cells on the workers of `dask://host:port`. A worker that dies loses its tasks;
    others play them.

    `opener` is called on the workers. No cell that `halt` forbids by then goes out in a further
    task; tasks in flight are kept. Raises SettingsError where Dask is not installed, DataError where the cluster
    does not answer, has no workers, or is lost.
    """
    # A worker plays a task in one piece: the larger it is, the longer its loop is silent, and a
    # scheduler that hears nothing for long gives a worker up.
    size = BATCH if spec.timeless else spec.concurrency
    batches = [cells[start : start + size] for start in range(0, len(cells), size)]
    with _client(address) as (client, as_completed):
        try:
            client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError as error:
            raise DataError(
                f"the cluster {address} has no workers; start one with: dask worker {_tcp(address)}"
            ) from error
        threads: dict[str, int] = client.nthreads()
        # It is made again where the worker that holds it dies.
        grid = client.submit(_the_same, spec, pure=False)
        waiting = iter(batches)
        begun: set[Sample] = set()

        def begin_next() -> Any:
            """The next task that has a cell to play; None when there is none."""
            for batch in waiting:
                now = halt()
                allowed: list[Cell] = []
                for cell in batch:
                    if not now.forbids(cell, begun):
                        allowed.append(cell)
                if allowed:
                    begun.update(map(sample_of, allowed))
                    return client.submit(_play, grid, allowed, opener, pure=False)
            return None

        at_first = AHEAD * sum(threads.values())
        first = list(islice(iter(begin_next, None), at_first))
        completed_tasks = as_completed(first, loop=client.loop)
        for task in completed_tasks:
            finished, sentence = task.result()
            keep(finished)
            if sentence:
                raise DataError(sentence)
            following = begin_next()
            if following is not None:
                completed_tasks.add(following)


@contextmanager
def _client(address: str) -> Generator[tuple[Any, Any]]:
    require("dask", "distributed")
    from distributed import Client, as_completed
    from distributed.scheduler import KilledWorker

    try:
        client = Client(_tcp(address), timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"no Dask scheduler answers at {address}; start one with: dask scheduler"
        ) from error
    with client:
        try:
            yield client, as_completed
        except (KilledWorker, CancelledError) as error:
            raise DataError(
                f"the cluster {address} lost its workers or its scheduler; {_AGAIN}"
            ) from error


def _tcp(address: str) -> str:
    return f"tcp://{address.removeprefix(SCHEME)}"


def _the_same(spec: GridSpec) -> GridSpec:
    return spec


def _play(spec: GridSpec, cells: Sequence[Cell], opener: Opener) -> tuple[list[FinishedCell], str]:
    """On a worker: the finished cells, and the sentence of the error that ended them, if one did."""
    finished: list[FinishedCell] = []
    try:
        play_here(spec, cells, opener, finished.extend, lambda: GO_ON)
    except KitError as error:
        return finished, str(error)
    return finished, ""
