"""What the endpoints share: the kit, the turns that run here, and how a turn is begun, read and told of."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any
from uuid import uuid4
from weakref import WeakValueDictionary

from fastapi import Depends, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from kit.core.bodies.turn import ApprovalAsked, Completed, PlanEnded, PlanTaken
from kit.core.context import Principal, Session
from kit.core.documents.document import WAITING, Plan
from kit.core.errors import ResumeError, SessionError, VersionConflict
from kit.core.event import INTERNAL, Event
from kit.core.record import TurnRecord
from kit.core.secret import with_key, without_secret_words
from kit.core.value import json_of
from kit.patterns import pattern_of
from kit.patterns.plan_execute import PLAN, PLAN_EXECUTE
from kit.patterns.resume import Answers, plan_of, turns_of
from kit.planning.plan import OVER, new_plan
from kit.runtime.handle import Reply, Turn
from kit.runtime.message import clean
from kit.service.bodies import PlanFailure, RunResult
from kit.service.identity import Caller
from kit.service.limits import Limits, TurnCounts
from kit.service.queued_plans import QueuedPlans
from kit.service.turns import KeyReused, ServedTurn, ServedTurns
from kit.stores.documents.protocol import Documents
from kit.wire import Kit

STREAM = "text/event-stream"
KEEP_ALIVE = 15.0
"""Seconds of silence after which a stream sends a comment, so that a reader who is gone is noticed.
It stays well below SILENCE in kit/service/client.py, after which a client counts a stream as lost."""
PIECE = 2**16
"""Bytes after which a stream begins another piece: a server holds no more for a reader who is slow."""
GATHER = 4
"""Passes of the loop that a stream waits for after an event: what happens meanwhile goes out with it."""
SUCCESSION = 0.3
"""Seconds between two looks at a plan whose worker died, until another one has it."""
GONE = 499
"""What a log calls the reply to somebody who no longer waits for it."""


class Service:
    """A kit that answers over HTTP."""

    def __init__(
        self,
        kit: Kit,
        limits: Limits | None = None,
        pattern: str | None = None,
        queued_plans: QueuedPlans | None = None,
    ):
        """`pattern`: None takes plans where the deck can make them, else what the kit was opened with.
        `queued_plans`: where plans wait for a worker; None runs them here.

        Raises UnknownId for one that there is not.
        """
        self.kit = kit
        self.queued_plans = queued_plans
        self.limits = limits or Limits()
        self.tenants = TurnCounts(self.limits, kit.shared_turns)
        # Those that nobody waits for go by themselves.
        self._beginning: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.turns = ServedTurns(self.limits)
        self.ended_turns: Counter[str] = Counter()
        """Status -> turns that ended, since this began."""
        self.refused_calls = 0
        """Of tenants that had too many turns."""
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

    async def _record_now(self, turn_id: str, principal: Principal) -> TurnRecord | None:
        """Returns the record of a turn of a principal, as interrupted where its process has died since."""
        record = self.kit.store.turn(turn_id, principal)
        if (
            record is not None
            and record.status == "running"
            and not self.turns.of(turn_id, principal)
        ):
            # Only a look at its process tells a turn that runs elsewhere from one that died.
            await asyncio.to_thread(self.kit.store.mark_interrupted)
            record = self.kit.store.turn(turn_id, principal)
        return record

    async def begin(
        self, caller: Caller, start: Callable[[], Turn], *, is_plan: bool
    ) -> ServedTurn:
        """Begins a turn. Raises HTTPException 429 where the tenant has too many, and what `start` raises."""
        async with self._slot(caller) as slot:
            return self._serve(caller, slot, start(), is_plan=is_plan)

    async def go_on(
        self, request: Request, name: str, answers: Answers, caller: Caller, *, stream: bool
    ) -> Any:
        """Lets a turn or a plan go on, and returns what `reply` does. Raises what `resume` raises."""
        turn_id = await self.resume(name, answers, caller)
        return await self.reply(request, turn_id, caller, stream=stream)

    async def resume(self, name: str, answers: Answers, caller: Caller) -> str:
        """Lets a turn or a plan go on, and returns the id of the turn: a plan goes on in one of its own.

        Raises HTTPException 404 where there is none of the caller's, and what `begin` and `Kit.resume` raise.
        """
        if name.startswith(PLAN):
            await self.plan(name, caller.principal)
            is_plan = True
        else:
            await self._record_now(name, caller.principal)
            is_plan = self.record(name, caller.principal).pattern == PLAN_EXECUTE.name
        start = partial(self.kit.resume, name, answers, who=caller.principal, key=caller.key)
        served = await self.begin(caller, start, is_plan=is_plan)
        return served.turn.id

    def _serve(self, caller: Caller, slot: str, turn: Turn, *, is_plan: bool) -> ServedTurn:
        asker = _asker(caller)
        turn.on_end(lambda: self.tenants.end(asker, slot))
        turn.on_end(lambda: self._count_end(turn))
        return self.turns.add(turn, caller.principal, is_plan=is_plan)

    def _count_end(self, turn: Turn) -> None:
        status = "failed"
        if not turn.reply.cancelled() and turn.reply.exception() is None:
            status = turn.reply.result().status
        self.ended_turns[status] += 1

    @asynccontextmanager
    async def _slot(self, caller: Caller) -> AsyncGenerator[str]:
        """Counts a turn of the caller's tenant, which has begun once the block has ended without an error."""
        asker = _asker(caller)
        slot = uuid4().hex
        seconds = await self.tenants.begin(asker, slot)
        if seconds:
            self.refused_calls += 1
            headers = {"Retry-After": str(math.ceil(seconds))}
            raise HTTPException(429, "this tenant has too many turns", headers)
        try:
            yield slot
        except BaseException:
            self.tenants.end(asker, slot)
            raise

    async def ask(self, caller: Caller, session: Session, message: str, turn_id: str) -> ServedTurn:
        """Begins the turn of a message: here, or where plans wait for a worker, with one. Raises what `begin`
        raises, and BusError where the plan cannot be queued."""
        is_plan = self.pattern.is_plan
        if is_plan and self.queued_plans is not None and self.queued_plans.takes(caller.key):
            return await self._queue(self.queued_plans, caller, session, message, turn_id)
        start = partial(
            self.kit.ask, message, session, self.pattern, key=caller.key, turn_id=turn_id
        )
        return await self.begin(caller, start, is_plan=is_plan)

    async def _queue(
        self,
        queued_plans: QueuedPlans,
        caller: Caller,
        session: Session,
        message: str,
        turn_id: str,
    ) -> ServedTurn:
        """Queues a plan, stores it, and joins the turn that its worker is going to begin."""
        async with self._slot(caller) as slot:
            self.kit.store.open_session(session)
            task = self._as_stored(message, caller)
            plan = new_plan(f"{PLAN}{turn_id}", session.principal, session.id, task, time.time())
            # Not the other way round: what could not be queued, and was refused, is not taken up later.
            await queued_plans.put(plan, caller.key)
            await self.documents.plans.create(plan)
            return self._serve(caller, slot, self.kit.join(turn_id, plan.owner), is_plan=True)

    async def ask_once(self, caller: Caller, session: Session, message: str, turn_id: str) -> str:
        """Begins the turn of a request with an Idempotency-Key, or finds the one that the same request has begun, in
        this process or another. Returns the id of the turn that answers it.

        Raises KeyReused where that request had another session or message, and what `ask` raises.
        """
        async with self._beginning_lock(turn_id):
            begun = await self._begun(turn_id, caller, session.id, message)
            if begun is not None:
                return begun
            try:
                await self.ask(caller, session, message, turn_id)
            except VersionConflict:
                # At this moment the same request has begun it in another process.
                await self._begun(turn_id, caller, session.id, message)
            return turn_id

    def _beginning_lock(self, turn_id: str) -> asyncio.Lock:
        """Returns what requests of one Idempotency-Key wait for, so that the first of them alone begins the turn."""
        lock = self._beginning.get(turn_id)
        if lock is None:
            lock = asyncio.Lock()
            self._beginning[turn_id] = lock
        return lock

    def _as_stored(self, message: str, caller: Caller) -> str:
        secrets = self.kit.team.secrets
        if caller.key is not None:
            secrets = with_key(secrets, caller.key)
        return without_secret_words(clean(message), secrets)

    async def _begun(
        self, turn_id: str, caller: Caller, session_id: str, message: str
    ) -> str | None:
        """Returns the id of the turn that a request which came before has begun, or of the one that goes on with it
        where its process died; None where there is none. Raises KeyReused."""
        principal = caller.principal
        content = (session_id, self._as_stored(message, caller))
        served = self.turns.of(turn_id, principal)
        record = await self._record_now(turn_id, principal)
        plan = await self.documents.plans.read(principal, f"{PLAN}{turn_id}")
        if record is not None:
            earlier = (record.session_id, record.message)
        elif plan is not None:
            earlier = (plan.session_id, plan.original_task)
        else:
            # Where it is served it has begun in this moment, and is not stored yet.
            return turn_id if served is not None else None
        if earlier != content:
            raise KeyReused("this Idempotency-Key came with another request; take a new one")
        if record is None or record.status != "interrupted":
            return turn_id
        if plan is None and not self.kit.store.events(turn_id, principal):
            # Its process died before anything of it was stored: nothing was done, and it begins again.
            return None
        if plan is not None and (plan.status in WAITING or self._will_go_on(plan)):
            return turn_id
        if await self._successor(turn_id, served, principal) is not None:
            return turn_id
        return await self.resume(turn_id, None, caller)

    def _will_go_on(self, plan: Plan) -> bool:
        """Whether a worker takes a plan up whose process died."""
        return self.queued_plans is not None and plan.status not in OVER

    async def reply(self, request: Request, turn_id: str, caller: Caller, *, stream: bool) -> Any:
        """Returns a turn's events as a stream, or once it has ended, its result."""
        if stream:
            return await self.stream(turn_id, caller.principal)
        answering = asyncio.create_task(self._answer(turn_id, caller.principal))
        if await _ends_before_client_leaves(answering, request):
            return answering.result()
        return Response(status_code=GONE)

    async def _answer(self, turn_id: str, principal: Principal) -> RunResult:
        """Waits for a turn, and for each that goes on for it."""
        served = await self.running(turn_id, principal)
        while True:
            if served is not None:
                with self.turns.reading(served):
                    await asyncio.wait({served.turn.reply})
            successor = await self._successor(turn_id, served, principal)
            if successor is None:
                return await self._result(turn_id, served, principal)
            served = successor
            turn_id = served.turn.id

    async def _successor(
        self, turn_id: str, served: ServedTurn | None, principal: Principal
    ) -> ServedTurn | None:
        """Returns the turn that goes on with the plan of a turn that broke off, or went on to its end; None where
        there is none and none will come. `served` is the turn itself, where it was waited for."""
        # To look into the store cost every other turn half a millisecond.
        if served is not None and not _broke_off(served.turn):
            return None
        record = self.kit.store.turn(turn_id, principal)
        if record is not None and served is not None and _is_of_another_process(served.turn):
            return self._follow(turn_id, principal)
        if record is None or record.status != "interrupted":
            return None
        plan_id = plan_of(self.kit.store.events(turn_id, principal)) or f"{PLAN}{turn_id}"
        while True:
            plan = await self.documents.plans.read(principal, plan_id)
            if plan is None:
                return None
            is_at_rest = plan.status in (*OVER, *WAITING)
            next_id = self._last_told(record, plan) if is_at_rest else self._at_work(plan)
            if next_id not in (None, turn_id):
                running = self.turns.of(next_id, principal)
                if running is not None:
                    return running
                return self._follow(next_id, principal)
            if is_at_rest or not self._will_go_on(plan):
                return None
            await asyncio.sleep(SUCCESSION)

    def _last_told(self, record: TurnRecord, plan: Plan) -> str | None:
        """Returns the id of the newest turn that says how a plan stands: it did not break off, and had begun before the
        plan was over. One that a job brought twice has begun finds it over, and says no more than that."""
        for turn, _ in turns_of(self.kit, record, plan.plan_id):
            is_late = plan.completed_at is not None and turn.started_at > plan.completed_at
            if turn.status != "interrupted" and not is_late:
                return turn.id
        return None

    def _at_work(self, plan: Plan) -> str | None:
        """Returns the id of the turn that holds a plan; None where it has died."""
        if plan.holder is None:
            return None
        record = self.kit.store.turn(plan.holder, plan.owner)
        if record is not None and record.status == "interrupted":
            return None
        return plan.holder

    async def running(self, turn_id: str, principal: Principal) -> ServedTurn | None:
        """Returns a turn that runs, here or in another process; None for one that has ended.

        Raises HTTPException 404 where there is none of that principal.
        """
        served = self.turns.of(turn_id, principal)
        if served is None and await self._runs_elsewhere(turn_id, principal):
            served = self._follow(turn_id, principal)
        return served

    def _follow(self, turn_id: str, principal: Principal) -> ServedTurn:
        """Follows a turn of another process."""
        turn = self.kit.join(turn_id, principal)
        # Nobody knows here who reads it there: it is not stopped for want of readers.
        return self.turns.add(turn, principal, is_plan=True)

    async def _runs_elsewhere(self, turn_id: str, principal: Principal) -> bool:
        if self.kit.store.turn(turn_id, principal) is not None:
            return self.record(turn_id, principal).status == "running"
        try:
            plan = await self.plan(f"{PLAN}{turn_id}", principal)
        except HTTPException as error:
            raise HTTPException(404, "there is no such turn") from error
        return plan.status not in (*OVER, *WAITING)

    async def stream(
        self, turn_id: str, principal: Principal, from_seq: int = 0
    ) -> StreamingResponse:
        """Returns the events of a turn from a number on. Raises HTTPException 404 where there is no such turn."""
        served = await self.running(turn_id, principal)
        frames = self._frames(turn_id, served, principal, from_seq)
        # Without the second header some proxies gather a stream before they pass it on.
        headers = {"X-Turn-Id": turn_id, "X-Accel-Buffering": "no", "Cache-Control": "no-cache"}
        return StreamingResponse(frames, media_type=STREAM, headers=headers)

    async def _frames(
        self, turn_id: str, served: ServedTurn | None, principal: Principal, from_seq: int
    ) -> AsyncGenerator[bytes]:
        last = b""
        if served is None:
            for frames in _stored_frames(self.kit.store.events(turn_id, principal), from_seq):
                yield frames
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
        # The events of a turn that goes on for it are read under that one's id, which the result names.
        while successor := await self._successor(turn_id, served, principal):
            served = successor
            turn_id = served.turn.id
            with self.turns.reading(served):
                async for comment in _silence(served.turn):
                    yield last + comment
                    last = b""
        result = await self._result(turn_id, served, principal)
        yield last + format_sse_event(event="result", data_str=json_of(result))

    async def _result(
        self, turn_id: str, served: ServedTurn | None, principal: Principal
    ) -> RunResult:
        """Returns how a turn stands. Raises HTTPException 404 where there is none of that principal."""
        reply: Reply | None = None
        if served is not None:
            # The process of a turn of another one may have died.
            with suppress(ResumeError):
                reply = await served.turn
        if reply is not None:
            result = result_of(turn_id, reply.text, reply.status, reply.events)
        else:
            plan_id = f"{PLAN}{turn_id}"
            if self.kit.store.turn(turn_id, principal) is None:
                # A plan that its user stopped before a worker had begun it.
                await self.plan(plan_id, principal)
                return RunResult(turn_id=turn_id, response="", plan_id=plan_id, status="cancelled")
            record = self.record(turn_id, principal)
            events = self.kit.store.events(turn_id, principal)
            result = result_of(turn_id, record.text, record.status, events)
        if result.plan_id is None:
            return result
        plan = await self.documents.plans.read(principal, result.plan_id)
        if plan is not None and plan.status == "needs_key":
            return result.replace(status="needs_key")
        return result


