"""A stored turn as a recording: which of its calls are played when it is forked at a span, or goes
on, and how each ended."""

import json
import math
from collections import ChainMap, defaultdict, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from kit.core.bodies.turn import TurnStarted
from kit.core.context import Session
from kit.core.errors import ForkError
from kit.core.event import Event
from kit.core.outcome import ComponentPayload, Failure, Outcome
from kit.runtime.agents.handoff import PLACEHOLDER
from kit.runtime.recording.recorded_call import Take, plain_message
from kit.stores.model_request import whole_system
from kit.tools.tool import ToolResult

Question = tuple[str, str, str]
"""An agent, what it is asked, and what it is told of before."""


class PlayedCall(NamedTuple):
    """A call of a model or a tool that is played."""

    started: ModelStarted | ToolStarted
    take: Take


class PlayedAgent(NamedTuple):
    """A sub-agent that is played as a whole."""

    started: AgentStarted
    outcome: Outcome
    ended: float
    events: Sequence[Event]
    """All that happened in it, its start and its end aside."""


@dataclass(frozen=True)
class TurnRecording:
    """What had begun before a span ended cannot have known its result: that is played, and what
    began later is called."""

    turn: TurnStarted
    lines: Mapping[str, str]
    """What its prompts told of the request, by the words before the colon."""
    at: ModelStarted | AgentStarted | None = None
    """What is called anew; None for a turn that goes on where it stands."""
    agent: str = ""
    """Whose span it is that is called anew."""
    models: dict[str, deque[PlayedCall]] = field(
        default_factory=lambda: defaultdict(deque[PlayedCall])
    )
    """By the path from which they were made, in order."""
    tools: dict[str, deque[PlayedCall]] = field(
        default_factory=lambda: defaultdict(deque[PlayedCall])
    )
    agents: dict[str, PlayedAgent] = field(default_factory=dict[str, PlayedAgent])
    """By path."""
    answers: dict[Question, PlayedAgent] = field(default_factory=dict[Question, PlayedAgent])
    """By what they were asked: played wherever that is asked again."""

    @property
    def today(self) -> str:
        return self.lines.get("Date", "")

    def told(self, session: Session) -> Session:
        """Returns a session with the locale and the user's persona that the turn began with."""
        own = {
            "locale": self.lines.get("Locale", session.locale),
            "persona": self.lines.get(WISH, ""),
        }
        if self.lines:
            return session.replace(**own)
        return session


@dataclass(frozen=True)
class _Spans:
    """The events of a turn that can be played, with the first and the last of each span."""

    events: Sequence[Event]
    starts: dict[str, Event]
    ends: dict[str, Event]
    turn: TurnStarted
    lines: Mapping[str, str]

    @classmethod
    def of(cls, events: Iterable[Event]) -> "_Spans":
        """Raises ForkError for a turn that cannot be played."""
        events = list(events)
        events = [event.replace(body=whole_system(event.body, events)) for event in events]
        starts = {
            event.span_id: event
            for event in events
            if event.kind.endswith("_started") and event.kind != "act_started"
        }
        ends = {event.span_id: event for event in events if event.kind.endswith("_ended")}
        first = next((event.body for event in events if isinstance(event.body, TurnStarted)), None)
        if first is None:
            raise ForkError("nothing of this turn is stored: ask it again")
        if first.pictures:
            raise ForkError(
                "this turn came with pictures, which no store keeps: ask it again with them"
            )
        if any(PLACEHOLDER in event.body.model_dump_json() for event in events):
            raise ForkError(
                "personal values crossed in this turn, and no store keeps them: ask it again"
            )
        if any(
            isinstance(event.body, AgentStarted) and not event.body.place
            for event in starts.values()
        ):
            raise ForkError(
                "this turn was stored by an earlier version, which did not say in what order its "
                "agents were asked: ask it again"
            )
        systems = [
            event.body.system for event in starts.values() if isinstance(event.body, ModelStarted)
        ]
        suffixes = [system.removeprefix(PREFIX) for system in systems if system.startswith(PREFIX)]
        return cls(events, starts, ends, first, dict(ChainMap(*map(suffix_lines, suffixes))))

    def add(self, recording: TurnRecording, event: Event, root: str) -> None:
        """Puts what happened in a span that ended into a recording."""
        inside = [one for one in self.events if _is_in(one, event.span_id, self.starts)]
        _add(recording, _path(event, self.starts, root), event, self.ends[event.span_id], inside)


