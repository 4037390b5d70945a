"""Plans over two workers and Redis, while one of them is killed again and again, or Redis is.

`python -m tests.worker_kills 100 20` plays 100 plans and kills a worker 20 times; `--redis` kills Redis twice as
well; `--clock 3600` puts the clock of one worker an hour off; `--workers 4` and no kills say how fast plans are run;
`--store URL` takes another store; `--opensearch` keeps the documents in an OpenSearch of its own. It ends with 1 where a plan was lost or an act made twice.
"""

import argparse
import asyncio
import fcntl
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from kit.core.documents.document import Plan
from kit.planning.plan import new_plan
from kit.planning.record import LEASE
from kit.service import queue, worker
from kit.service.queued_plans import QueuedPlans, open_queued_plans
from kit.service.worker import work
from kit.settings import Settings
from kit.stores.opening import open_store
from kit.stores.turn_store import TurnStore
from kit.tools.skill import SkillResult
from tests.forks import FORKS, started
from tests.kits import ALICE
from tests.opensearch_server import opensearch_server
from tests.plan_kits import Rows, opened_plans, row_result
from tests.redis_server import RedisServer, redis_server

SECONDS = 0.05
"""What one act takes."""


class ActLog(Rows):
    """A skill that acts: each act is a line of a file that outlives every process. It honours keys."""

    def __init__(self, path: Path):
        super().__init__(honours_keys=True)
        self.path = path

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        await asyncio.sleep(SECONDS)
        with self.path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if idempotency_key not in file.read().split():
                file.write(f"{idempotency_key}\n")
        await asyncio.sleep(SECONDS)
        return row_result(skill, arguments["task"])


async def run_worker(workers: "Workers", works: Event) -> None:
    """What a worker's process does until it is killed."""
    settings = Settings(redis=workers.redis)
    log = ActLog(workers.folder / "acts.log")
    async with (
        opened_plans(
            workers.folder,
            log,
            redis=workers.redis,
            store=workers.store,
            documents=workers.documents or None,
            lease=workers.lease,
        ) as kit,
        open_queued_plans(settings) as plans,
    ):
        assert plans is not None
        works.set()
        await work(kit, plans, 8)


def run_worker_by(clock: float, workers: "Workers", works: Event) -> None:
    """Runs a worker whose clock is so many seconds off."""
    true_time = time.time
    time.time = lambda: true_time() + clock
    worker.LEASE = workers.lease
    queue.IDLE = min(queue.IDLE, workers.lease)
    asyncio.run(run_worker(workers, works))


@dataclass
class Workers:
    """The processes of some workers."""

    folder: Path
    redis: str
    store: str
    documents: str
    """Where documents are that are not in the store; empty for none."""
    clocks: tuple[float, ...]
    """By how many seconds the clock of each is off."""
    lease: float = LEASE
    """Seconds without a word after which a plan counts as left behind."""
    processes: list[BaseProcess] = field(default_factory=list[BaseProcess])

    def start(self, number: int) -> BaseProcess:
        """Starts one, and returns once it works."""
        works = FORKS.Event()
        settings = replace(self, processes=[])
        process = started(run_worker_by, self.clocks[number], settings, works)
        assert works.wait(60), "the worker does not start"
        return process

    def start_all(self) -> None:
        for number in range(len(self.clocks)):
            self.processes.append(self.start(number))

    def kill(self, number: int) -> None:
        """Kills one with -9, and starts another in its place."""
        self.processes[number].kill()
        self.processes[number].join()
        self.processes[number] = self.start(number)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


@dataclass(frozen=True)
class Result:
    """What became of the plans."""

    plans: int
    complete: int
    acts: Counter[str]
    """Key of an act -> how often it was made."""
    seconds: float

    @property
    def faults(self) -> list[str]:
        """What should not be."""
        faults: list[str] = []
        if self.complete != self.plans:
            faults.append(f"{self.plans - self.complete} plans are not complete")
        # Each of these plans has two steps, and each step acts once.
        if len(self.acts) != 2 * self.plans:
            faults.append(f"{len(self.acts)} acts in the place of {2 * self.plans}")
        twice = sum(count > 1 for count in self.acts.values())
        if twice:
            faults.append(f"{twice} acts were made twice")
        return faults


async def play(
    folder: Path,
    server: RedisServer,
    plans: int,
    kills: int,
    *,
    redis_kills: int = 0,
    workers: int = 2,
    place: str = "",
    documents: str = "",
    clock: float = 0.0,
    seed: int = 1,
    seconds: float = 600.0,
) -> Result:
    """Queues plans, kills one worker of two so often at random moments, and waits until all plans have ended."""
    draws = random.Random(seed)
    place = place or str(folder / "kit.db")
    # The store is laid out before two workers meet it.
    store = open_store(place, documents=documents or None)
    store.open_documents()
    clocks = (clock, *[0.0] * (workers - 1))
    processes = Workers(folder, server.url, place, documents, clocks)
    try:
        processes.start_all()
        began = time.monotonic()
        async with open_queued_plans(Settings(redis=server.url)) as queued:
            assert queued is not None
            await _queue(store, queued, plans)
            redis_turns = set(draws.sample(range(kills), redis_kills))
            for number in range(kills):
                await asyncio.sleep(draws.uniform(0.2, 1.2))
                await asyncio.to_thread(processes.kill, number % workers)
                if number in redis_turns:
                    server.kill()
                    await asyncio.sleep(draws.uniform(0.1, 1.0))
                    server.start()
        async with asyncio.timeout(seconds):
            while await store.open_documents().plans.unfinished(plans):
                await asyncio.sleep(0.2)
    finally:
        processes.end()
    stored = await store.open_documents().plans.of(ALICE.principal, plans)
    store.close()
    acts = Counter((folder / "acts.log").read_text().split())
    complete = sum(plan.status == "complete" for plan in stored)
    return Result(plans, complete, acts, time.monotonic() - began)


async def _queue(store: TurnStore, queued: QueuedPlans, plans: int) -> None:
    for number in range(plans):
        session_id = f"s{number}"
        plan: Plan = new_plan(
            f"plan_{number:04}", ALICE.principal, session_id, f"part {number}", time.time()
        )
        await store.open_documents().plans.create(plan)
        await queued.put(plan)


def main() -> int:
    """Plays what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plans", type=int)
    parser.add_argument("kills", type=int)
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--clock", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--store", default="")
    parser.add_argument("--opensearch", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(redis_server(name))
        documents = ""
        if arguments.opensearch:
            documents = stack.enter_context(opensearch_server()).place("", refresh="30s")
        result = asyncio.run(
            play(
                Path(name),
                server,
                arguments.plans,
                arguments.kills,
                redis_kills=2 if arguments.redis else 0,
                clock=arguments.clock,
                workers=arguments.workers,
                place=arguments.store,
                documents=documents,
                seed=arguments.seed,
            )
        )
    print(
        f"{result.complete} of {result.plans} plans complete, {sum(result.acts.values())} acts, "
        f"{result.seconds:.1f} s; {'; '.join(result.faults) or 'nothing lost, nothing twice'}"
    )
    return 1 if result.faults else 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A process that is forked finds what it runs in the module of that name alone.
    from tests import worker_kills

    sys.exit(worker_kills.main())
