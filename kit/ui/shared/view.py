"""Events to what a person sees of a turn: one pure fold for live, stored and replayed turns alike."""

from collections.abc import Iterable
from typing import Literal

from kit.core.context import Principal
from kit.core.event import AgentEnded, AgentStarted, CallDropped, Completed, Event, Routing, Spent, StatusLine, Text, TurnStarted
from kit.core.outcome import Answer, Outcome, Reason, RoutingDecision, Usage
from kit.core.record import TurnRecord, TurnStatus
from kit.core.trace import Trace, trace_of
from kit.core.transcript import Transcript, transcript
from kit.core.value import Value

StepState = Literal["running", "ok", "failed", "stopped"]

_BECAUSE: dict[Reason, str] = {
    "timeout": "took too long",
    "exception": "had a problem on its side",
    "unknown_agent": "does not exist here",
    "not_allowed": "may not be used here",
    "budget": "ran out of the room it was given",
    "refusal": "declined to answer",
    "unavailable": "could not reach its data",
    "principal_mismatch": "blocked, because the data could not be confirmed as yours",
    "insufficient": "found nothing to say",
    "contract_violation": "got data it could not use",
    "low_confidence": "was not sure enough",
    "cancelled": "stopped",
}
_PARTLY = "answered without one of its sources"

_HEADLINE: dict[TurnStatus, str] = {
    "running": "Working",
    "ok": "Answered",
    "failed": "No full answer",
    "cancelled": "Stopped",
    "deadline": "Ran out of time",
    "interrupted": "Interrupted",
}
_REGRET: dict[TurnStatus, str] = {
    "interrupted": "This was interrupted before there was an answer.",
    "cancelled": "Stopped before there was an answer.",
    "failed": "There is no answer to this yet.",
    "deadline": "There was no answer in time.",
}


class Step(Value):
    """One sub-agent's part of a turn."""

    span_id: str
    agent: str
    query: str
    started: float
    """Seconds since the turn began."""
    ended: float | None = None
    state: StepState = "running"
    lines: tuple[str, ...] = ()
    """Progress in the assistant's words, in the order it came."""
    note: str = ""
    """In plain words, why it failed or what its answer lacks."""

    @property
    def label(self) -> str:
        return label(self.agent)

    @property
    def verdict(self) -> str:
        """How it went, in a word or a clause."""
        return self.note or {"running": "working", "ok": "answered", "failed": "failed", "stopped": "stopped"}[self.state]

    def seconds(self, now: float) -> float:
        """How long it has run, or ran; `now` in seconds since the turn began."""
        return max(0.0, (now if self.ended is None else self.ended) - self.started)


class TurnView(Value):
    """One turn as a person sees it. Raw reasons and ids stay in `events`, for the trace."""

    turn_id: str = ""
    question: str = ""
    status: TurnStatus = "running"
    started_at: float = 0.0
    """Wall clock, seconds since the epoch."""
    seconds: float | None = None
    """How long it took; None while it runs, or when nobody saw it end."""
    steps: tuple[Step, ...] = ()
    left_out: tuple[str, ...] = ()
    """Agents over the cap: never run."""
    routing: RoutingDecision | None = None
    usage: Usage | None = None
    principal: Principal | None = None
    """On whose behalf it ran."""
    pattern: str = ""
    model: str = ""
    """Key of the orchestrator's model."""
    faults: tuple[str, ...] = ()
    """What it was made to run into on purpose, as `agent=kind`."""
    final: str | None = None
    """The answer as it was stored, for a turn whose events are not at hand."""
    events: tuple[Event, ...] = ()

    @classmethod
    def of(cls, turn: TurnRecord, events: Iterable[Event] = ()) -> "TurnView":
        """A stored turn. One that never completed keeps the status its record has."""
        begun = cls(
            turn_id=turn.id,
            question=turn.message,
            status=turn.status,
            started_at=turn.started_at,
            seconds=turn.seconds,
            principal=Principal(tenant_id=turn.tenant_id, user_id=turn.user_id),
            pattern=turn.pattern,
            model=turn.model,
            final=turn.text or None,
        )
        return advance(begun, events)

    @property
    def said(self) -> Transcript:
        return transcript(self.events)

    @property
    def lead(self) -> str:
        """What was said before sub-agents were called; the whole answer when none was."""
        return self.said.lead

    @property
    def answer(self) -> str:
        """The composed answer as far as it stands; empty when the lead was all there is."""
        return self.said.answer if self.events else self.final or ""

    @property
    def ttft(self) -> float | None:
        """Seconds to the first text."""
        return next((event.at for event in self.events if isinstance(event.body, Text)), None)

    @property
    def trace(self) -> Trace:
        return trace_of(self.events)

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def partial(self) -> bool:
        """Answered, but not in every part."""
        return bool(self.left_out) or any(step.state == "failed" for step in self.steps)

    @property
    def left_out_labels(self) -> tuple[str, ...]:
        return tuple(label(agent) for agent in self.left_out)

    @property
    def headline(self) -> str:
        return "Partly answered" if self.status == "ok" and self.partial else _HEADLINE[self.status]

    @property
    def regret(self) -> str:
        """What stands where an answer should, when a turn ended without one."""
        return "" if self.answer or self.lead else _REGRET.get(self.status, "")

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What went wrong, one plain clause for each part."""
        failed = tuple(f"{step.label}: {step.note}" for step in self.steps if step.note and step.state != "stopped")
        return failed + tuple(f"{name}: left out, too many parts in one message" for name in self.left_out_labels)

    @property
    def cap_words(self) -> str:
        """How the turn stood to its limit on sub-agents; empty when nothing was routed."""
        if self.routing is None or not self.routing.intent_count:
            return ""
        cap = self.routing.cap
        match self.routing.cap_behavior:
            case "within":
                return f"within the limit of {cap} at once"
            case "at":
                return f"at the limit of {cap} at once"
            case "over":
                return f"over the limit of {cap} at once"

    @property
    def tokens(self) -> int | None:
        return self.usage.input_tokens + self.usage.output_tokens if self.usage else None

    @property
    def cost_words(self) -> str:
        """US dollars; a dash where no price is known."""
        cost = self.usage.cost if self.usage else None
        if cost is None:
            return "–"
        return f"${cost:.4f}" if cost else "$0"


def advance(view: TurnView, events: Iterable[Event]) -> TurnView:
    """The view after more events. However a log is cut into batches, the result is the same."""
    batch = tuple(events)
    for event in batch:
        view = _after(view, event)
    return view.model_copy(update={"events": view.events + batch}) if batch else view


def lost(view: TurnView) -> TurnView:
    """A turn that will never complete: its process died, or it broke."""
    steps = tuple(_stopped(step, view.events[-1].at) for step in view.steps)
    return view.model_copy(update={"status": "interrupted", "steps": steps})


def label(agent: str) -> str:
    """An agent's id in plain words, as a heading."""
    return agent.replace("_", " ").replace("-", " ").strip().capitalize()


