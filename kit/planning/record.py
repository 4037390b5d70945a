"""A stored plan in the hands of one turn: written at every transition, and fenced off from every turn
that had it before.

No clock says who holds a plan. Its holder writes it again and again; one that has stopped is known by
a version that stays the same, as whoever waits for the plan measures it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kit.core.context import Principal
from kit.core.documents.document import Plan, PlanStatus
from kit.core.errors import ResumeError, StoreBusy, StoreError, VersionConflict
from kit.planning.plan import OVER
from kit.runtime.act_ledger import Paused
from kit.runtime.budget import GRACE
from kit.stores.documents.protocol import MemoryStore, PlanStore

LEASE = 6.0
"""Seconds without a write after which a plan's holder counts as dead; in tests fewer (`PlanServices.lease`)."""
PAUSE = 0.2


@dataclass(slots=True)
class PlanRecord:
    """The newest version of a plan, and the only way to a newer one."""

    plans: PlanStore
    plan: Plan
    lease: float
    """Seconds after which others may take the plan when this process dies."""
    usage: Callable[[], dict[str, float]] | None = None
    """Says what the plan has taken by now; each write stores it. None until somebody works on the plan."""
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
            newer = change(self.plan)
            if self.usage is not None:
                # Also where the plan is given back in the middle of a step: what that took is not taken again.
                newer = newer.replace(usage=self.usage())
            self.plan = await self.plans.replace(newer)
            return self.plan

    async def beat(self) -> None:
        """Shows for as long as this runs that the plan is at work. Raises VersionConflict when somebody
        else has had the plan since."""
        while True:
            await asyncio.sleep(self.lease / 3)
            with suppress(StoreBusy):  # the next one may come in time
                await self.move(lambda plan: plan)


async def create(plans: PlanStore, plan: Plan, holder: str, lease: float = LEASE) -> PlanRecord:
    """Stores a plan before anything is done for it (decisions 22). Raises VersionConflict where
    there is one of that id.

    A turn that is stopped meanwhile is stopped once the plan is held: until then nobody would say of the plan, which
    is stored all the same, that its user stopped it.
    """
    plan = plan.replace(holder=holder, fence=1)
    write = asyncio.ensure_future(plans.create(plan))
    try:
        await asyncio.shield(write)
    except asyncio.CancelledError:
        await asyncio.wait((write,))
        write.result()
        turn = asyncio.current_task()
        if turn is not None:
            turn.uncancel()
            turn.cancel()
    return PlanRecord(plans, plan, lease)


async def take(
    plans: PlanStore, plan_id: str, principal: Principal, holder: str, lease: float = LEASE
) -> PlanRecord | None:
    """Takes a plan over that nobody holds, or whose holder has written nothing for as long as a lease;
    one that has ended is held by nobody, and given as it is.

    None where there is none: the process died before it was stored. Raises ResumeError for one that is at work.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + 1.5 * lease + 1
    version = 0
    silent_since = 0.0
    while True:
        plan = await plans.read(principal, plan_id)
        if plan is None:
            return None
        if plan.status in OVER:
            return PlanRecord(plans, plan, lease)
        now = loop.time()
        if plan.version != version:
            version = plan.version
            silent_since = now
        if plan.holder in (None, holder) or now - silent_since >= lease:
            with suppress(VersionConflict):  # somebody was quicker, or the holder lives
                plan = await plans.replace(plan.replace(holder=holder, fence=plan.fence + 1))
                return PlanRecord(plans, plan, lease)
        if now >= until:
            raise ResumeError(
                f"plan {plan_id!r} is at work elsewhere: stop it there, or wait until it ends"
            )
        await asyncio.sleep(min(PAUSE, lease / 3))


async def hold(
    record: PlanRecord, work: Coroutine[Any, Any, None], was_stopped: Callable[[], bool]
) -> None:
    """Does work while the plan is held. It is given back at the end, so that whoever resumes it need
    not wait.

    Work is stopped when the plan cannot be written. Raises VersionConflict where that is because
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
    except VersionConflict:
        newest = await record.plans.read(record.plan.owner, record.plan.plan_id)
        turn = asyncio.current_task()
        if newest is not None and newest.status == "cancelled" and turn is not None:
            # Its user stopped it, in another process: the turn ends as if that had happened here.
            record.plan = newest
            turn.cancel()
            await asyncio.sleep(0)
        raise
    finally:
        for task in tasks:
            task.cancel()
        try:
            # A client that closes may wait for a service that is silent. Its turn is left behind after GRACE, and with
            # it the plan would be held until its lease is over.
            await asyncio.wait(tasks, timeout=GRACE / 2)
        finally:
            # Also where this wait is broken off: on a busy machine the process may end before it is over.
            if record.plan.status not in OVER:
                with suppress(StoreError):
                    await record.move(lambda plan: _released(plan, waits_as))


def _released(plan: Plan, waits_as: PlanStatus | None) -> Plan:
    return plan.replace(status=waits_as or plan.status, holder=None)


async def cancel(plans: PlanStore, plan_id: str, principal: Principal) -> None:
    """Keeps a plan as `cancelled`; one that has ended stays as it is. Whoever works on it, in any
    process, can write it no more, and stops with its next write."""
    while True:
        plan = await plans.read(principal, plan_id)
        if plan is None or plan.status in OVER:
            return
        with suppress(VersionConflict):  # its holder has just written it
            await plans.replace(_released(plan, "cancelled").replace(fence=plan.fence + 1))
            return


async def outputs_of(plan: Plan, memories: MemoryStore) -> dict[int, Any]:
    """Returns step -> its output, of the steps that are done."""
    outputs: dict[int, Any] = {}
    for step in plan.steps:
        if step.status == "complete" and step.memory_key:
            memory = await memories.read(plan.owner, step.memory_key)
            if memory is not None:
                outputs[step.step_index] = memory.value
    return outputs