def _asker(caller: Caller) -> str:
    return f"tenant:{caller.principal.tenant_id}"


def result_of(turn_id: str, text: str, status: Any, events: Sequence[Event]) -> RunResult:
    """Returns what a turn came to, from its text, its status and its events."""
    plan_id: str | None = None
    failure: PlanFailure | None = None
    questions: dict[str, str] = {}
    saved = True
    for event in events:
        match event.body:
            case Completed() as body:
                saved = body.saved
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
        saved=saved,
    )


def _piece(events: Sequence[Event], seq: int) -> tuple[bytes, int]:
    """Returns the frames of events from a number on, as many as go out at once, and the number after them."""
    frames: list[bytes] = []
    size = 0
    while seq < len(events) and size < PIECE:
        event = events[seq]
        seq += 1
        if event.kind not in INTERNAL:
            data = json_of(event)
            frame = format_sse_event(event=event.kind, id=str(event.seq), data_str=data)
            size += len(frame)
            frames.append(frame)
    return b"".join(frames), seq


def _stored_frames(events: Sequence[Event], seq: int) -> Iterator[bytes]:
    """Yields the frames of a turn that has ended, in pieces."""
    while seq < len(events):
        frames, seq = _piece(events, seq)
        yield frames


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
        # The rest is left in the log until it can be sent: a reader who is slow costs one piece.
        frames, seq = _piece(turn.events, seq)
        yield frames