def _after(view: TurnView, event: Event) -> TurnView:
    changed: dict[str, object]
    match event.body:
        case TurnStarted() as begun:
            changed = {"turn_id": event.turn_id, "question": begun.message, "started_at": begun.started_at}
            changed |= {"principal": begun.principal, "pattern": begun.pattern, "model": begun.model, "faults": begun.faults}
        case AgentStarted() if any(step.span_id == event.parent_span_id for step in view.steps):
            return view  # a member of a race or the like: its asker's step stands for it
        case AgentStarted(agent=agent, query=query):
            step = Step(span_id=event.span_id, agent=agent, query=query, started=event.at)
            changed = {"steps": (*view.steps, step)}
        case StatusLine(agent=agent, text=text):
            changed = {"steps": _with_line(view.steps, event, agent, text)}
        case AgentEnded(outcome=outcome):
            changed = {"steps": tuple(_ended(s, outcome, event.at) if s.span_id == event.span_id else s for s in view.steps)}
        case CallDropped(agent=agent, reason="over_cap"):
            changed = {"left_out": (*view.left_out, agent)}
        case Routing(decision=decision):
            changed = {"routing": decision}
        case Spent(usage=usage):
            changed = {"usage": usage}
        case Completed(status=status):
            stopped = tuple(_stopped(step, event.at) for step in view.steps)
            changed = {"status": status, "seconds": event.at, "steps": stopped}
        case _:
            return view
    return view.model_copy(update=changed)


def _with_line(steps: tuple[Step, ...], event: Event, agent: str, text: str) -> tuple[Step, ...]:
    """Gives the line to the step it was said in: its own span, its tool's parent, else the agent's newest step.

    A line about several agents, which names none, goes to every step that is running.
    """
    if not agent:
        running = {step.agent for step in steps if step.state == "running"}
        for name in sorted(running):
            steps = _with_line(steps, event, name, text)
        return steps
    spans = [step.span_id for step in steps]
    names = [step.agent for step in steps]
    if event.span_id in spans:
        place = spans.index(event.span_id)
    elif event.parent_span_id in spans:
        place = spans.index(event.parent_span_id)
    elif agent in names:
        place = len(names) - 1 - names[::-1].index(agent)
    else:
        return steps
    step = steps[place]
    if step.lines[-1:] == (text,):
        return steps
    return (*steps[:place], step.model_copy(update={"lines": (*step.lines, text)}), *steps[place + 1 :])


def _ended(step: Step, outcome: Outcome, at: float) -> Step:
    if isinstance(outcome, Answer):
        note = _PARTLY if outcome.data_faults or outcome.caveat else ""
        return step.model_copy(update={"state": "ok", "ended": at, "note": note})
    state: StepState = "stopped" if outcome.reason == "cancelled" else "failed"
    return step.model_copy(update={"state": state, "ended": at, "note": _BECAUSE[outcome.reason]})


def _stopped(step: Step, at: float) -> Step:
    return step.model_copy(update={"state": "stopped", "ended": at}) if step.state == "running" else step
