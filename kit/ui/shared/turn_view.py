"""A turn as a person sees it: its text, a step for each sub-agent, and how it ended, in plain words."""

from typing import Literal, TypeVar

from pydantic import BaseModel

from kit.core.context import Principal
from kit.core.event import Event, Text
from kit.core.outcome import RoutingDecision, Usage
from kit.core.record import TurnStatus
from kit.core.trace import Trace, trace_of
from kit.core.transcript import Transcript, transcript
from kit.core.value import Value
from kit.ui.shared.wording import Tone, label, many

StepState = Literal["running", "ok", "partial", "failed", "stopped"]
TONES: dict[StepState, Tone] = {"running": "busy", "ok": "good", "partial": "warn", "failed": "bad", "stopped": "warn"}
_Body = TypeVar("_Body", bound=BaseModel)
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


def ending(status: TurnStatus, *, partial: bool) -> str:
    """Returns how a turn stands or ended; `partial`: not every part of it was answered."""
    return "Partly answered" if status == "ok" and partial else _HEADLINE[status]


class Step(Value):
    """One sub-agent's part of a turn."""

    span_id: str
    agent: str
    query: str
    start: float
    """Seconds since the turn began."""
    end: float | None = None
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
        """A word or a clause on how the step went."""
        words = {"running": "working", "ok": "answered", "partial": "answered in part", "failed": "failed", "stopped": "stopped"}
        return self.note or words[self.state]

    def seconds(self, now: float) -> float:
        """Returns how long the step has run, or ran; `now` in seconds since the turn began."""
        return max(0.0, (now if self.end is None else self.end) - self.start)


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
    saved: bool = True
    final: str | None = None
    """The answer as it was stored, for a turn whose events are not at hand."""
    events: tuple[Event, ...] = ()

    def bodies(self, *kinds: type[_Body]) -> list[_Body]:
        """Returns the bodies of these kinds among the events, in order."""
        return [event.body for event in self.events if isinstance(event.body, kinds)]

    @property
    def transcript(self) -> Transcript:
        """What the user has read so far."""
        return transcript(self.events)

    @property
    def lead(self) -> str:
        """What was said before sub-agents were called; the whole answer when none was."""
        return self.transcript.lead

    @property
    def answer(self) -> str:
        """The composed answer as far as it stands; empty when the lead was all there is."""
        return self.transcript.answer if self.events else self.final or ""

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
        return bool(self.left_out or self.unasked) or any(step.state in ("partial", "failed") for step in self.steps)

    @property
    def unasked(self) -> tuple[str, ...]:
        """Parts of the message that the model counted and asked nobody for, in words."""
        return self.routing.left_out.names if self.routing else ()

    @property
    def left_out_labels(self) -> tuple[str, ...]:
        return tuple(label(agent) for agent in self.left_out)

    @property
    def headline(self) -> str:
        return ending(self.status, partial=self.partial)

    @property
    def regret(self) -> str:
        """The sentence in place of an answer, when a turn ended without one."""
        return "" if self.answer or self.lead else _REGRET.get(self.status, "")

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What went wrong, one plain clause for each part."""
        failed = tuple(f"{step.label}: {step.note}" for step in self.steps if step.note and step.state != "stopped")
        left_out = (*self.left_out_labels, *self.unasked)
        return failed + tuple(f"{name}: left out, too many parts in one message" for name in left_out)

    @property
    def call_words(self) -> str:
        """How many calls the model made: in its first response, then later."""
        routing = self.routing
        if routing is None:
            return ""
        later = f", {routing.later_calls} more later" if routing.later_calls else ""
        return f"{many(routing.intent_count, 'call')} made{later}"

    @property
    def cap_words(self) -> str:
        """Whether the turn kept within its limit on sub-agents; empty when nothing was routed."""
        if self.routing is None or not (self.routing.intent_count or self.routing.rounds):
            return ""
        return f"{self.routing.cap_behavior} the limit of {self.routing.cap} at once"

    @property
    def tokens(self) -> int | None:
        return self.usage.input_tokens + self.usage.output_tokens if self.usage else None

    @property
    def cost_words(self) -> str:
        """US dollars; a dash where no price is known."""
        cost = self.usage.cost if self.usage else None
        return "–" if cost is None else f"${cost:.4f}" if cost else "$0"
