"""Spans and totals of a turn, derived from its events and from nothing else."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from kit.core.bodies.call import (
    AgentEnded,
    AgentStarted,
    CallFailure,
    ModelEnded,
    ModelPause,
    ModelStarted,
    ToolEnded,
    ToolRetry,
    ToolStarted,
    text_and_calls,
)
from kit.core.bodies.turn import Completed, Fork, Replay, Routing, TurnStarted, TurnUsage
from kit.core.display.count import many
from kit.core.display.html import Html, bar, notebook_html, table, text
from kit.core.errors import STOP
from kit.core.event import Body, Event
from kit.core.outcome import Answer, Failure, RoutingDecision, Usage
from kit.core.value import Value

SpanKind = Literal["turn", "agent", "model", "tool"]


class Span(Value):
    """A piece of a turn with a beginning and an end; times in seconds since the turn began."""

    id: str
    parent_id: str | None
    kind: SpanKind
    name: str
    agent: str
    started: float
    ended: float
    """Of a span that nobody closed: the end of what it is part of; while that runs too, the newest event."""
    status: Literal["running", "ok", "error"] = "running"
    """`running` for a span that nobody closed."""
    error: str | None = None
    input: str = ""
    output: str = ""
    usage: Usage = Usage()
    ttft: float | None = None
    """Seconds from a model call to its first token."""
    attributes: dict[str, Any] = {}

    @property
    def is_replay(self) -> bool:
        """Played from a recording: nothing was called."""
        return "replay" in self.attributes

    @property
    def cut_off(self) -> bool:
        """Ended by what it is part of: a deadline above it, or a person who stopped the turn."""
        return (self.error or "").startswith(STOP)

    @property
    def timed_out(self) -> bool:
        """An agent whose own time was over."""
        return self.kind == "agent" and (self.error or "").startswith("invocation: timeout")

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class Trace(Value):
    """One turn as a tree of spans."""

    turn_id: str
    started_at: float = 0.0
    spans: tuple[Span, ...] = ()
    """In the order they began; the first is the turn itself."""
    routing: RoutingDecision | None = None
    usage: Usage = Usage()

    def _repr_html_(self) -> str:
        """Shows the waterfall in a notebook."""
        return notebook_html(
            text(f"{many(len(self.spans), 'span')} · turn {self.turn_id}"), waterfall(self)
        )

    def children(self, span_id: str | None) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.parent_id == span_id)

    def rows(self) -> list[tuple[int, Span]]:
        """The waterfall: every span once, parents before children, with its depth."""
        waterfall: list[tuple[int, Span]] = []

        def walk(parent: str | None, depth: int) -> None:
            for span in self.children(parent):
                waterfall.append((depth, span))
                walk(span.id, depth + 1)

        walk(None, 0)
        return waterfall


def _span_start(body: Body) -> dict[str, Any] | None:
    """Returns the fields of the span that an event opens."""
    match body:
        case TurnStarted():
            attributes = body.model_dump(mode="json", exclude={"kind", "message", "started_at"})
            return _opening("turn", "turn", "", body.message, attributes)
        case AgentStarted():
            attributes: dict[str, Any] = {
                "call_id": body.call_id,
                "prior_context": body.prior_context,
                "fields": body.fields,
                "principal": body.principal and body.principal.model_dump(),
            }
            if body.limited:
                attributes["limited"] = body.limited
            return _opening("agent", body.agent, body.agent, body.query, attributes)
        case ModelStarted():
            attributes = {"model": body.model, "purpose": body.purpose}
            if body.instead_of:
                attributes["instead_of"] = body.instead_of
            name = f"{body.purpose} · {body.model}"
            request = "\n".join(map(str, body.input))
            return _opening("model", name, body.agent, request, attributes)
        case ToolStarted():
            attributes = {"call_id": body.call_id}
            return _opening("tool", body.tool, body.agent, str(body.args), attributes)
        case _:
            return None


def _opening(
    kind: SpanKind, name: str, agent: str, text: str, attributes: dict[str, Any]
) -> dict[str, Any]:
    return {"kind": kind, "name": name, "agent": agent, "input": text, "attributes": attributes}


def _span_end(body: Body) -> dict[str, Any] | None:
    match body:
        case Completed():
            failed = body.status in ("failed", "deadline")
            return {"status": "error" if failed else "ok", "error": body.error, "output": body.text}
        case AgentEnded(outcome=Answer() as answer):
            return {"status": "ok", "output": answer.text, "usage": answer.usage}
        case AgentEnded(outcome=Failure(is_stopped=True, detail=detail) as stopped):
            return {"status": "ok", "output": detail, "usage": stopped.usage}
        case AgentEnded(outcome=Failure() as failure):
            error = f"{failure.axis}: {failure.reason}"
            if failure.detail:
                error += f": {failure.detail}"
            return {"status": "error", "error": error, "usage": failure.usage}
        case ModelEnded():
            output = body.text
            if body.calls:
                output = text_and_calls(output, body.calls)
            return {**_result(body.error, output), "usage": body.usage, "ttft": body.ttft}
        case ToolEnded(failure=CallFailure(kind="paused")):
            return {"status": "ok", "output": "it waits for the user's answer"}
        case ToolEnded():
            return _result(body.error, body.result)
        case _:
            return None


def _result(error: str | None, output: str) -> dict[str, Any]:
    return {"status": "error" if error else "ok", "error": error, "output": output}


def trace_of(events: Iterable[Event]) -> Trace:
    """Folds events (of one turn, in order) into its trace; a span that nobody closed ends with what it is part of."""
    open_spans: dict[str, dict[str, Any]] = {}
    turn_id = ""
    started_at = 0.0
    last = 0.0
    routing = None
    usage = Usage()
    for event in events:
        turn_id = event.turn_id
        last = event.at
        start = _span_start(event.body)
        if start is not None:
            open_spans[event.span_id] = {
                "id": event.span_id,
                "parent_id": event.parent_span_id,
                "started": event.at,
                **start,
            }
        closed = _span_end(event.body)
        if closed is not None and event.span_id in open_spans:
            open_spans[event.span_id].update(closed, ended=event.at)
        match event.body:
            case TurnStarted(started_at=when):
                started_at = when
            case Routing(decision=decision):
                routing = decision
            case TurnUsage(usage=turn_usage):
                usage = turn_usage
            # A ToolRetry of an earlier attempt is overwritten: the trace shows that there was one.
            case Replay() | Fork() | ToolRetry() | ModelPause() if event.span_id in open_spans:
                attribute = event.body.model_dump(exclude={"kind"}, exclude_none=True) or True
                open_spans[event.span_id]["attributes"][event.kind] = attribute
            case _:
                pass
    # Parents began first, so theirs are known by now.
    for fields in open_spans.values():
        if "ended" not in fields:
            parent = open_spans.get(fields["parent_id"] or "", {})
            fields["ended"] = max(parent.get("ended", last), fields["started"])
    spans = tuple(Span(**fields) for fields in open_spans.values())
    return Trace(turn_id=turn_id, started_at=started_at, spans=spans, routing=routing, usage=usage)


def waterfall(trace: Trace) -> Html:
    """Returns the spans of a trace as a table: each under what it is part of, with its time as a bar."""
    whole = max((span.ended for span in trace.spans), default=0.0) or 1.0
    rows: list[tuple[object, ...]] = []
    for depth, span in trace.rows():
        name = f"{span.agent} · {span.name}" if span.kind == "tool" else span.name or span.kind
        time = bar(span.started / whole, span.ended / whole, error=span.status == "error")
        ending = span.error or span.status
        rows.append(("  " * depth + name, time, f"{span.seconds:.2f} s", ending))
    return table(("span", "", "time", "end"), rows)


def slowest(spans: Sequence[Span]) -> Span | None:
    """The span that took longest, the turn itself aside."""
    parts = [span for span in spans if span.kind != "turn"]
    return max(parts, key=lambda span: span.seconds, default=None)


def failures(trace: Trace) -> tuple[Span, ...]:
    """Where it went wrong: spans that ended in an error while nothing below them did, in the order they began.

    A span that was only cut off by what it is part of has not failed itself.
    """
    broken = [span for span in trace.spans if span.status == "error" and not span.cut_off]
    # What failed below a span is why the span did.
    parents = {span.parent_id for span in broken}
    return tuple(span for span in broken if span.id not in parents)


def critical_path(trace: Trace) -> tuple[Span, ...]:
    """What the turn waited for: back from its end, at each moment the part that ended last; parts
    before their own parts.

    What is not on it could have been faster without the turn being so.
    """
    return tuple(_awaited(trace, None, math.inf))


def _awaited(trace: Trace, parent_id: str | None, until: float) -> list[Span]:
    path: list[Span] = []
    # Of two that end together the one still running is what is waited for.
    last_first = sorted(
        trace.children(parent_id),
        key=lambda span: (span.ended, span.status == "running"),
        reverse=True,
    )
    for span in last_first:
        if span.ended <= until and span.started <= until:
            path = [span, *_awaited(trace, span.id, span.ended), *path]
            until = span.started
    return path
