"""Endpoints of plans: what is stored of them, and their user's stop, resume and answer."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import StringConstraints

from kit.core.documents.document import Plan
from kit.planning.record import cancel as cancel_stored
from kit.service.bodies import (
    AnswerRequest,
    PlanList,
    PlanNow,
    PlanSummary,
    PlanTrace,
    ResumeRequest,
    RunResult,
)
from kit.service.identity import Who
from kit.service.runs import EVENTS
from kit.service.service import Serving
from kit.stores.documents.protocol import EventFilter

router = APIRouter(prefix="/agent/plans")
PlanId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,80}$"), Path()]
MOST_EVENTS = 10_000


@router.get("")
async def plans(
    caller: Who, service: Serving, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> PlanList:
    """Lists the caller's plans, the newest first."""
    stored = await service.documents.plans.of(caller.principal, limit)
    summaries = [PlanSummary.model_validate(plan, from_attributes=True) for plan in stored]
    return PlanList(plans=tuple(summaries))


@router.get("/{plan_id}")
async def plan(plan_id: PlanId, caller: Who, service: Serving) -> Plan:
    """Returns a plan whole: its steps with their states and memory keys, and what was planned anew."""
    return await service.plan(plan_id, caller.principal)


@router.get("/{plan_id}/trace")
async def trace(
    plan_id: PlanId,
    caller: Who,
    service: Serving,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = MOST_EVENTS,
) -> PlanTrace:
    """Returns what happened in a plan, in order."""
    stored = await service.plan(plan_id, caller.principal)
    by = EventFilter(tenant_id=stored.tenant_id, plan_id=plan_id)
    return PlanTrace(events=tuple(await service.documents.events.query(by, limit)))


@router.post("/{plan_id}/cancel")
async def cancel(plan_id: PlanId, caller: Who, service: Serving) -> PlanNow:
    """Stops a plan. Its user can let it go on later."""
    stored = await service.plan(plan_id, caller.principal)
    served = service.turns.of(stored.holder or "", caller.principal)
    if served is None and stored.holder is not None:
        served = await service.running(stored.holder, caller.principal)
    if served is not None:
        served.turn.cancel()
        await asyncio.wait({served.turn.reply})
    await cancel_stored(service.documents.plans, plan_id, caller.principal)
    stored = await service.plan(plan_id, caller.principal)
    return PlanNow(plan_id=plan_id, status=stored.status)


@router.post("/{plan_id}/resume", response_model=RunResult, responses=EVENTS)
async def resume(
    plan_id: PlanId, body: ResumeRequest, caller: Who, service: Serving, request: Request
) -> Any:
    """Lets a plan go on that was stopped or interrupted, or that waits for a key."""
    return await service.go_on(request, plan_id, None, caller, stream=body.stream)


@router.post("/{plan_id}/answer", response_model=RunResult, responses=EVENTS)
async def answer(
    plan_id: PlanId, body: AnswerRequest, caller: Who, service: Serving, request: Request
) -> Any:
    """Lets a plan go on that waits for its user's answer. A bare yes or no is one to its first question: those after it
    are answered by their keys, or by the turn that asks."""
    return await service.go_on(request, plan_id, body.answers, caller, stream=body.stream)
