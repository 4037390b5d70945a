"""A sub-agent that is somewhere else: asked over A2A, with its progress, its spans and its spend as if it were here."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import Client, ClientCallContext
from a2a.types import AgentCard as PeerCard
from a2a.types import (
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
from pydantic import ValidationError

from kit.core.bodies.call import CallFailure, Hop, ModelEnded, ModelStarted, ToolEnded, ToolStarted
from kit.core.bodies.speech import Status
from kit.core.bodies.turn import Act, ActStarted
from kit.core.card import AgentCard, Policy
from kit.core.errors import STOP, StoreError, UpstreamError
from kit.core.event import Body, Event
from kit.core.language.controls import without_controls
from kit.core.outcome import AgentCall, Outcome, Usage, total
from kit.core.value import map_leaves
from kit.patterns.a2a.exchange import (
    CALLER,
    KEY,
    LONGEST,
    PRINCIPAL,
    Caller,
    Request,
    read_report,
    traceparent,
)
from kit.patterns.a2a.link import Link
from kit.runtime.act_ledger import LedgerEntry, act_of
from kit.runtime.context import RunContext
from kit.runtime.handoff import hide


@dataclass(slots=True)
class Traffic:
    """The messages of one call, as they cross a wire."""

    messages: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    writing: float = 0.0

    def send(self, request: SendMessageRequest) -> int:
        """Counts a message to the peer; returns its bytes."""
        size = self._size(request, (",", ":"))
        self.bytes_out += size
        return size

    def receive(self, update: StreamResponse) -> int:
        """Counts a message from the peer; returns its bytes."""
        size = self._size(update, (", ", ": "))
        self.bytes_in += size
        return size

    def _size(
        self, message: SendMessageRequest | StreamResponse, separators: tuple[str, str]
    ) -> int:
        clock = asyncio.get_running_loop().time
        began = clock()
        fields = MessageToDict(message)
        fields.get("statusUpdate", fields.get("task", {})).get("status", {}).pop(
            "timestamp", None
        )  # of no fixed length
        text = json.dumps(fields, separators=separators, ensure_ascii=False).encode()
        self.writing += clock() - began
        self.messages += 1
        return len(text)


GIVE_UP = 1.0
"""Seconds a peer gets to hear that its work is not wanted any more."""
NAMES = frozenset({"kind", "agent", "tool", "model", "call_id"})
"""Fields of an event that say what it is of, and no words of anybody."""
LONGEST_NAME = 64
"""Characters of the name of a tool that acts."""
FINAL = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
OURS = frozenset({"agent_started", "agent_ended", "agent_error", "status_line"})
"""Kinds that this side says itself: the far side's would say them twice."""
THEIRS = frozenset(
    [
        "model_started",
        "model_ended",
        "tool_started",
        "tool_ended",
        "act_started",
        "component",
        "envelope",
        "response_id",
        "reasoning",
        "refused",
        "status",
    ]
)
"""Kinds that a peer may add to the caller's turn, of its own agent: what the user reads and how a
turn ends is not its to say."""


def http_client(http: httpx.AsyncClient, peer: PeerCard) -> Client:
    """A client of one peer, over HTTP at the address its card gives."""
    return ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(peer)


