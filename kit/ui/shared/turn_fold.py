"""Folds events into the view of a turn: one pure function for live, stored and replayed turns alike."""

from collections.abc import Iterable
from itertools import chain

from kit.core.bodies.call import (
    AgentEnded,
    AgentStarted,
    ModelEnded,
    ModelStarted,
    ToolEnded,
    ToolStarted,
)
from kit.core.bodies.guard import CallDropped
from kit.core.bodies.speech import StatusLine, Text, TextReplaced
from kit.core.bodies.turn import Completed, Routing, TurnStarted, TurnUsage
from kit.core.event import Event
from kit.core.outcome import Answer, Outcome
from kit.core.record import TurnRecord
from kit.core.transcript import transcript
from kit.ui.shared.turn_view import PARTLY, REASONS, Entry, Step, StepState, TurnView


def advance(view: TurnView, events: Iterable[Event]) -> TurnView:
    """Returns the view after more events. However a log is cut into batches, the result is the same."""
    batch = tuple(events)
    for event in batch:
        view = _apply(view, event)
    if not batch:
        return view
    fields: dict[str, object] = {"events": view.events + batch}
    # The transcript is read from all events: once where a batch brings text, not at each look.
    if any(isinstance(event.body, Text | TextReplaced) for event in batch):
        fields["transcript"] = transcript(view.events + batch)
    return view.model_copy(update=fields)


def stored_view(turn: TurnRecord, events: Iterable[Event] = ()) -> TurnView:
    """Returns the view of a stored turn. One that never completed keeps the status its record has."""
    view = TurnView(
        turn_id=turn.id,
        session_id=turn.session_id,
        question=turn.message,
        status=turn.status,
        started_at=turn.started_at,
        seconds=turn.seconds,
        principal=turn.principal,
        pattern=turn.pattern,
        model=turn.model,
        final=turn.text or None,
    )
    view = advance(view, events)
    if view.status == "interrupted":
        return interrupt(view)
    return view


def interrupt(view: TurnView) -> TurnView:
    """Returns the view of a turn that will never complete, because its process died or it broke."""
    steps = tuple(_stop_step(step, view.events[-1].at) for step in view.steps)
    return view.model_copy(update={"status": "interrupted", "steps": steps})


def _apply(view: TurnView, event: Event) -> TurnView:
    fields: dict[str, object]
    match event.body:
        case TurnStarted() as begun:
            fields = {
                "turn_id": event.turn_id,
                "session_id": begun.session_id,
                "question": begun.message,
                "started_at": begun.started_at,
                "principal": begun.principal,
                "pattern": begun.pattern,
                "model": begun.model,
                "faults": begun.faults,
            }
        case AgentStarted() if any(step.span_id == event.parent_span_id for step in view.steps):
            # A member of a race or the like: its asker's step stands for it.
            return view
        case AgentStarted(agent=agent, query=query, call_id=call_id):
            step = Step(
                span_id=event.span_id,
                call_id=call_id,
                agent=agent,
                query=query,
                start=event.at,
            )
            fields = {"steps": (*view.steps, step)}
        case StatusLine(agent=agent, text=text):
            fields = {"steps": _with_line(view.steps, event, agent, text)}
        case ModelStarted() | ModelEnded() | ToolStarted() | ToolEnded() as act:
            fields = {"steps": _with_act(view.steps, event, act)}
        case AgentEnded(outcome=outcome):
            fields = {"steps": _with_end(view.steps, event, outcome)}
        case CallDropped(agent=agent, reason="over_cap"):
            fields = {"left_out": (*view.left_out, agent)}
        case Routing(decision=decision):
            fields = {"routing": decision}
        case TurnUsage(usage=usage):
            fields = {"usage": usage}
        case Completed(status=status, saved=saved):
            steps = tuple(_stop_step(step, event.at) for step in view.steps)
            fields = {"status": status, "seconds": event.at, "steps": steps, "saved": saved}
        case _:
            return view
    return view.model_copy(update=fields)


def _with_line(steps: tuple[Step, ...], event: Event, agent: str, text: str) -> tuple[Step, ...]:
    """Adds a status line to the step of its span, of its tool's parent span, else to the agent's newest step.

    A line about several agents, which names none, goes to every step that is running.
    """
    if not agent:
        for name in sorted({step.agent for step in steps if step.state == "running"}):
            steps = _with_line(steps, event, name, text)
        return steps
    in_span = (step for step in steps if step.span_id == event.span_id)
    above = (step for step in steps if step.span_id == event.parent_span_id)
    newest = (step for step in reversed(steps) if step.agent == agent)
    target = next(chain(in_span, above, newest), None)
    if target is None or target.lines[-1:] == (text,):
        return steps
    return _with_entry(steps, target, Entry(at=event.at, text=text, is_status=True))


def _with_act(
    steps: tuple[Step, ...], event: Event, act: ModelStarted | ModelEnded | ToolStarted | ToolEnded
) -> tuple[Step, ...]:
    """Adds what a sub-agent did to its step, without what came back: that is for the trace."""
    target = next((step for step in steps if step.span_id == event.parent_span_id), None)
    if target is None:
        return steps
    if isinstance(act, ModelStarted):
        words = f"asks {act.model}"
    elif isinstance(act, ToolStarted):
        words = f"calls {act.tool}({', '.join(act.args)})"
    else:
        name = act.model if isinstance(act, ModelEnded) else f"{act.tool}()"
        words = f"{name} has answered"
        if act.error:
            words = f"{name} failed"
    return _with_entry(steps, target, Entry(at=event.at, text=words))


def _with_entry(steps: tuple[Step, ...], target: Step, entry: Entry) -> tuple[Step, ...]:
    longer = target.model_copy(update={"entries": (*target.entries, entry)})
    results: list[Step] = []
    for step in steps:
        results.append(longer if step is target else step)
    return tuple(results)


def _with_end(steps: tuple[Step, ...], event: Event, outcome: Outcome) -> tuple[Step, ...]:
    results: list[Step] = []
    for step in steps:
        if step.span_id == event.span_id:
            results.append(_end_step(step, outcome, event.at))
        else:
            results.append(step)
    return tuple(results)


def _end_step(step: Step, outcome: Outcome, seconds: float) -> Step:
    state: StepState = "failed"
    note = ""
    if not isinstance(outcome, Answer):
        note = REASONS[outcome.reason]
        if outcome.reason in ("cancelled", "paused"):
            state = "stopped"
    else:
        state = "ok"
        if outcome.is_partial:
            state = "partial"
        if outcome.reservation:
            note = PARTLY
    return step.model_copy(update={"state": state, "end": seconds, "note": note})


def _stop_step(step: Step, seconds: float) -> Step:
    if step.state == "running":
        return step.model_copy(update={"state": "stopped", "end": seconds})
    return step
