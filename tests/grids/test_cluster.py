"""A grid on a Dask cluster: workers in processes of their own, over TCP."""

import os
import runpy
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.run import RESULTS, run_grid
from kit.bench.grid.workers import BATCH
from kit.core.errors import DataError, SettingsError
from kit.experiment_kits import WorkerKits
from tests.forks import started
from tests.grids.test_grid import OPENER, spec_of
from tests.loopback_openai import Say, loopback

pytestmark = pytest.mark.realtime
WORKER_KEY = "sk-of-the-workers-0002"


@dataclass(frozen=True)
class Cluster:
    address: str
    workers: tuple[BaseProcess, ...]


def run_dask(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """`dask` in a process of its own, with an environment of its own."""
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.argv = ["dask", *arguments]
    runpy.run_module("dask", run_name="__main__")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    """A scheduler, and two workers in processes and environments of their own, over TCP."""
    # Every process of the tests reads this file, and one of them plays it.
    from distributed import LocalCluster

    environment = {
        **os.environ,
        "OWN_API_KEY": WORKER_KEY,
        "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
    }
    options: dict[str, Any] = {"n_workers": 0, "host": "127.0.0.1", "dashboard_address": None}
    scheduler: Any = LocalCluster(**options)
    with ExitStack() as stack:
        stack.callback(scheduler.close)
        address: str = scheduler.scheduler_address
        place = ("--local-directory", str(tmp_path_factory.mktemp("dask")), "--host", "127.0.0.1")
        arguments = ["worker", address, *place, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        workers = tuple(started(run_dask, arguments, environment) for _ in range(2))
        for worker in workers:
            stack.callback(worker.join)
            stack.callback(worker.kill)
        scheduler.wait_for_workers(2)
        yield Cluster(address.replace("tcp", "dask"), workers)


@pytest.mark.req("K-9")
def test_keys_never_travel_and_workers_use_those_of_their_own_environment(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OWN_API_KEY", "sk-of-this-machine-0001")
    with loopback() as server:
        server.plays(*[Say(["It is nothing."])] * 20)
        spec = spec_of(
            tmp_path,
            models=["own"],
            specs={
                "own": {"provider": "openai", "base_url": server.url, "api_key_env": "OWN_API_KEY"}
            },
            cases=[{"file": "data/cases/fastpath.jsonl", "take": 2}],
        )
        kits = WorkerKits(spec.virtual)
        run = run_grid(spec, tmp_path / "out", kits, on=cluster.address)
    assert run.complete and run.done == 2 and set(server.bearers) == {WORKER_KEY}


@pytest.mark.req("K-9")
def test_a_cluster_that_loses_a_worker_plays_every_cell_once_with_the_bytes_of_a_run_here(
    cluster: Cluster, tmp_path: Path
):
    spec = spec_of(
        tmp_path,
        patterns=["mediated", "direct"],
        cases=[{"file": "data/cases/mixed.jsonl", "every": 3}],
        sub_agents="stubs",
    )
    counts: list[int] = []

    def kill(done: int, total: int) -> None:
        counts.append(done)
        if len(counts) == 2:  # the first batch is here, and every worker has its next
            cluster.workers[0].kill()

    run = run_grid(
        spec, tmp_path / "cluster", WorkerKits(spec.virtual), progress=kill, on=cluster.address
    )
    cluster.workers[0].join(60)
    assert cluster.workers[0].exitcode == -signal.SIGKILL and cluster.workers[1].is_alive()
    assert run.complete and counts[-1] == run.total > 6 * BATCH
    run_grid(spec, tmp_path / "here", OPENER, 1)
    results = [(tmp_path / name / RESULTS).read_bytes() for name in ("cluster", "here")]
    assert results[0] == results[1], "every cell once, as it is played here"


def test_a_cluster_that_cannot_play_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    spec, kits = spec_of(tmp_path), WorkerKits(virtual=True)
    monkeypatch.setattr("kit.bench.grid.cluster.WAIT", 0.5)
    play = partial(run_grid, spec, tmp_path / "out", kits, on="dask://127.0.0.1:1")
    with pytest.raises(DataError, match=r"no Dask scheduler .*:1; start one with: dask scheduler"):
        play()
    with pytest.raises(DataError, match="traces are kept on this machine"):
        play(traces=True)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingsError, match=r"pip install 'subagent-kit\[dask\]'"):
        play()
