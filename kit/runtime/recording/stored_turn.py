"""A stored turn as a record: which of its calls are played when it is forked at a span, or goes
on, and how each ended."""

import json
import math
from collections import ChainMap, Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall

from kit.compose.prompts import WISH, suffix_lines
from kit.core.bodies.call import (
    PREFIX,
    AgentEnded,
    AgentStarted,
    ModelEnded,
    ModelStarted,
    ToolEnded,
    ToolStarted,
)
from kit.core.bodies.speech import Component
from kit.core.bodies.turn import ActStarted, TurnStarted
from kit.core.context import Session
from kit.core.display.made_to_fail import wanted_faults
from kit.core.errors import ForkError
from kit.core.event import Body, Event
from kit.core.outcome import BEFORE_YES, Answer, ComponentPayload, Failure
from kit.runtime.handoff import PLACEHOLDER
from kit.runtime.recording.recorded_call import (
    Key,
    RecordedCall,
    Request,
    key_of,
    plain_message,
    tool_request,
)
from kit.stores.model_request import request_in, whole_system
from kit.tools.tool import ToolResult

ANYWHERE = ""
"""The place of an agent's answer that is played wherever the same is asked."""


@dataclass
class StoredTurn:
    """What had begun before a span ended cannot have known its result: that is played, and what
    began later is called."""

    turn: TurnStarted
    lines: Mapping[str, str]
    """What its prompts told of the request, by the words before the colon."""
    faults: tuple[str, ...] = ()
    """What it was made to fail by, from its start or in the middle, as `agent=kind`."""
    fork_point: ModelStarted | AgentStarted | None = None
    """What is called anew; None for a turn that goes on where it stands."""
    agent: str = ""
    """Whose span it is that is called anew."""
    calls: dict[Key, RecordedCall] = field(default_factory=dict[Key, RecordedCall])
    cohorts: dict[str, str] = field(default_factory=dict[str, str])
    """Agent -> the prompt it spoke with, of those that are played as a whole."""
    model_counts: Counter[str] = field(default_factory=Counter[str])
    """Path -> model calls from there that are played."""

    @property
    def today(self) -> str:
        return self.lines.get("Date", "")

    def session_of(self, session: Session) -> Session:
        """Returns a session with the locale and the user's persona that the turn began with."""
        if not self.lines:
            return session
        locale = self.lines.get("Locale", session.locale)
        return session.replace(locale=locale, persona=self.lines.get(WISH, ""))

    def add(self, call: RecordedCall) -> None:
        """Adds a call that is played."""
        self.calls[key_of(call)] = call

    def age_answers(self) -> None:
        """Says of every answer of a sub-agent that is played that it is older than the yes of its user."""
        for key, call in self.calls.items():
            did_act = any(isinstance(event.body, ActStarted) for event in call.events)
            outcome = call.outcome
            if isinstance(outcome, Answer) and not (outcome.is_handover or did_act):
                older = outcome.with_reservation(BEFORE_YES)
                self.calls[key] = call.replace(outcome=older)