def resumed_recording(
    events: Iterable[Event], root: str, partly: Container[str], reused: Container[str]
) -> TurnRecording:
    """Reads a turn that is to go on: what ended is played; what had not is called anew, as a whole.

    Of agents that wait for the user, and of those in `partly`, what ended in them is played;
    answers of those in `reused` are played wherever they are asked the same. Raises ForkError for a
    turn that cannot be played.
    """
    spans = _Spans.of(events)
    recording = TurnRecording(spans.turn, spans.lines)
    first = next(event for event in spans.starts.values() if isinstance(event.body, TurnStarted))
    above = {first.span_id}
    for event in spans.starts.values():  # callers began first
        if event.parent_span_id in above and isinstance(event.body, AgentStarted):
            end = spans.ends.get(event.span_id)
            waits = (
                end is not None
                and isinstance(end.body, AgentEnded)
                and _is_paused(end.body.outcome)
            )
            if waits or (end is None and event.body.agent in partly):
                above.add(event.span_id)
    for event in spans.starts.values():
        if event.span_id in above or event.span_id not in spans.ends:
            continue
        if event.parent_span_id in above:
            spans.add(recording, event, root)
        elif isinstance(event.body, AgentStarted) and event.body.agent in reused:
            apart = TurnRecording(spans.turn, spans.lines)
            spans.add(apart, event, root)
            recording.answers.update(
                {question(event.body): agent for agent in apart.agents.values()}
            )
    return recording


def question(call: AgentStarted) -> "Question":
    """Returns what names a question to an agent, whoever asks it."""
    return call.agent, call.query, call.prior_context or ""


def _is_paused(outcome: Outcome) -> bool:
    return isinstance(outcome, Failure) and outcome.reason == "paused"


def turn_recording(events: Sequence[Event], at: str, root: str) -> TurnRecording:
    """Reads a turn that is to be forked at a span; `root` is the id of its orchestrator.

    Raises ForkError where that cannot be done, with what can.
    """
    spans = _Spans.of(events)
    starts = spans.starts
    ends = spans.ends
    span = starts.get(at)
    if span is None or not isinstance(span.body, ModelStarted | AgentStarted):
        raise ForkError(
            f"{at!r} is no model call and no sub-agent of this turn: choose one of those in its trace"
        )
    above = _above(span, starts)
    agents = [starts[span_id].body for span_id in above]
    holder = next((body.agent for body in agents if isinstance(body, AgentStarted)), root)
    if isinstance(span.body, AgentStarted):
        agent = span.body.agent
    else:
        agent = holder
    recording = TurnRecording(spans.turn, spans.lines, span.body, agent)
    if at in ends:
        end = ends[at].seq
    else:
        end = math.inf
    for event in starts.values():
        parent = event.parent_span_id
        if (
            event.span_id == at
            or event.span_id in above
            or parent not in above
            or event.seq > end
            or event.span_id not in ends
        ):
            continue
        spans.add(recording, event, root)
    return recording


