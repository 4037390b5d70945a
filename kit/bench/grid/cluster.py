"""Plays cells on a Dask cluster that runs already: tasks go out a few ahead, finished cells come back in batches."""

from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any

from kit.bench.grid.cell import Cell
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.player import Opener
from kit.bench.grid.workers import AHEAD, HaltNow, Keep, play_in_tasks, play_part
from kit.core.errors import DataError
from kit.core.extra import require

SCHEME = "dask://"
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
    with _client(address) as client:
        try:
            client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError as error:
            raise DataError(
                f"the cluster {address} has no workers; start one with: dask worker {_tcp(address)}"
            ) from error
        threads: dict[str, int] = client.nthreads()
        # It is made again where the worker that holds it dies.
        grid = client.submit(_the_same, spec, pure=False)
        begin = partial(client.get_executor(pure=False).submit, play_part, grid, opener)
        play_in_tasks(spec, cells, begin, AHEAD * sum(threads.values()), keep, halt)


@contextmanager
def _client(address: str) -> Generator[Any]:
    require("dask", "distributed")
    from distributed import Client
    from distributed.scheduler import KilledWorker

    try:
        client = Client(_tcp(address), timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"no Dask scheduler answers at {address}; start one with: dask scheduler"
        ) from error
    with client:
        try:
            yield client
        except (KilledWorker, CancelledError) as error:
            raise DataError(
                f"the cluster {address} lost its workers or its scheduler; {_AGAIN}"
            ) from error


def _tcp(address: str) -> str:
    return f"tcp://{address.removeprefix(SCHEME)}"


def _the_same(spec: GridSpec) -> GridSpec:
    return spec
