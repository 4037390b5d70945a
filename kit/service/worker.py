"""A worker: runs the plans of the queue, takes up those that a process left behind, and sweeps temporary files."""

import asyncio
import logging
import time
from functools import partial

from kit.core.documents.document import WAITING, Plan
from kit.core.errors import KitError, StoreError
from kit.patterns.plan_execute import PLAN, resumed
from kit.planning.plan import OVER
from kit.planning.record import LEASE, cancel
from kit.runtime.handle import Turn
from kit.service.queue import PlanJob
from kit.service.queued_plans import QueuedPlans
from kit.stores.bus.bus import BusError
from kit.tools.temp_files import HOUR, open_temp_files
from kit.wire import Kit

log = logging.getLogger("kit.worker")
PAUSE = 0.5
"""Seconds that a plan which was queued gets to be stored."""


async def work(kit: Kit, plans: QueuedPlans, at_once: int) -> None:
    """Works until it is cancelled."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(plans.queue.work(partial(run_plan, kit, plans), at_once))
        tasks.create_task(take_up_abandoned(kit, plans))
        tasks.create_task(_sweep_files())


async def run_plan(kit: Kit, plans: QueuedPlans, job: PlanJob) -> None:
    """Takes a plan to its end, from wherever it stands. One that has ended, or waits for its user, is left alone."""
    stored = kit.store.open_documents().plans
    plan = await stored.read(job.principal, job.plan_id)
    if plan is None:
        # It is queued before it is stored.
        await asyncio.sleep(PAUSE)
        plan = await stored.read(job.principal, job.plan_id)
    if plan is None or plan.status in (*OVER, *WAITING):
        return
    try:
        await _turn_of(kit, plan, plans)
    except KitError as error:
        # At work elsewhere, for one. Whoever looks for abandoned plans comes back to it.
        log.warning("plan %s is not taken up: %s", plan.plan_id, error)
        return
    plan = await stored.read(job.principal, job.plan_id)
    if plan is not None and plan.fence == 0:
        # Its message was answered without a plan: words of danger are, for one.
        await cancel(stored, plan.plan_id, plan.owner)
    if plan is not None and plan.status in OVER:
        await plans.drop_key(plan)


async def _turn_of(kit: Kit, plan: Plan, plans: QueuedPlans) -> None:
    """Runs the turn that works on a plan: the one that its request was promised, or where that has been, another."""
    turn = await _begin(kit, plan, plans)
    try:
        await turn
    except asyncio.CancelledError:
        # The queue is gone or given up. The turn ends with the kit, or goes on to the end of its plan.
        if not turn.done:
            raise


async def _begin(kit: Kit, plan: Plan, plans: QueuedPlans) -> Turn:
    key = await plans.key_of(plan)
    turn_id = plan.plan_id.removeprefix(PLAN)
    if kit.store.turn(turn_id, plan.owner) is not None:
        return kit.resume(plan.plan_id, who=plan.owner, key=key)
    session = kit.session(plan.session_id, plan.tenant_id, plan.user_id)
    pattern = resumed(plan.plan_id)
    return kit.ask(plan.original_task, session, pattern, key=key, turn_id=turn_id)


async def take_up_abandoned(kit: Kit, plans: QueuedPlans) -> None:
    """Queues each plan that has not been written for as long as a lease: its process died, or its place in the queue
    was lost with Redis."""
    versions: dict[str, int] = {}
    while True:
        try:
            unfinished = await kit.store.open_documents().plans.unfinished()
            for plan in unfinished:
                if versions.get(plan.plan_id) == plan.version:
                    await plans.put(plan)
            versions = {plan.plan_id: plan.version for plan in unfinished}
        except (StoreError, BusError) as error:
            log.warning("plans that were left behind are not looked for: %s", error)
        await asyncio.sleep(LEASE)


async def _sweep_files() -> None:
    """Removes temporary files of tasks whose process died, once an hour."""
    while True:
        await asyncio.to_thread(lambda: open_temp_files().sweep(time.time()))
        await asyncio.sleep(HOUR)