class _Log:
    """The events of a turn that can be played, with the first and the last of each span."""

    def __init__(self, events: Iterable[Event], root: str):
        """`root` is the id of the turn's orchestrator. Raises ForkError for a turn that cannot be played."""
        # Whoever reads one model call alone must not miss what the first one of the turn said.
        stored = list(events)
        self.events = [event.replace(body=whole_system(event.body, stored)) for event in stored]
        self.root = root
        self.starts: dict[str, Event] = {}
        self.ends: dict[str, Event] = {}
        for event in self.events:
            # The start of an act stands inside the span of its tool.
            if event.kind.endswith("_started") and event.kind != "act_started":
                self.starts[event.span_id] = event
            elif event.kind.endswith("_ended"):
                self.ends[event.span_id] = event
        self.first, self.turn = self._first()
        self._check()

    def _first(self) -> tuple[Event, TurnStarted]:
        for event in self.events:
            if isinstance(event.body, TurnStarted):
                return event, event.body
        raise ForkError("nothing of this turn is stored: ask it again")

    def _check(self) -> None:
        if self.turn.pictures:
            raise ForkError(
                "this turn came with pictures, which no store keeps: ask it again with them"
            )
        for event in self.events:
            if PLACEHOLDER in event.body.model_dump_json():
                raise ForkError(
                    "personal values crossed in this turn, and no store keeps them: ask it again"
                )
            if isinstance(event.body, AgentStarted) and not event.body.place:
                raise ForkError(
                    "this turn was stored by an earlier version, which did not say in what order its "
                    "agents were asked: ask it again"
                )

    def stored_turn(self) -> StoredTurn:
        """Returns the turn, with none of its calls yet."""
        suffixes: list[dict[str, str]] = []
        for event in self.starts.values():
            body = event.body
            if isinstance(body, ModelStarted) and body.system.startswith(PREFIX):
                suffixes.append(suffix_lines(body.system.removeprefix(PREFIX)))
        faults = tuple(wanted.fault for wanted in wanted_faults(self.events))
        return StoredTurn(self.turn, dict(ChainMap(*suffixes)), faults)

    def above(self, event: Event) -> list[str]:
        """Returns the spans in which a span lies, the nearest first."""
        above: list[str] = []
        parent = event.parent_span_id
        while parent is not None:
            above.append(parent)
            parent = self.starts[parent].parent_span_id
        return above

    def inside(self, span_id: str) -> list[Event]:
        """Returns the events of a span and of those in it."""
        return [event for event in self.events if span_id in (event.span_id, *self.above(event))]

    def path(self, event: Event) -> str:
        """Returns from where a call was made, as a running turn names it."""
        names = [self.root]
        for span_id in reversed(self.above(event)):
            body = self.starts[span_id].body
            if isinstance(body, AgentStarted):
                names.append(f"{body.place}.{body.agent}")
        match event.body:
            case AgentStarted(place=place, agent=agent):
                names.append(f"{place}.{agent}")
            case ModelStarted(purpose="job", agent=agent):
                names.append(agent)
            case ToolStarted(tool=tool):
                names.append(tool)
            case _:
                pass
        return "/".join(names)

    def tool_number(self, event: Event) -> int:
        """Returns which call of a tool from its path a span is; calls that the kit refused do not count."""
        path = self.path(event)
        number = 0
        for start in self.starts.values():
            end = self.ends.get(start.span_id)
            is_refused = end and isinstance(end.body, ToolEnded) and not end.body.was_called
            if isinstance(start.body, ToolStarted) and not is_refused and self.path(start) == path:
                number += 1
            if start is event:
                break
        return number

    def play(self, event: Event, turn: StoredTurn) -> None:
        """Adds what happened in a span that ended to what is played of the turn."""
        end = self.ends[event.span_id]
        match event.body, end.body:
            case AgentStarted() as start, AgentEnded(outcome=outcome):
                may_go_on = isinstance(outcome, Failure) and outcome.is_stopped
                if not may_go_on:
                    turn.add(self.agent_call(event, end, self.path(event)))
                    turn.cohorts[start.agent] = start.cohort
            case ModelStarted() as start, ModelEnded():
                path = self.path(event)
                if not (start.instead_of and turn.model_counts[path]):
                    # The fallback is asked in the place of a call that failed, and takes its number.
                    turn.model_counts[path] += 1
                call_site = f"{path}:{turn.model_counts[path]}"
                for call in list(turn.calls.values()):
                    if call.place == call_site:
                        del turn.calls[key_of(call)]
                turn.add(self.model_call(event, end, call_site))
            case ToolStarted(), ToolEnded(was_called=True, failure=failure):
                # One that was given up, or that waits for the user, is made again.
                if failure is None or failure.kind not in ("cancelled", "paused"):
                    turn.add(self.tool_call(event, end))
            case _:
                pass

    def agent_call(self, event: Event, end: Event, call_site: str) -> RecordedCall:
        """Returns the call of a sub-agent, with all that happened in it between its start and its end."""
        assert isinstance(event.body, AgentStarted) and isinstance(end.body, AgentEnded)
        events = [part for part in self.inside(event.span_id) if part not in (event, end)]
        return RecordedCall(
            place=call_site,
            request=agent_request(event.body),
            outcome=end.body.outcome,
            events=tuple(events),
            seconds=end.at,
        )

    def model_call(self, event: Event, end: Event, call_site: str) -> RecordedCall:
        """Returns a call of a model, with its reply or its failure."""
        assert isinstance(event.body, ModelStarted) and isinstance(end.body, ModelEnded)
        call = RecordedCall(
            place=call_site,
            request=traced_request(self.events, event.span_id),
            model=event.body.model,
            seconds=end.at - event.at,
        )
        failure = end.body.failure
        if failure is None:
            if end.body.text:
                call = call.replace(pieces=(end.body.text,))
            message = plain_message(self._message(call_site, event.span_id, end.body))
            return call.replace(message=message, first=end.body.ttft)
        if failure.kind == "cancelled":
            # Whoever made this call gave it up, and went on as after a call that took too long.
            failure = failure.replace(kind="timeout", type="TimeoutError")
        return call.replace(broken=failure, begun=False)

    def _message(self, call_site: str, span_id: str, end: ModelEnded) -> AIMessage:
        content = [end.text]
        for part in self._components(span_id):
            content.append(f'<component type="{part.type}">{json.dumps(part.payload)}</component>')
        calls: list[ToolCall] = []
        for number, call in enumerate(end.calls, 1):
            # Ids of their own: a conversation in which two calls share one is sent to no provider.
            calls.append(ToolCall(name=call.name, args=call.args, id=f"{call_site}-{number}"))
        usage = None
        if not end.usage.estimated:
            usage = UsageMetadata(
                input_tokens=end.usage.input_tokens,
                output_tokens=end.usage.output_tokens,
                total_tokens=end.usage.input_tokens + end.usage.output_tokens,
                input_token_details={"cache_read": end.usage.cached_tokens},
            )
        metadata: dict[str, str] = {}
        if end.finish_reason:
            metadata["finish_reason"] = end.finish_reason
        return AIMessage(
            content="".join(content),
            tool_calls=calls,
            usage_metadata=usage,
            response_metadata=metadata,
        )

    def tool_call(self, event: Event, end: Event) -> RecordedCall:
        """Returns a call of a tool, with its result and what it said meanwhile."""
        start = event.body
        assert isinstance(start, ToolStarted) and isinstance(end.body, ToolEnded)
        bodies: list[tuple[float, Body]] = []
        for part in self.inside(event.span_id):
            if part.kind in ("status", "envelope"):
                bodies.append((part.at - event.at, part.body))
        result = ToolResult(
            text=end.body.result,
            components=tuple(self._components(event.span_id)),
            caveat=end.body.caveat,
        )
        if end.body.failure is not None:
            result = result.replace(fault=end.body.failure.kind, detail=end.body.failure.text)
        return RecordedCall(
            place=f"{self.path(event)}:{self.tool_number(event)}",
            request=tool_request(start.tool, self.turn.principal, start.args),
            result=result,
            told=tuple(bodies),
            seconds=end.at - event.at,
        )

    def _components(self, span_id: str) -> list[ComponentPayload]:
        components: list[ComponentPayload] = []
        for event in self.inside(span_id):
            if isinstance(event.body, Component):
                components.append(
                    ComponentPayload(type=event.body.type, payload=event.body.payload)
                )
        return components


