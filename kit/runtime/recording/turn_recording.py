"""A stored turn as a recording: which of its calls are played when it is forked at a span, and how each ended."""

import json
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall

from kit.core.errors import ForkError
from kit.core.event import (
    AgentEnded,
    AgentStarted,
    Component,
    Event,
    ModelEnded,
    ModelStarted,
    ToolEnded,
    ToolStarted,
    TurnStarted,
)
from kit.core.outcome import ComponentPayload, Failure, Outcome
from kit.runtime.agents.handoff import PLACEHOLDER
from kit.runtime.recording.recorded_call import Broken, Take, plain_message
from kit.stores.model_request import call_of, whole_system
from kit.tools.tool import ToolResult


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
    """What had begun before a span ended cannot have known its result: that is played, and what began later is called."""

    turn: TurnStarted
    at: ModelStarted | AgentStarted
    """What is called anew."""
    agent: str
    """Whose span it is that is called anew."""
    today: str
    models: dict[str, deque[PlayedCall]] = field(default_factory=lambda: defaultdict(deque[PlayedCall]))
    """By the path from which they were made, in order."""
    tools: dict[str, deque[PlayedCall]] = field(default_factory=lambda: defaultdict(deque[PlayedCall]))
    agents: dict[str, PlayedAgent] = field(default_factory=dict[str, PlayedAgent])
    """By path."""


def turn_recording(events: Sequence[Event], at: str, root: str) -> TurnRecording:
    """Reads a turn that is to be forked at a span; `root` is the id of its orchestrator.

    Raises ForkError where that cannot be done, with what can.
    """
    events = [event.replace(body=whole_system(event.body, events)) for event in events]
    starts = {event.span_id: event for event in events if event.kind.endswith("_started")}
    ends = {event.span_id: event for event in events if event.kind.endswith("_ended")}
    span, first = starts.get(at), next((event.body for event in events if isinstance(event.body, TurnStarted)), None)
    if first is None or span is None or not isinstance(span.body, ModelStarted | AgentStarted):
        raise ForkError(f"{at!r} is no model call and no sub-agent of this turn: choose one of those in its trace")
    if first.pictures:
        raise ForkError("this turn came with pictures, which no store keeps: ask it again with them")
    if any(PLACEHOLDER in event.body.model_dump_json() for event in events):
        raise ForkError("personal values crossed in this turn, and no store keeps them: ask it again")
    above = _above(span, starts)
    if any(isinstance(event.body, AgentStarted) and not event.body.place for event in starts.values()):
        raise ForkError(
            "this turn was stored by an earlier version, which did not say in what order its agents were asked: ask it again"
        )
    system = next(
        (event.body.system for event in starts.values() if isinstance(event.body, ModelStarted) and event.body.system), ""
    )
    today = next((line.removeprefix("Date: ") for line in system.splitlines() if line.startswith("Date: ")), "")
    agents = [starts[span_id].body for span_id in above]
    holder = next((body.agent for body in agents if isinstance(body, AgentStarted)), root)
    recording = TurnRecording(first, span.body, span.body.agent if isinstance(span.body, AgentStarted) else holder, today)
    end = ends[at].seq if at in ends else math.inf
    for event in starts.values():
        parent = event.parent_span_id
        if event.span_id == at or event.span_id in above or parent not in above or event.seq > end or event.span_id not in ends:
            continue
        inside = [one for one in events if _is_in(one, event.span_id, starts)]
        _add(recording, _path(event, starts, root), event, ends[event.span_id], inside)
    return recording


def _add(recording: TurnRecording, path: str, start: Event, end: Event, inside: Sequence[Event]) -> None:
    match start.body, end.body:
        case AgentStarted(), AgentEnded(outcome=outcome):
            if not (isinstance(outcome, Failure) and outcome.reason == "cancelled"):  # one that was stopped may go on now
                parts = [event for event in inside if event is not start and event is not end]
                recording.agents[path] = PlayedAgent(start.body, outcome, end.at, parts)
        case ModelStarted(), ModelEnded():
            if start.body.instead_of and recording.models[path]:
                recording.models[path].pop()  # it was asked in the place of one that failed
            components = [event.body for event in inside if isinstance(event.body, Component)]
            recording.models[path].append(PlayedCall(start.body, _model_take(path, end.body, end.at - start.at, components)))
        case ToolStarted(), ToolEnded() if end.body.error != "CancelledError" and not _never_ran(end.body):
            told = [(event.at - start.at, event.body) for event in inside if event.kind in ("status", "envelope")]
            components = [event.body for event in inside if isinstance(event.body, Component)]
            result = _tool_result(end.body, components)
            take = Take(place=path, request=(), result=result, told=tuple(told), seconds=end.at - start.at)
            recording.tools[path].append(PlayedCall(start.body, take))
        case _:
            pass


def _never_ran(end: ToolEnded) -> bool:
    error = end.error or ""
    return error.startswith("not_allowed") or error.endswith(("are no JSON object", "not asked again in this turn"))


def _model_take(path: str, end: ModelEnded, seconds: float, components: Sequence[Component]) -> Take:
    if end.error is not None:
        kind = "TimeoutError" if end.error.startswith(("TimeoutError", "CancelledError")) else end.error.partition(":")[0]
        kind = kind if kind.isidentifier() else "RuntimeError"
        text = end.error.removeprefix(kind).removeprefix(": ")
        return Take(place=path, request=(), broken=Broken(kind=kind, text=text), begun=False, seconds=seconds)
    parts = (f'<component type="{part.type}">{json.dumps(part.payload)}</component>' for part in components)
    calls = [ToolCall(name=c.name, args=c.args, id=f"{path}-{n}") for n, c in enumerate(map(call_of, end.calls), 1)]
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
    pieces = (end.text,) if end.text else ()
    return Take(place=path, request=(), message=plain_message(message), pieces=pieces, first=end.ttft, seconds=seconds)


def _tool_result(end: ToolEnded, components: Sequence[Component]) -> ToolResult:
    fault, _, detail = (end.error or "").partition(": ")
    parts = tuple(ComponentPayload(type=part.type, payload=part.payload) for part in components)
    fields: dict[str, Any] = {"fault": fault, "detail": detail} if fault else {}
    return ToolResult.model_validate({"text": end.result, "components": parts, "caveat": end.caveat, **fields})


def _above(event: Event, starts: dict[str, Event]) -> list[str]:
    """Returns the spans in which a span lies, the nearest first."""
    above: list[str] = []
    parent = event.parent_span_id
    while parent is not None:
        above.append(parent)
        parent = starts[parent].parent_span_id
    return above


def _is_in(event: Event, span_id: str, starts: dict[str, Event]) -> bool:
    return event.span_id == span_id or (event.span_id in starts and span_id in _above(starts[event.span_id], starts))


def _path(event: Event, starts: dict[str, Event], root: str) -> str:
    """Returns from where a call was made, as a running turn names it."""
    parts = [starts[span_id].body for span_id in reversed(_above(event, starts))]
    names = [f"{body.place}.{body.agent}" for body in (*parts, event.body) if isinstance(body, AgentStarted)]
    match event.body:
        case ModelStarted(purpose="job", agent=agent):
            names.append(agent)
        case ToolStarted(tool=tool):
            names.append(tool)
        case _:
            pass
    return "/".join([root, *names])