def _add(
    recording: TurnRecording, path: str, start: Event, end: Event, inside: Sequence[Event]
) -> None:
    match start.body, end.body:
        case AgentStarted(), AgentEnded(outcome=outcome):
            if not (
                isinstance(outcome, Failure) and outcome.reason in ("cancelled", "paused")
            ):  # one that was stopped may go on
                parts = [event for event in inside if event is not start and event is not end]
                recording.agents[path] = PlayedAgent(start.body, outcome, end.at, parts)
        case ModelStarted(), ModelEnded():
            if start.body.instead_of and recording.models[path]:
                recording.models[path].pop()  # it was asked in the place of one that failed
            components = [event.body for event in inside if isinstance(event.body, Component)]
            recording.models[path].append(
                PlayedCall(start.body, _model_take(path, end.body, end.at - start.at, components))
            )
        case ToolStarted(), ToolEnded() if end.body.was_called and not _is_stopped(end.body):
            told = [
                (event.at - start.at, event.body)
                for event in inside
                if event.kind in ("status", "envelope")
            ]
            components = [event.body for event in inside if isinstance(event.body, Component)]
            result = _tool_result(end.body, components)
            take = Take(
                place=path, request=(), result=result, told=tuple(told), seconds=end.at - start.at
            )
            recording.tools[path].append(PlayedCall(start.body, take))
        case _:
            pass


def _is_stopped(end: ToolEnded) -> bool:
    """Whether a call was given up, by its turn or to ask its user first: it may be made again."""
    return end.failure is not None and end.failure.kind in ("cancelled", "paused")


def _model_take(
    path: str, end: ModelEnded, seconds: float, components: Sequence[Component]
) -> Take:
    failure = end.failure
    if failure is not None:
        if failure.kind == "cancelled":
            # Whoever made this call gave it up, and went on as after a call that took too long.
            failure = failure.replace(kind="timeout", type="TimeoutError")
        return Take(
            place=path,
            request=(),
            broken=failure,
            begun=False,
            seconds=seconds,
        )
    parts = (
        f'<component type="{part.type}">{json.dumps(part.payload)}</component>'
        for part in components
    )
    calls = [
        ToolCall(name=c.name, args=c.args, id=f"{path}-{n}") for n, c in enumerate(end.calls, 1)
    ]
    usage = end.usage
    tokens = UsageMetadata(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_token_details={"cache_read": usage.cached_tokens},
    )
    message = AIMessage(
        content="".join([end.text, *parts]),
        tool_calls=calls,
        usage_metadata=None if usage.estimated else tokens,
        response_metadata={"finish_reason": end.finish_reason} if end.finish_reason else {},
    )
    if end.text:
        pieces = (end.text,)
    else:
        pieces = ()
    return Take(
        place=path,
        request=(),
        message=plain_message(message),
        pieces=pieces,
        first=end.ttft,
        seconds=seconds,
    )


def _tool_result(end: ToolEnded, components: Sequence[Component]) -> ToolResult:
    parts = tuple(ComponentPayload(type=part.type, payload=part.payload) for part in components)
    fields: dict[str, Any] = {}
    if end.failure is not None:
        fields = {"fault": end.failure.kind, "detail": end.failure.text}
    return ToolResult.model_validate(
        {"text": end.result, "components": parts, "caveat": end.caveat, **fields}
    )


def _above(event: Event, starts: dict[str, Event]) -> list[str]:
    """Returns the spans in which a span lies, the nearest first."""
    above: list[str] = []
    parent = event.parent_span_id
    while parent is not None:
        above.append(parent)
        parent = starts[parent].parent_span_id
    return above


def _is_in(event: Event, span_id: str, starts: dict[str, Event]) -> bool:
    return event.span_id == span_id or (
        event.span_id in starts and span_id in _above(starts[event.span_id], starts)
    )


def _path(event: Event, starts: dict[str, Event], root: str) -> str:
    """Returns from where a call was made, as a running turn names it."""
    parts = [starts[span_id].body for span_id in reversed(_above(event, starts))]
    names = [
        f"{body.place}.{body.agent}"
        for body in (*parts, event.body)
        if isinstance(body, AgentStarted)
    ]
    match event.body:
        case ModelStarted(purpose="job", agent=agent):
            names.append(agent)
        case ToolStarted(tool=tool):
            names.append(tool)
        case _:
            pass
    return "/".join([root, *names])