async def _silence(turn: Turn) -> AsyncGenerator[bytes]:
    """Yields a comment now and then until a turn ends."""
    while not turn.done:
        yield format_sse_event(comment="silent")
        await asyncio.wait({turn.reply}, timeout=KEEP_ALIVE)


async def _ends_before_client_leaves(answering: asyncio.Task[Any], request: Request) -> bool:
    """Waits for work; False where whoever waits for it left before, and then it is stopped."""

    async def leave() -> None:
        # The body has been read: all that comes now says that the connection is gone.
        while (await request.receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.create_task(leave())
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return answering.done()
    finally:
        leaving.cancel()
        answering.cancel()


def _broke_off(turn: Turn) -> bool:
    """Whether a turn that is over ended without its plan, or with its process."""
    reply = turn.reply
    if reply.cancelled() or reply.exception() is not None:
        return True
    return reply.result().status == "interrupted"


def _is_of_another_process(turn: Turn) -> bool:
    """Whether a turn was refused because the same request had begun it elsewhere, at the same moment."""
    return not turn.reply.cancelled() and isinstance(turn.reply.exception(), SessionError)


async def _service(request: Request) -> Service:
    service: Service | None = request.app.state.service
    if service is None:
        raise HTTPException(503, "the kit is not open yet", {"Retry-After": "1"})
    return service


Serving = Annotated[Service, Depends(_service)]
