"""Folds events into the view of a turn: one pure function for live, stored and replayed turns alike."""

from collections.abc import Iterable

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
from kit.core.bodies.turn import ActStarted, Completed, Routing, TurnStarted, TurnUsage
from kit.core.event import Event
from kit.core.outcome import Answer, Outcome
from kit.core.record import TurnRecord
from kit.core.transcript import transcript
from kit.runtime.act_ledger import act_of
from kit.ui.shared.turn_view import HANDED_ON, Entry, Step, TurnView, step_end


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
    if not view.steps:
        return view.model_copy(update={"status": "interrupted"})
    steps = _stop_steps(view.steps, view.events[-1].at)
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
            }
        case AgentStarted() if _step_of(view.steps, event):
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
        case ActStarted():
            fields = {"steps": _with_open_act(view.steps, event)}
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
            steps = _stop_steps(view.steps, event.at)
            fields = {"status": status, "seconds": event.at, "steps": steps, "saved": saved}
        case _:
            return view
    return view.model_copy(update=fields)


def _step_of(steps: tuple[Step, ...], event: Event) -> Step | None:
    """Returns the step that an event belongs to: that of its span, or of the span above it."""
    for step in steps:
        if step.span_id in (event.span_id, event.parent_span_id):
            return step
    return None


def _replace(steps: tuple[Step, ...], target: Step, **fields: object) -> tuple[Step, ...]:
    number = steps.index(target)
    return (*steps[:number], target.model_copy(update=fields), *steps[number + 1 :])


def _with_entry(steps: tuple[Step, ...], target: Step, entry: Entry) -> tuple[Step, ...]:
    return _replace(steps, target, entries=(*target.entries, entry))


def _with_line(steps: tuple[Step, ...], event: Event, agent: str, text: str) -> tuple[Step, ...]:
    """Adds a status line to the step of its span, of its tool's parent span, else to the agent's newest step.

    A line about several agents, which names none, goes to every step that is running.
    """
    if not agent:
        for name in sorted({step.agent for step in steps if step.state == "running"}):
            steps = _with_line(steps, event, name, text)
        return steps
    target = _step_of(steps, event) or _newest(steps, agent)
    if target is None or target.lines[-1:] == (text,):
        return steps
    return _with_entry(steps, target, Entry(at=event.at, text=text, is_status=True))


def _newest(steps: tuple[Step, ...], agent: str) -> Step | None:
    for step in reversed(steps):
        if step.agent == agent:
            return step
    return None


def _with_act(
    steps: tuple[Step, ...], event: Event, act: ModelStarted | ModelEnded | ToolStarted | ToolEnded
) -> tuple[Step, ...]:
    """Adds what a sub-agent did to its step, without what came back: that is for the trace."""
    target = _step_of(steps, event)
    if target is None:
        return steps
    if isinstance(act, ModelStarted):
        words = f"asks {act.model}"
    elif isinstance(act, ToolStarted):
        words = f"calls {act.tool}({', '.join(act.args)})"
    else:
        name = act.model if isinstance(act, ModelEnded) else f"{act.tool}()"
        words = f"{name} has answered"
        if act.failure is not None and act.failure.kind == "paused":
            words = f"{name} waits for a yes or a no"
        elif act.error:
            words = f"{name} failed"
    if isinstance(act, ToolEnded) and event.span_id in target.open_acts:
        end = act_of(act)
        if end.text is not None:
            open_acts = target.open_acts - {event.span_id}
            has_acted = target.has_acted or end.failure is None
            steps = _replace(steps, target, open_acts=open_acts, has_acted=has_acted)
            target = _step_of(steps, event) or target
    return _with_entry(steps, target, Entry(at=event.at, text=words))


def _with_open_act(steps: tuple[Step, ...], event: Event) -> tuple[Step, ...]:
    target = _step_of(steps, event)
    if target is None:
        return steps
    return _replace(steps, target, open_acts=target.open_acts | {event.span_id})


def _with_end(steps: tuple[Step, ...], event: Event, outcome: Outcome) -> tuple[Step, ...]:
    target = _step_of(steps, event)
    # The end of a member of a race is not the end of the step that stands for it.
    if target is None or target.span_id != event.span_id:
        return steps
    if isinstance(outcome, Answer):
        state, note = step_end(None, partial=outcome.is_partial)
        if outcome.is_handover:
            note = HANDED_ON
        if outcome.caveat:
            note = f"{outcome.caveat[:1].lower()}{outcome.caveat[1:].rstrip('.')}"
    else:
        state, note = step_end(outcome.reason)
    return _replace(steps, target, state=state, end=event.at, note=note)


def _stop_steps(steps: tuple[Step, ...], at: float) -> tuple[Step, ...]:
    """Returns the steps of a turn that is over: nobody will hear of those that still run."""
    for step in steps:
        if step.state == "running":
            steps = _replace(steps, step, state="stopped", end=at)
    return steps
