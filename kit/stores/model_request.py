"""What a model was sent: what its turn's events tell, with the prompt of its cohort and the
conversation that the store keeps."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from kit.core.bodies.call import (
    PREFIX,
    AgentStarted,
    ModelEnded,
    ModelStarted,
    RequestMessage,
)
from kit.core.bodies.turn import TurnStarted
from kit.core.event import Body, Event
from kit.core.record import Message, TurnRecord
from kit.core.value import Value
from kit.stores.protocol import Store
from kit.stores.recall import repeated_turn

B = TypeVar("B", bound=Body)
SUMMED_UP = "Earlier in this conversation: "
"""What stands before the summary of old turns in a system message."""
SHOWN = "\nShown to the user last, by position:\n"
"""What stands before the references to what a user was shown."""
ALL = 100_000
"""Turns of one conversation, and lines of it, that are looked through."""
READ = 40
"""Lines of earlier turns up to which a request holds all that there are."""


class ModelRequest(Value):
    """What a model was sent, ids of calls aside; what the trace hides is hidden."""

    agent: str
    model: str
    purpose: str
    cohort: str = ""
    """Names the prompt that `rest` follows; empty where it follows none."""
    prompt: str = ""
    """The stable part of the system message, the same for the whole cohort."""
    rest: str = ""
    """What follows it, or the whole system message."""
    tools: tuple[dict[str, Any], ...] = ()
    """Schemas of the tools it could call; empty in a helper's call, whose one tool belongs to its job."""
    earlier: int = 0
    """Lines of earlier turns that come before the turn's own messages."""
    history: tuple[RequestMessage, ...] = ()
    """These lines, where they are known."""
    messages: tuple[RequestMessage, ...] = ()
    gap: str = ""
    """What of it is not known, and why; empty where nothing is missing."""

    @property
    def system(self) -> str:
        """The system message, whole."""
        return self.prompt + self.rest


def request_in(events: Sequence[Event], span_id: str) -> ModelRequest | None:
    """Returns the request of a model call as far as its turn tells it; None where the span is no model call."""
    starts = [(event, body) for event in events if isinstance(body := event.body, ModelStarted)]
    last = next(((event, body) for event, body in starts if event.span_id == span_id), None)
    if last is None:
        return None
    caller = (last[0].parent_span_id, last[1].agent)
    own: list[tuple[Event, ModelStarted]] = []
    for e, b in starts:
        if (e.parent_span_id, b.agent) == caller and e.seq <= last[0].seq:
            own.append((e, b))
    replies = {event.span_id: event.body for event in events if isinstance(event.body, ModelEnded)}
    earlier = 0
    system = ""
    messages = list[RequestMessage]()
    for place, (event, body) in enumerate(own):
        if place:
            earlier = min(body.before, earlier)
        else:
            earlier = body.before
        messages = [*messages[: body.before - earlier], *body.input]
        system = body.system or system
        reply = replies.get(event.span_id)
        if event.span_id != span_id and reply is not None and reply.error is None:
            messages.append(RequestMessage(role="ai", text=reply.text, calls=reply.calls))
    system = whole_system(last[1].replace(system=system), events).system
    return ModelRequest(
        agent=last[1].agent,
        model=last[1].model,
        purpose=last[1].purpose,
        cohort=_cohort(events, last[0].parent_span_id) if system.startswith(PREFIX) else "",
        rest=system.removeprefix(PREFIX),
        earlier=earlier,
        messages=tuple(messages),
    )


def whole_system(body: B, events: Iterable[Event]) -> B:
    """Returns the start of a model call with the lines of the turn's first call, where it only says
    that they are the same."""
    if not isinstance(body, ModelStarted) or body.system != PREFIX:
        return body
    systems = (event.body.system for event in events if isinstance(event.body, ModelStarted))
    return body.replace(
        system=next((system for system in systems if system.startswith(PREFIX)), PREFIX)
    )


def as_json(request: ModelRequest) -> str:
    """Returns a request as JSON for a person or a program: system, tools, and every message in its order."""
    own = request.model_dump(mode="json", include={"model", "tools", "gap"}, exclude_defaults=True)
    messages = [
        message.model_dump(mode="json", exclude_defaults=True)
        for message in (*request.history, *request.messages)
    ]
    if request.system:
        system = [{"role": "system", "text": request.system}]
    else:
        system = []
    return json.dumps({**own, "messages": [*system, *messages]}, indent=2, ensure_ascii=False)


