"""What the endpoints share: the kit, the turns that run here, and how a turn is begun, read and told of."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from kit.core.bodies.turn import ApprovalAsked, PlanEnded, PlanTaken
from kit.core.context import Principal
from kit.core.event import INTERNAL, Event
from kit.core.record import TurnRecord
from kit.patterns import pattern_of
from kit.patterns.plan_execute import PLAN_EXECUTE
from kit.runtime.handle import Turn
from kit.service.bodies import PlanFailure, RunResult
from kit.service.identity import Caller
from kit.service.limits import Limits, TurnCounts
from kit.service.turns import ServedTurn, ServedTurns
from kit.stores.documents.document import Plan
from kit.stores.documents.protocol import Documents
from kit.wire import Kit

STREAM = "text/event-stream"
KEEP_ALIVE = 15.0
"""Seconds of silence after which a stream sends a comment, so that a reader who is gone is noticed."""
AT_ONCE = 32
"""Events that a stream sends in one piece at most."""
GATHER = 4
"""Passes of the loop that a stream waits for after an event: what happens meanwhile goes out with it."""
GONE = 499
"""What a log calls the reply to somebody who no longer waits for it."""


class Service:
    """A kit that answers over HTTP."""

    def __init__(self, kit: Kit, limits: Limits | None = None, pattern: str | None = None):
        """`pattern`: None takes plans where the deck can make them, else what the kit was opened with.

        Raises UnknownId for one that there is not.
        """
        self.kit = kit
        self.limits = limits or Limits()
        self.tenants = TurnCounts(self.limits)
        self.turns = ServedTurns(self.limits)
        self.pattern = kit.pattern
        if pattern is not None:
            self.pattern = pattern_of(pattern, kit.deck)
        elif kit.deck.settings.planning is not None:
            self.pattern = PLAN_EXECUTE

    @property
    def documents(self) -> Documents:
        return self.kit.store.open_documents()

    async def plan(self, plan_id: str, principal: Principal) -> Plan:
        """Returns a plan. Raises HTTPException 404 where there is none of that principal."""
        plan = await self.documents.plans.read(principal, plan_id)
        if plan is None:
            raise HTTPException(404, "there is no such plan")
        return plan

    def record(self, turn_id: str, principal: Principal) -> TurnRecord:
        """Returns the record of a turn. Raises HTTPException 404 where there is none of that principal."""
        record = self.kit.store.turn(turn_id, principal)
        if record is None:
            raise HTTPException(404, "there is no such turn")
        return record

    def begin(self, caller: Caller, start: Callable[[], Turn], *, is_plan: bool) -> ServedTurn:
        """Begins a turn. Raises HTTPException 429 where the tenant has too many, and what `start` raises."""
        tenant_id = caller.principal.tenant_id
        seconds = self.tenants.wait(tenant_id)
        if seconds:
            headers = {"Retry-After": str(math.ceil(seconds))}
            raise HTTPException(429, "this tenant has too many turns", headers)
        turn = start()
        self.tenants.count(tenant_id, turn)
        return self.turns.add(turn, caller.principal, is_plan=is_plan)

    async def reply(self, request: Request, turn_id: str, caller: Caller, *, stream: bool) -> Any:
        """Returns a turn's events as a stream, or once it has ended, its result."""
        if stream:
            return self.stream(turn_id, caller.principal)
        served = self.turns.of(turn_id, caller.principal)
        if served is not None:
            with self.turns.reading(served):
                if not await _ends_before_client_leaves(served.turn, request):
                    return Response(status_code=GONE)
        return await self._result(turn_id, served, caller.principal)

    def stream(self, turn_id: str, principal: Principal, from_seq: int = 0) -> StreamingResponse:
        """Returns the events of a turn from a number on. Raises HTTPException 404 where there is no such turn."""
        served = self.turns.of(turn_id, principal)
        if served is None:
            self.record(turn_id, principal)
        frames = self._frames(turn_id, served, principal, from_seq)
        # Without the second header some proxies gather a stream before they pass it on.
        headers = {"X-Turn-Id": turn_id, "X-Accel-Buffering": "no", "Cache-Control": "no-cache"}
        return StreamingResponse(frames, media_type=STREAM, headers=headers)

    async def _frames(
        self, turn_id: str, served: ServedTurn | None, principal: Principal, from_seq: int
    ) -> AsyncGenerator[bytes]:
        last = b""
        if served is None:
            events = self.kit.store.events(turn_id, principal)[from_seq:]
            for start in range(0, len(events), AT_ONCE):
                yield _frames_of(events[start : start + AT_ONCE])
        else:
            with self.turns.reading(served):
                async for frames in _live_frames(served.turn, from_seq):
                    if last:
                        yield last
                        last = b""
                    if served.turn.done:
                        # The last events go out with the result.
                        last = frames
                    else:
                        yield frames
        result = await self._result(turn_id, served, principal)
        yield last + format_sse_event(event="result", data_str=result.model_dump_json())

    async def _result(
        self, turn_id: str, served: ServedTurn | None, principal: Principal
    ) -> RunResult:
        """Returns how a turn stands. Raises HTTPException 404 where there is none of that principal."""
        if served is not None:
            reply = await served.turn
            result = result_of(turn_id, reply.text, reply.status, reply.events)
        else:
            record = self.record(turn_id, principal)
            events = self.kit.store.events(turn_id, principal)
            result = result_of(turn_id, record.text, record.status, events)
        if result.plan_id is None:
            return result
        plan = await self.documents.plans.read(principal, result.plan_id)
        if plan is not None and plan.status == "needs_key":
            return result.replace(status="needs_key")
        return result