@dataclass(frozen=True)
class RemoteAgent:
    """An agent like any other, for dispatch: the card is the deck's, the work is a peer's."""

    card: AgentCard
    client: Client
    policy: Policy
    time_budget: float | None = None
    link: Link | None = None
    """What its messages take; None where they cross for real, or nothing is to be said of it."""

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Sends the call and follows it to its end; a peer that cannot be reached is a failure, one
        that is given up is told."""
        headers = {
            "traceparent": traceparent(ctx.turn.log.turn_id, ctx.span_id),
            PRINCIPAL: str(ctx.inherited.principal),
        }
        context = ClientCallContext(service_parameters=headers)
        remote_call = _RemoteCall(ctx, self.card.id, ctx.turn.log.now())
        request = _request(call, ctx, self.card.handoff.closed)
        call = call.replace(agent=self.card.id)
        caller = CALLER.set(Caller(ctx.turn, remote_call.store))
        try:
            await self._cross(remote_call.traffic.send(request))
            stream: Any = self.client.send_message(request, context=context)
            async with aclosing(stream):
                async for update in stream:
                    await self._cross(remote_call.traffic.receive(update))
                    remote_call.hear(update)
        except A2AError as error:
            return call.failed("unavailable", f"{type(error).__name__}: {error}")
        finally:
            CALLER.reset(caller)
            remote_call.close()
            # A peer that is not told goes on working, and spending, for nobody.
            if not remote_call.is_final and remote_call.task_id:
                await _stop(self.client, remote_call.task_id, context)
        return remote_call.outcome(call)

    async def _cross(self, size: int) -> None:
        """Waits as long as a message of this size is under way."""
        if self.link is not None:
            await asyncio.sleep(self.link.seconds(size))


@dataclass(slots=True)
class _RemoteCall:
    """What one call to a peer has brought so far."""

    ctx: RunContext
    agent: str
    began: float
    task_id: str = ""
    next_seq: int = 0
    """Number of the first event of the far side that was not heard yet."""
    is_closed: bool = False
    """Whether nobody waits for the peer any more."""
    is_final: bool = False
    """Whether the peer has said that it is at work no more."""
    is_complete: bool = False
    """Whether it has said that what it sent is the whole of it."""
    text: str = ""
    result: Outcome | None = None
    spans: dict[str, str] = field(default_factory=dict[str, str])
    """The far side's spans under their names here."""
    calls: dict[str, ModelStarted | ToolStarted] = field(
        default_factory=dict[str, ModelStarted | ToolStarted]
    )
    """Span here -> a call of the far side that has begun and not ended."""
    acts: dict[str, LedgerEntry] = field(default_factory=dict[str, LedgerEntry])
    """Span here -> the act that began in it."""
    usage: list[Usage] = field(default_factory=list[Usage])
    """Of each call that has ended."""
    traffic: Traffic = field(default_factory=Traffic)

    def hear(self, update: StreamResponse) -> None:
        """Takes one update of the stream: a task, a status, an artifact, or a whole message."""
        kind = update.WhichOneof("payload")
        part: Any = getattr(update, kind) if kind else None
        match kind:
            case "task":
                self.task_id = part.id
                self._status(part.status, part.metadata)
            case "status_update":
                self._status(part.status, part.metadata)
            case "artifact_update":
                self.text += _text(part.artifact.parts)
                if len(self.text) > LONGEST:
                    raise UpstreamError(f"the peer's answer is longer than {LONGEST:,} characters")
            case "message":
                self.text = self.text or _text(part.parts)
                self.is_final = True
                self.is_complete = True
            case _:
                pass

    async def store(self, events: Sequence[Event]) -> None:
        """Takes the events of a far side in this process ahead of its stream, and stores them before an act begins.

        Raises StoreError where they are not stored, or where nobody waits for the act.
        """
        if self.is_closed:
            raise StoreError("the caller has given the agent up")
        for event in events:
            self._log_event(event, event.body)
        await self.ctx.turn.keep()

    def close(self) -> None:
        """Ends the calls that the peer did not end; without its outcome, what they spent is booked
        as far as it was heard."""
        self.is_closed = True
        gave_up = CallFailure(kind="cancelled")
        for span, call in list(self.calls.items()):
            if isinstance(call, ModelStarted):
                usage = Usage(model_calls=1, estimated=True)
                end = ModelEnded(
                    agent=call.agent, model=call.model, error=STOP, failure=gave_up, usage=usage
                )
            else:
                end = ToolEnded(
                    agent=call.agent,
                    tool=call.tool,
                    call_id=call.call_id,
                    error=STOP,
                    failure=gave_up,
                )
            self._log(end, span, self.ctx.span_id)
        if self.result is None:
            self.ctx.ledger.charge(total(self.usage))
        self.ctx.turn.log.emit(self._hop(), self.ctx.span_id, self.ctx.parent_span_id)

    def _hop(self) -> Hop:
        """What crossed and what that took; a peer that says it worked for longer than the call took is not believed."""
        result = self.result
        traffic = self.traffic
        elapsed = self.ctx.turn.log.now() - self.began
        usage = total(self.usage) if self.usage else None
        peer_seconds: float | None = None
        if result is not None:
            usage = result.usage
            if result.timing is not None and 0 <= result.timing.seconds <= elapsed + 1e-6:
                peer_seconds = result.timing.seconds
        seconds: float | None = None
        if peer_seconds is not None:
            # The difference of two clocks may come out below nothing.
            seconds = max(0.0, round(elapsed - peer_seconds, 6))
        return Hop(
            agent=self.agent,
            messages=traffic.messages,
            bytes_out=traffic.bytes_out,
            bytes_in=traffic.bytes_in,
            seconds=seconds,
            writing=round(traffic.writing, 6),
            peer_seconds=peer_seconds,
            usage=usage,
        )

    def outcome(self, call: AgentCall) -> Outcome:
        """The peer's typed outcome; the text of a peer that sends none."""
        if self.result is not None:
            return self.result.replace(call_id=call.call_id, agent=call.agent)
        if self.is_complete and self.text:
            return call.answered(self.text)
        return call.failed("unavailable", "the peer ended without a whole answer")

    def _status(self, status: Any, metadata: Any) -> None:
        state = status.state
        self.is_final = self.is_final or state in FINAL
        if KEY in metadata:
            report = read_report(str(metadata[KEY]))
            for event in report.events:
                self._log_event(event, self._named(event.body))
            self.result = report.outcome or self.result
        elif state == TaskState.TASK_STATE_COMPLETED:
            self.is_complete = True
            self.text = self.text or _text(status.message.parts)

    def _named(self, body: Body) -> Body:
        """The body as a peer in another process may say it: its acts have names that nobody's here have."""
        if isinstance(body, ActStarted):
            # Under another one's name it could keep that act from being done.
            tool = without_controls(body.tool)[:LONGEST_NAME]
            return body.replace(tool=tool, key=f"{self.agent}: {body.key}")
        return body

    def _log_event(self, event: Event, body: Body) -> None:
        """Logs an event of the far side under this call's span, once; the far side's agent span becomes this one."""
        if event.seq < self.next_seq:
            return
        self.next_seq = event.seq + 1
        log = self.ctx.turn.log
        if body.kind in OURS:
            self.spans.setdefault(event.span_id, self.ctx.span_id)
        # A peer speaks of its own agent alone: it could word another one's answer else.
        if body.kind not in THEIRS or getattr(body, "agent", self.agent) != self.agent:
            return
        if isinstance(body, Status):
            self.ctx.report(body)
            return
        span = self.spans.get(event.span_id) or self.spans.setdefault(event.span_id, log.new_span())
        if span == self.ctx.span_id:
            parent = self.ctx.parent_span_id
        else:
            parent = self.spans.get(event.parent_span_id or "", self.ctx.span_id)
        self._log(body, span, parent)

    def _log(self, body: Body, span: str, parent: str | None) -> None:
        match body:
            case ModelStarted() | ToolStarted():
                self.calls[span] = body
            case ModelEnded(usage=usage):
                self.calls.pop(span, None)
                self.usage.append(usage)
            case ToolEnded():
                self.calls.pop(span, None)
                self.usage.append(Usage(tool_calls=1))
                entry = self.acts.get(span)
                # What is settled in this process is known in full, and an event holds an excerpt.
                if entry is not None and entry.state == "started":
                    entry.act = act_of(body)
            case ActStarted(key=key):
                entry = self.ctx.turn.acts.entry(key)
                entry.act = entry.act or Act()
                entry.path = entry.path or self.ctx.path
                entry.what = entry.what or body.tool.replace("_", " ")
                self.acts[span] = entry
            case _:
                pass
        safe_body: Body | None = body
        if self.ctx.turn.private:
            safe_body = _without_values(body, self.ctx.turn.private)
        if safe_body is not None:
            self.ctx.turn.log.emit(safe_body, span, parent)