def _cohort(events: Iterable[Event], span_id: str | None) -> str:
    bodies = (event.body for event in events if event.span_id == span_id)
    for body in bodies:
        if isinstance(body, AgentStarted | TurnStarted):
            return body.cohort
    return ""


def model_request(
    store: Store, turn: TurnRecord, span_id: str, events: Sequence[Event] | None = None
) -> ModelRequest | None:
    """Returns what the model call of a span was sent; None where the span is no model call of that turn.

    `gap` says what of it the store does not have. Personal values and keys are hidden, as everywhere in a trace.
    """
    if events is None:
        events = store.events(turn.id, turn.principal)
    request = request_in(events, span_id)
    if request is None:
        return None
    gaps: list[str] = []
    if request.cohort:
        prompt = store.prompt(request.cohort, turn.started_at)
    else:
        prompt = None
    if prompt is not None:
        request = request.replace(prompt=prompt.text, tools=prompt.tools)
    elif request.cohort:
        gaps.append(f"the prompt of cohort {request.cohort} was not kept")
    if request.earlier:
        at = next(event.at for event in events if event.span_id == span_id)
        if request.purpose == "job":
            lines = _job_lines(store, turn, request, events, at)
        else:
            lines = _lines(store, turn, request, at)
        request = request.replace(history=lines)
        if not lines:
            gaps.append(f"{request.earlier} earlier messages are not in this store")
    return request.replace(gap="; ".join(gaps))


def _lines(
    store: Store, turn: TurnRecord, request: ModelRequest, at: float
) -> tuple[RequestMessage, ...]:
    """Returns the lines of earlier turns in a request: its agent's own, else the conversation's;
    none where neither fits.

    Earlier are turns that ended before this one; where that makes too many, those of them that had
    ended by the time of the call.
    """
    who = turn.principal
    # one that is asked again was told what came before the first
    first = store.turn(repeated_turn(turn.session_id), who)
    turn = first or turn
    turns = store.turns(
        session_id=turn.session_id, tenant_id=who.tenant_id, user_id=who.user_id, limit=ALL
    )
    order = list(
        dict.fromkeys(line.turn_id for line in store.history(turn.session_id, "", ALL, who=who))
    )
    ended: set[str] = set()
    for one in turns:
        if one.seconds is not None and one.started_at + one.seconds <= turn.started_at + at:
            ended.add(one.id)
    before = set(order[: order.index(turn.id)] if turn.id in order else order)
    for reader in (request.agent, "") if request.purpose == "work" else ("",):
        history = store.history(turn.session_id, reader, ALL, who=who)
        for past in (before, before & ended):
            lines: list[Message] = []
            for line in history:
                if line.turn_id in past:
                    lines.append(line)
            if (
                len(lines) == request.earlier
                or len(lines) > request.earlier >= READ
                or (lines and SUMMED_UP in request.rest)
            ):
                return tuple(map(_message, lines[-request.earlier :]))
    return ()


def _job_lines(
    store: Store, turn: TurnRecord, request: ModelRequest, events: Sequence[Event], at: float
) -> tuple[RequestMessage, ...]:
    """Returns what a helper is told: the oldest of the lines that the orchestrator reads, under the
    summary of earlier ones."""
    first = next(
        (
            event.span_id
            for event in events
            if isinstance(event.body, ModelStarted) and event.body.system
        ),
        "",
    )
    lead = request_in(events, first)
    if lead is None or (request.agent == "summary" and lead.earlier >= READ):
        return ()
    _, mark, rest = lead.rest.partition(f"\n{SUMMED_UP}")
    if mark:
        summary = (RequestMessage(role="ai", text=f"Earlier: {rest.partition(SHOWN)[0]}"),)
    else:
        summary = ()
    if lead.earlier:
        lines = _lines(store, turn, lead, at)
    else:
        lines = ()
    return (*summary, *lines[: request.earlier - len(summary)])


def _message(line: Message) -> RequestMessage:
    return RequestMessage(role="human" if line.role == "user" else "ai", text=line.text)