def result_of(turn_id: str, text: str, status: Any, events: Sequence[Event]) -> RunResult:
    """Returns what a turn came to, from its text, its status and its events."""
    plan_id: str | None = None
    failure: PlanFailure | None = None
    questions: dict[str, str] = {}
    for event in events:
        match event.body:
            case PlanTaken() as body:
                plan_id = body.plan_id
            case PlanEnded(failure=dict() as fields):
                failure = PlanFailure(
                    reason=fields.get("reason", ""),
                    completed_steps=tuple(fields.get("completed_steps", ())),
                    last_failure=fields.get("last_failure"),
                )
            case ApprovalAsked(key=key, question=question) if status == "paused":
                questions[key] = question
            case _:
                pass
    return RunResult(
        turn_id=turn_id,
        response=text,
        plan_id=plan_id,
        status=status,
        failure=failure,
        questions=questions,
    )


def _frames_of(events: Sequence[Event]) -> bytes:
    frames: list[bytes] = []
    for event in events:
        if event.kind not in INTERNAL:
            data = event.model_dump_json()
            frames.append(format_sse_event(event=event.kind, id=str(event.seq), data_str=data))
    return b"".join(frames)


async def _live_frames(turn: Turn, from_seq: int) -> AsyncGenerator[bytes]:
    """Yields the events of a running turn to its end, and a comment where it is silent for long."""
    seq = from_seq
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE):
                if not await turn.wait_for(seq):
                    return
        except TimeoutError:
            yield format_sse_event(comment="silent")
            continue
        # What comes right after goes out together: a write of its own for each event cost a turn 1 ms.
        for _ in range(GATHER):
            await asyncio.sleep(0)
        # Not all of it: for a reader who is slow a whole turn would be held in memory.
        batch = turn.events[seq : seq + AT_ONCE]
        seq += len(batch)
        yield _frames_of(batch)


async def _ends_before_client_leaves(turn: Turn, request: Request) -> bool:
    """Waits for a turn; False where whoever waits for it left before."""

    async def leave() -> None:
        # The body has been read: all that comes now says that the connection is gone.
        while (await request.receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.create_task(leave())
    try:
        await asyncio.wait({turn.reply, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
    return turn.done


def _service(request: Request) -> Service:
    service: Service | None = request.app.state.service
    if service is None:
        raise HTTPException(503, "the kit is not open yet", {"Retry-After": "1"})
    return service


Serving = Annotated[Service, Depends(_service)]