def _without_values(body: Body, private: Sequence[str]) -> Body | None:
    """The body without personal values, of which a peer in another process knows its own alone; None for one that
    is nothing without them."""
    fields = body.model_dump()

    def redact(leaf: Any) -> Any:
        return hide(leaf, private) if isinstance(leaf, str) else leaf

    safe_fields = map_leaves(fields, redact)
    for name in NAMES.intersection(fields):
        safe_fields[name] = fields[name]
    try:
        return type(body).model_validate(safe_fields)
    except ValidationError:
        return None


def _request(call: AgentCall, ctx: RunContext, closed: bool) -> SendMessageRequest:
    caller, _, step = ctx.path.rpartition("/")
    dynamic = ctx.turn.dynamic
    if closed:
        # Nothing crosses a closed hand-off that its card does not name.
        dynamic = dynamic.replace(location=None, in_play=())
    request = Request(
        call=call,
        inherited=ctx.inherited,
        dynamic=dynamic,
        caller=caller,
        place=step.removesuffix(f".{call.agent}"),
    )
    message = Message(
        message_id=call.call_id,
        context_id=str(ctx.inherited.session_key),
        role=Role.ROLE_USER,
        parts=[Part(text=call.query)],
        metadata={KEY: request.model_dump_json()},
    )
    return SendMessageRequest(message=message)


async def _stop(client: Client, task_id: str, context: ClientCallContext) -> None:
    """Tells a peer to stop, and waits no longer for it than `GIVE_UP`; a peer that does not listen
    changes nothing here."""
    with suppress(A2AError, TimeoutError):
        async with asyncio.timeout(GIVE_UP):
            await client.cancel_task(CancelTaskRequest(id=task_id), context=context)


def _text(parts: Sequence[Any]) -> str:
    return "\n".join(str(part.text) for part in parts if part.text)
