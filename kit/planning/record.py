"""A stored plan in the hands of one process: written at every transition, held by a lease that ends
soon after its holder."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kit.core.context import Principal
from kit.core.errors import ResumeError, StoreBusy, StoreError
from kit.planning.plan import OVER
from kit.runtime.act_ledger import Paused
from kit.stores.documents.document import Plan, PlanStatus
from kit.stores.documents.protocol import PlanStore

LEASE = 6.0
"""Seconds that a plan stays held, where its services say nothing else."""
PAUSE = 0.2
CANCEL = "cancel"
"""Who holds a plan for the moment in which it is cancelled."""


@dataclass(slots=True)
class PlanRecord:
    """The newest version of a plan, and the only way to a newer one."""

    plans: PlanStore
    principal: Principal
    owner: str
    plan: Plan
    lease: float
    """Seconds that the plan stays held when this process dies."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def move(self, change: Callable[[Plan], Plan]) -> Plan:
        """Writes what a change makes of the plan. Raises VersionConflict when somebody else has
        taken it over.

        A write that has begun is finished and waited for, even by a turn that is stopped: what it
        does next is made from it.
        """
        # A write that is cancelled half way leaves a version behind that nobody knows.
        write = asyncio.ensure_future(self._write(change))
        try:
            return await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait((write,))
            raise

    async def _write(self, change: Callable[[Plan], Plan]) -> Plan:
        async with self._lock:
            self.plan = await self.plans.replace(change(self.plan))
            return self.plan

    async def beat(self) -> None:
        """Extends the lease for as long as this runs. Raises VersionConflict when somebody else has
        had the plan since."""
        while True:
            await asyncio.sleep(self.lease / 3)
            with suppress(StoreBusy):  # the next one may come in time
                await self.move(self._extend)

    def _extend(self, plan: Plan) -> Plan:
        if plan.status in OVER:
            return plan
        return plan.replace(lease_expires=self.clock() + self.lease)


async def create(
    plans: PlanStore,
    plan: Plan,
    principal: Principal,
    owner: str,
    lease: float = LEASE,
    clock: Callable[[], float] = time.time,
) -> PlanRecord:
    """Stores a plan before anything is done for it (decisions 22). Raises VersionConflict where
    there is one of that id."""
    plan = plan.replace(lease_owner=owner, lease_expires=plan.created_at + lease)
    await plans.create(plan)
    return PlanRecord(plans, principal, owner, plan, lease, clock)


async def take(
    plans: PlanStore,
    plan_id: str,
    principal: Principal,
    owner: str,
    lease: float = LEASE,
    clock: Callable[[], float] = time.time,
) -> PlanRecord | None:
    """Takes a plan over once its last holder's lease is over; one that has ended is held by nobody, and given as it is.

    None where there is none: the process died before it was stored. Raises ResumeError for one that is at work.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + lease + 1
    while True:
        plan = await plans.read(principal, plan_id)
        if plan is None:
            return None
        if plan.status in OVER:
            return PlanRecord(plans, principal, owner, plan, lease, clock)
        if leased := await plans.lease(principal, plan_id, owner, lease):
            return PlanRecord(plans, principal, owner, leased, lease, clock)
        if loop.time() >= until:
            raise ResumeError(
                f"plan {plan_id!r} is at work elsewhere: stop it there, or wait until it ends"
            )
        await asyncio.sleep(min(PAUSE, lease / 3))


async def hold(
    record: PlanRecord, work: Coroutine[Any, Any, None], was_stopped: Callable[[], bool]
) -> None:
    """Does work under the lease, which is given back at the end, so that whoever resumes the plan
    need not wait.

    Work is stopped when the lease cannot be extended. Raises VersionConflict where that is because
    somebody else has taken it. `was_stopped` says whether the user has stopped the turn: the plan is
    then kept as `cancelled`, and one whose tool asked its user something as `paused`. One that ends
    with its process keeps its state, so that a worker may take it up.
    """
    waits_as: PlanStatus | None = None
    tasks = asyncio.create_task(work), asyncio.create_task(record.beat())
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            task.result()
    except Paused:
        waits_as = "paused"
        raise
    except asyncio.CancelledError:
        if was_stopped():
            waits_as = "cancelled"
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if record.plan.status not in OVER:
            with suppress(StoreError):
                await record.move(lambda plan: _released(plan, waits_as))


def _released(plan: Plan, waits_as: PlanStatus | None) -> Plan:
    return plan.replace(status=waits_as or plan.status, lease_owner=None, lease_expires=None)


async def cancel(plans: PlanStore, plan_id: str, principal: Principal) -> bool:
    """Keeps a plan as `cancelled` that nobody works on; False where somebody does. One that has ended stays."""
    plan = await plans.read(principal, plan_id)
    if plan is None or plan.status in OVER:
        return True
    plan = await plans.lease(principal, plan_id, CANCEL, LEASE)
    if plan is None:
        return False
    # It may have ended since it was read.
    await plans.replace(_released(plan, None if plan.status in OVER else "cancelled"))
    return True