def turn_to_resume(
    events: Iterable[Event], root: str, partly: Container[str], reused: Container[str]
) -> StoredTurn:
    """Reads a turn that is to go on: what ended is played; what had not is called anew, as a whole.

    Of agents that wait for the user, and of those in `partly`, what ended in them is played;
    answers of those in `reused` are played wherever they are asked the same. Raises ForkError for a
    turn that cannot be played.
    """
    log = _Log(events, root)
    turn = log.stored_turn()
    open_spans = {log.first.span_id}
    for event in log.starts.values():  # callers began first
        if event.parent_span_id in open_spans and isinstance(event.body, AgentStarted):
            end = log.ends.get(event.span_id)
            if _is_paused(end) or (end is None and event.body.agent in partly):
                open_spans.add(event.span_id)
    for event in log.starts.values():
        if event.span_id in open_spans or event.span_id not in log.ends:
            continue
        if event.parent_span_id in open_spans:
            log.play(event, turn)
        elif isinstance(event.body, AgentStarted) and event.body.agent in reused:
            # Its caller begins anew, and may ask it from another place.
            apart = log.stored_turn()
            log.play(event, apart)
            for call in apart.calls.values():
                turn.add(call.replace(place=ANYWHERE))
    return turn


def turn_to_fork(events: Iterable[Event], span_id: str, root: str) -> StoredTurn:
    """Reads a turn that is to be forked at a span; `root` is the id of its orchestrator.

    Raises ForkError where that cannot be done, with what can.
    """
    log = _Log(events, root)
    span = log.starts.get(span_id)
    if span is None or not isinstance(span.body, ModelStarted | AgentStarted):
        raise ForkError(
            f"{span_id!r} is no model call and no sub-agent of this turn: choose one of those in its trace"
        )
    turn = log.stored_turn()
    turn.fork_point = span.body
    turn.agent = root
    above = log.above(span)
    for caller in [span_id, *above]:
        body = log.starts[caller].body
        if isinstance(body, AgentStarted):
            turn.agent = body.agent
            break
    last = log.ends[span_id].seq if span_id in log.ends else math.inf
    for event in log.starts.values():
        is_played = event.parent_span_id in above and event.seq <= last
        if is_played and event.span_id in log.ends and event.span_id not in (span_id, *above):
            log.play(event, turn)
    return turn


def traced_request(events: Sequence[Event], span_id: str) -> Request:
    """Returns what a model was asked, in named parts, as its turn's log tells it.

    The whole request is compared, not the events: how many messages an event need not repeat depends on
    what was said before, and may differ where what was asked does not.
    """
    request = request_in(events, span_id)
    assert request is not None
    parts = [
        ("what follows the prompt", request.rest),
        ("the number of messages before", str(request.earlier)),
    ]
    for number, message in enumerate(request.messages, 1):
        parts.append((f"message {number}", str(message)))
    return tuple(parts)


def agent_request(start: AgentStarted) -> Request:
    """Returns what an agent is asked, in named parts."""
    fields = json.dumps(start.fields, sort_keys=True, default=str)
    return (
        ("agent", start.agent),
        ("query", start.query),
        ("prior_context", start.prior_context or ""),
        ("fields", fields),
    )


def _is_paused(end: Event | None) -> bool:
    if end is None or not isinstance(end.body, AgentEnded):
        return False
    outcome = end.body.outcome
    return isinstance(outcome, Failure) and outcome.reason == "paused"
