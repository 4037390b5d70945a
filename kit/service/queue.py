"""The queue of plans that wait for a worker: streaq, over Redis Streams. Nothing else of the kit knows it.

It delivers a plan at least once, a killed worker's again after some seconds. A second run is harmless:
whoever takes a plan has the highest fence (kit/planning/record.py).
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from coredis.typing import RedisError
from streaq import Worker

from kit.core.context import Principal
from kit.core.documents.document import Plan
from kit.core.value import Value
from kit.stores.bus.bus import BusError
from kit.stores.bus.redis_bus import in_own_task, send

log = logging.getLogger("kit.queue")
NAME = "kit"
"""What streaq's keys in Redis have in common."""
IDLE = 3.0
"""Seconds after which what a dead worker held is given to another one."""
PAUSE = 1.0
"""Seconds before it is tried again to reach a Redis that is gone."""


def job_key(plan: Plan) -> str:
    """Returns the key of Redis under which streaq has what a plan was queued with. A worker that finds
    it gone drops the plan."""
    return f"streaq:{NAME}:task:data:{plan.plan_id}"


class PlanJob(Value):
    """A plan that is to be taken up. What it is about stands in the store, and its key nowhere here."""

    tenant_id: str
    user_id: str
    plan_id: str

    @property
    def principal(self) -> Principal:
        return Principal(tenant_id=self.tenant_id, user_id=self.user_id)


Run = Callable[[PlanJob], Awaitable[None]]


class PlanQueue:
    """Takes plans, and gives each to one worker after the other until one has finished it."""

    def __init__(self, worker: "Worker[None]", url: str):
        self._worker = worker
        self._url = url

    async def put(self, plan: Plan) -> None:
        """Adds a plan, once while it waits or is at work. Raises BusError."""
        job = PlanJob(tenant_id=plan.tenant_id, user_id=plan.user_id, plan_id=plan.plan_id)
        task = self._worker.registry["run_plan"].enqueue(job.model_dump())
        task.id = plan.plan_id
        await send(task)

    async def check(self) -> None:
        """Raises BusError where nothing can be queued now."""
        await send(self._worker.redis.ping())

    async def work(self, run: Run, at_once: int) -> None:
        """Runs what the queue gives, so many plans at once, until it is cancelled.

        A worker of streaq ends when Redis does; another one is started until Redis is there again.
        """
        while True:
            try:
                await _worker(self._url, run, at_once).run_async()
                return
            except* (RedisError, OSError) as errors:
                log.warning("the queue is gone, and looked for again: %s", errors.exceptions[0])
            await asyncio.sleep(PAUSE)


async def _nothing(job: PlanJob) -> None:
    """Stands for the work of a process that only adds plans."""


class DeafWorker(Worker[None]):
    """A worker that leaves signals to its process. Streaq's takes them even with `handle_signals=False`, and the
    process that is told to end would go on with an empty queue."""

    async def signal_handler(self, scope: object) -> None:
        """Listens to nothing."""


def _worker(url: str, run: Run, at_once: int = 1) -> Worker[None]:
    worker = DeafWorker(
        redis_url=url,
        queue_name=NAME,
        concurrency=at_once,
        prefetch=1,
        serializer=lambda data: json.dumps(data, default=str),
        deserializer=json.loads,
        handle_signals=False,
        idle_timeout=IDLE,
    )

    # Without these a plan that takes long, or whose workers die often, would be given up.
    @worker.task(name="run_plan", max_tries=None, timeout=None, ttl=0, silent=True)
    async def run_plan(job: dict[str, Any]) -> None:
        await run(PlanJob.model_validate(job))

    return worker


@asynccontextmanager
async def open_queue(url: str) -> "AsyncGenerator[PlanQueue]":
    """Opens the queue of a Redis. Raises BusError."""
    worker = _worker(url, _nothing)
    try:
        async with in_own_task(worker):
            yield PlanQueue(worker, url)
    except* RedisError as errors:
        raise BusError("the Redis of KIT_REDIS cannot be reached") from errors
