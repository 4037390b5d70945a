"""Endpoints of turns: one message in, its answer out, at once or as a stream that can be joined again."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import StringConstraints
from uuid_utils import uuid7

from kit.core.context import turn_id_of
from kit.service.bodies import (
    STREAM_ITEM,
    AnswerRequest,
    Id,
    ResumeRequest,
    RunRequest,
    RunResult,
    TurnList,
    TurnNow,
    TurnSummary,
)
from kit.service.identity import Who
from kit.service.service import STREAM, Serving

router = APIRouter(prefix="/agent")
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {STREAM: {"itemSchema": STREAM_ITEM}}, "description": "The turn"}
}
TurnId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,64}$"), Path()]
RequestKey = Annotated[str | None, StringConstraints(min_length=1, max_length=200), Header()]


@router.post("/run", response_model=RunResult, responses=EVENTS)
async def run(
    body: RunRequest,
    caller: Who,
    service: Serving,
    request: Request,
    idempotency_key: RequestKey = None,
) -> Any:
    """Answers one message. With an `Idempotency-Key` the same request joins the turn that it began
    before, or is told again how that ended."""
    caller.check(body.tenant_id, body.user_id, body.session_id)
    principal = caller.principal
    session = service.kit.session(body.session_id, principal.tenant_id, principal.user_id)
    if idempotency_key is None:
        turn_id = uuid7().hex
        await service.ask(caller, session, body.message, turn_id)
    else:
        turn_id = turn_id_of(principal, idempotency_key)
        turn_id = await service.ask_once(caller, session, body.message, turn_id)
    return await service.reply(request, turn_id, caller, stream=body.stream)


@router.get("/turns/{turn_id}/events", response_model=None, responses=EVENTS)
async def events(
    turn_id: TurnId,
    caller: Who,
    service: Serving,
    last_event_id: Annotated[int, Header(ge=-1, le=10**9)] = -1,
) -> Any:
    """Streams the events of a turn, after the one that `Last-Event-ID` names."""
    return await service.stream(turn_id, caller.principal, last_event_id + 1)


@router.post("/turns/{turn_id}/cancel")
async def cancel_turn(turn_id: TurnId, caller: Who, service: Serving) -> TurnNow:
    """Stops a turn, and waits until it has ended. One that has ended stays as it is."""
    served = await service.running(turn_id, caller.principal)
    if served is not None:
        served.turn.cancel()
        await asyncio.wait({served.turn.reply})
    record = service.record(turn_id, caller.principal)
    return TurnNow(turn_id=turn_id, status=record.status)


@router.post("/turns/{turn_id}/resume", response_model=RunResult, responses=EVENTS)
async def resume_turn(
    turn_id: TurnId, body: ResumeRequest, caller: Who, service: Serving, request: Request
) -> Any:
    """Lets a turn go on whose process died."""
    return await service.go_on(request, turn_id, None, caller, stream=body.stream)


@router.post("/turns/{turn_id}/answer", response_model=RunResult, responses=EVENTS)
async def answer_turn(
    turn_id: TurnId, body: AnswerRequest, caller: Who, service: Serving, request: Request
) -> Any:
    """Lets a turn go on that waits for its user's answer."""
    return await service.go_on(request, turn_id, body.answers, caller, stream=body.stream)


@router.get("/sessions/{session_id}/turns")
async def turns(
    session_id: Annotated[Id, Path()],
    caller: Who,
    service: Serving,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> TurnList:
    """Lists the turns of the caller's session, the newest first."""
    principal = caller.principal
    records = service.kit.store.turns(session_id, principal.tenant_id, principal.user_id, limit)
    summaries: list[TurnSummary] = []
    for record in records:
        summaries.append(
            TurnSummary(
                turn_id=record.id,
                session_id=record.session_id,
                message=record.message,
                response=record.text,
                status=record.status,
                pattern=record.pattern,
                model=record.model,
                started_at=record.started_at,
                seconds=record.seconds,
            )
        )
    return TurnList(turns=tuple(summaries))
