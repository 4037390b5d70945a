"""What a model was sent: what its turn's events tell, with the prompt of its cohort and the
conversation that the store keeps."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

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
from kit.stores.recall import recollection_of, repeated_turn

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

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
    found = _model_started(events, span_id)
    if found is None:
        return None
    start, last_body = found
    replies: dict[str, ModelEnded] = {}
    for event in events:
        if isinstance(event.body, ModelEnded):
            replies[event.span_id] = event.body
    # An agent's calls in one span are one conversation: each start says only what is new in it.
    earlier: int | None = None
    system = ""
    messages: list[RequestMessage] = []
    for event in events[: events.index(start) + 1]:
        body = event.body
        if not isinstance(body, ModelStarted) or body.agent != last_body.agent:
            continue
        if event.parent_span_id != start.parent_span_id:
            continue
        earlier = body.before if earlier is None else min(body.before, earlier)
        messages = [*messages[: body.before - earlier], *body.input]
        system = body.system or system
        reply = replies.get(event.span_id)
        if event is not start and reply is not None and reply.error is None:
            messages.append(RequestMessage(role="ai", text=reply.text, calls=reply.calls))
    system = whole_system(last_body.replace(system=system), events).system
    cohort = ""
    if system.startswith(PREFIX):
        cohort = _cohort(events, start.parent_span_id)
    return ModelRequest(
        agent=last_body.agent,
        model=last_body.model,
        purpose=last_body.purpose,
        cohort=cohort,
        rest=system.removeprefix(PREFIX),
        earlier=earlier or 0,
        messages=tuple(messages),
    )


def _model_started(events: Iterable[Event], span_id: str) -> tuple[Event, ModelStarted] | None:
    for event in events:
        if event.span_id == span_id and isinstance(event.body, ModelStarted):
            return event, event.body
    return None


def whole_system(body: B, events: Iterable[Event]) -> B:
    """Returns the start of a model call with the lines of the turn's first call, where it only says
    that they are the same."""
    if not isinstance(body, ModelStarted) or body.system != PREFIX:
        return body
    for event in events:
        if isinstance(event.body, ModelStarted) and event.body.system.startswith(PREFIX):
            return body.replace(system=event.body.system)
    return body


def as_json(request: ModelRequest) -> str:
    """Returns a request as JSON for a person or a program: system, tools, and every message in its order."""
    fields = request.model_dump(
        mode="json", include={"model", "tools", "gap"}, exclude_defaults=True
    )
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "text": request.system})
    for message in (*request.history, *request.messages):
        messages.append(message.model_dump(mode="json", exclude_defaults=True))
    return json.dumps({**fields, "messages": messages}, indent=2, ensure_ascii=False)


def _cohort(events: Iterable[Event], span_id: str | None) -> str:
    for event in events:
        if event.span_id == span_id and isinstance(event.body, AgentStarted | TurnStarted):
            return event.body.cohort
    return ""


def model_request(
    store: "TurnStore", turn: TurnRecord, span_id: str, events: Sequence[Event] | None = None
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
        if prompt is None:
            gaps.append(f"the prompt of cohort {request.cohort} was not kept")
        else:
            request = request.replace(prompt=prompt.text, tools=prompt.tools)
    if request.earlier:
        if request.purpose == "job":
            lines = _job_lines(store, turn, request, events)
        else:
            lines = _lines(store, turn, request)
        request = request.replace(history=lines)
        if not lines:
            gaps.append(f"{request.earlier} earlier messages are not in this store")
    return request.replace(gap="; ".join(gaps))


def _lines(
    store: "TurnStore", turn: TurnRecord, request: ModelRequest
) -> tuple[RequestMessage, ...]:
    """Returns the lines of earlier turns in a request: its agent's own, else the conversation's;
    none where neither fits."""
    principal = turn.principal
    # A turn that is asked again was told what came before the first one.
    turn = store.turn(repeated_turn(turn.session_id), principal) or turn
    conversation = store.history(turn.session_key, "", ALL, reader=principal)
    order = list(dict.fromkeys(line.turn_id for line in conversation))
    if turn.id in order:
        order = order[: order.index(turn.id)]
    earlier = set(order).difference(recollection_of(store.events(turn.id, principal)).beside)
    readers = (request.agent, "") if request.purpose == "work" else ("",)
    for agent in readers:
        history = store.history(turn.session_key, agent, ALL, reader=principal)
        lines = [line for line in history if line.turn_id in earlier]
        if _fits(lines, request):
            return tuple(map(_message, lines[-request.earlier :]))
    return ()


def _fits(lines: Sequence[Message], request: ModelRequest) -> bool:
    """Says whether these may be the lines that the request began with: as many, or more than a
    request ever holds, or those beside a summary."""
    if len(lines) == request.earlier or len(lines) > request.earlier >= READ:
        return True
    return bool(lines) and SUMMED_UP in request.rest


def _job_lines(
    store: "TurnStore",
    turn: TurnRecord,
    request: ModelRequest,
    events: Sequence[Event],
) -> tuple[RequestMessage, ...]:
    """Returns what a helper is told: the oldest of the lines that the orchestrator reads, under the
    summary of earlier ones."""
    first = ""
    for event in events:
        if isinstance(event.body, ModelStarted) and event.body.system:
            first = event.span_id
            break
    lead = request_in(events, first)
    if lead is None or (request.agent == "summary" and lead.earlier >= READ):
        return ()
    messages: list[RequestMessage] = []
    _, mark, summary = lead.rest.partition(f"\n{SUMMED_UP}")
    if mark:
        text = summary.partition(SHOWN)[0]
        messages.append(RequestMessage(role="ai", text=f"Earlier: {text}"))
    if lead.earlier:
        lines = _lines(store, turn, lead)
        messages += lines[: request.earlier - len(messages)]
    return tuple(messages)


def _message(line: Message) -> RequestMessage:
    return RequestMessage(role="human" if line.role == "user" else "ai", text=line.text)
