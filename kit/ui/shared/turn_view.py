"""A turn as a person sees it: its text, a step for each sub-agent, and how it ended, in plain words."""

from typing import Literal, TypeVar

from pydantic import BaseModel

from kit.core.bodies.call import ToolStarted
from kit.core.bodies.speech import Text
from kit.core.context import Principal
from kit.core.display.count import many
from kit.core.event import Event
from kit.core.language.clauses import clauses
from kit.core.language.words import content_words
from kit.core.outcome import NOTHING_LEFT, LeftOut, Reason, RoutedOutcome, RoutingDecision, Usage
from kit.core.record import TurnStatus
from kit.core.trace import Trace, trace_of
from kit.core.transcript import Transcript
from kit.core.value import Value
from kit.ui.shared.wording import Tone, dollars, label

StepState = Literal["running", "ok", "partial", "failed", "stopped"]
Pace = Literal["starting", "active", "quiet", "stalled"]
TONES: dict[StepState, Tone] = {
    "running": "busy",
    "ok": "good",
    "partial": "warn",
    "failed": "bad",
    "stopped": "warn",
}
_Body = TypeVar("_Body", bound=BaseModel)
_HEADLINE: dict[TurnStatus, str] = {
    "running": "Working",
    "ok": "Answered",
    "failed": "No full answer",
    "cancelled": "Stopped",
    "deadline": "Ran out of time",
    "paused": "Waiting for you",
    "interrupted": "Interrupted",
}
_REGRET: dict[TurnStatus, str] = {
    "interrupted": "This was interrupted before there was an answer.",
    "cancelled": "Stopped before there was an answer.",
    "failed": "There is no answer to this yet.",
    "deadline": "There was no answer in time.",
}


REASONS: dict[Reason, str] = {
    "timeout": "took too long",
    "exception": "had a problem on its side",
    "rate_limited": "was asked too much at once",
    "unknown_agent": "does not exist here",
    "not_allowed": "may not be used here",
    "budget": "ran out of the room it was given",
    "bad_arguments": "asked in a way that nobody could read",
    "script_failed": "wrote a script that does not work",
    "refusal": "declined to answer",
    "unanswerable": "has nothing on that",
    "unavailable": "could not reach its data",
    "principal_mismatch": "its data could not be confirmed as yours",
    "insufficient": "found nothing to say",
    "contract_violation": "got data it could not use",
    "low_confidence": "was not sure enough",
    "uncertain": "broke off while doing something",
    "cancelled": "stopped",
    "paused": "waits for your answer",
}
PARTLY = "answered without one of its sources"
UNCOUNTED = ("classifier_gateway", "monolith", "swarm")
"""Patterns in which nobody counts the parts of a message."""
PLANNED = "plan_execute"
"""The pattern in which a part is what a plan left, or failed of, and not each run of its planner and its executors."""


def ending(status: TurnStatus, *, partial: bool, answered: int = 0, parts: int = 0) -> str:
    """Returns how a turn stands or ended; `partial`: not every part was answered whole; `answered`
    of its `parts` were."""
    if status != "ok" or not partial:
        return _HEADLINE[status]
    if not answered and parts:
        return "Could not answer"
    return f"{answered} of {parts} answered" if answered < parts else "Partly answered"


class Entry(Value):
    """A line of a step's transcript."""

    at: float
    """Seconds since the turn began."""
    text: str
    is_status: bool = False
    """Progress in the assistant's words; else what the sub-agent did."""


class Step(Value):
    """One sub-agent's part of a turn."""

    span_id: str
    agent: str
    query: str
    start: float
    """Seconds since the turn began."""
    end: float | None = None
    state: StepState = "running"
    entries: tuple[Entry, ...] = ()
    """What it said and did, in the order it came."""
    note: str = ""
    """In plain words, why it failed or what its answer lacks."""

    @property
    def label(self) -> str:
        return label(self.agent)

    @property
    def verdict(self) -> str:
        """A word or a clause on how the step went."""
        words = {
            "running": "working",
            "ok": "answered",
            "partial": "answered in part",
            "failed": "failed",
            "stopped": "stopped",
        }
        return self.note or words[self.state]

    @property
    def lines(self) -> tuple[str, ...]:
        """Progress in the assistant's words."""
        return tuple(entry.text for entry in self.entries if entry.is_status)

    def pace(self, now: float, quiet: float, stalled: float) -> Pace:
        """Returns how a running step goes; `quiet` and `stalled` in seconds since it last did something."""
        acts = [entry.at for entry in self.entries if not entry.is_status]
        silence = now - max(acts, default=self.start)
        return (
            "stalled"
            if silence >= stalled
            else "quiet"
            if silence >= quiet
            else "active"
            if acts
            else "starting"
        )

    def seconds(self, now: float) -> float:
        """Returns how long the step has run, or ran; `now` in seconds since the turn began."""
        return max(0.0, (now if self.end is None else self.end) - self.start)

    @classmethod
    def of(cls, outcome: RoutedOutcome) -> "Step":
        """Returns a step that only its outcome is known of: a part that one agent did for another."""
        state: StepState = (
            "failed" if outcome.reason else "partial" if outcome.result == "partial" else "ok"
        )
        note = REASONS[outcome.reason] if outcome.reason else PARTLY if state == "partial" else ""
        return cls(
            span_id=outcome.call_id,
            agent=outcome.agent,
            query="",
            start=0.0,
            end=0.0,
            state=state,
            note=note,
        )


class TurnView(Value):
    """One turn as a person sees it. Raw reasons and ids stay in `events`, for the trace."""

    turn_id: str = ""
    session_id: str = ""
    question: str = ""
    status: TurnStatus = "running"
    elsewhere: bool = False
    """Another process runs it, and will store its end."""
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
    transcript: Transcript = Transcript()
    """What the user has read of the events so far."""

    def bodies(self, *kinds: type[_Body]) -> list[_Body]:
        """Returns the bodies of these kinds among the events, in order."""
        return [event.body for event in self.events if isinstance(event.body, kinds)]

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
        """Whether this process runs it."""
        return self.status == "running" and not self.elsewhere

    @property
    def parts(self) -> tuple[Step, ...]:
        """The parts that were taken on, each at its latest try: a step each, or what one agent did
        in another's place."""
        if self.pattern == PLANNED and self.routing is not None:
            return tuple(map(Step.of, self.routing.outcomes))
        steps = self.steps or tuple(
            Step.of(outcome) for outcome in (self.routing.outcomes if self.routing else ())
        )
        latest = {(step.agent, step.query.casefold().strip()): step for step in steps}
        return tuple(latest.values())

    @property
    def partial(self) -> bool:
        """Answered, but not in every part."""
        return bool(self.skipped) or any(step.state in ("partial", "failed") for step in self.parts)

    @property
    def answered(self) -> int:
        """How many parts were answered, be it in part."""
        return sum(part.state in ("ok", "partial") for part in self.parts)

    @property
    def left_out_count(self) -> int:
        """How many parts nobody was asked for, as far as they were counted."""
        return len(self.left_out) + (self.routing.left_out.count if self.routing else 0)

    @property
    def unasked(self) -> tuple[str, ...]:
        """Parts of the message that the model counted and asked nobody for, in words."""
        return self.routing.left_out.names if self.routing else ()

    @property
    def lost(self) -> LeftOut:
        """Parts beyond the calls that were made, where nobody counts parts; named if no word of the
        answer is about them."""
        if (
            self.pattern not in UNCOUNTED
            or self.status != "ok"
            or self.routing is None
            or not self.routing.invoked
        ):
            return NOTHING_LEFT
        pieces = [piece for piece in clauses(self.question, opening=True) if piece.content]
        calls = len(self.steps) or len(
            {(body.tool, str(body.args)) for body in self.bodies(ToolStarted)}
        )
        count = len(pieces) - calls - self.left_out_count
        answer_words = content_words(f"{self.lead} {self.answer}")
        silent = tuple(piece.text for piece in pieces if not piece.content & answer_words)
        return LeftOut(count=count, parts=silent[:count]) if count > 0 else NOTHING_LEFT

    @property
    def skipped(self) -> tuple[str, ...]:
        """Parts that were not taken on, in words: over the limit, or asked of nobody."""
        return (*map(label, self.left_out), *self.unasked, *self.lost.names)

    @property
    def headline(self) -> str:
        if self.elsewhere:
            return "Runs elsewhere"
        parts = len(self.parts) + self.left_out_count + self.lost.count
        if self.lost.count and self.answered + self.lost.count == parts:
            return f"{self.answered} of {parts} asked for"  # what came of the others nobody counted
        return ending(self.status, partial=self.partial, answered=self.answered, parts=parts)

    @property
    def regret(self) -> str:
        """The sentence in place of an answer, when a turn ended without one."""
        if self.elsewhere and not self.answer:
            return "Another server is working on this. Its answer will stand here once the page is loaded again."
        return "" if self.answer or self.lead else _REGRET.get(self.status, "")

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What went wrong, one plain clause for each part."""
        failed = tuple(
            f"{step.label}: {step.note}"
            for step in self.parts
            if step.note and step.state != "stopped"
        )
        left_out = (*map(label, self.left_out), *self.unasked)
        return failed + tuple(
            f"{name}: left out, too many parts in one message" for name in left_out
        )

    @property
    def call_words(self) -> str:
        """How many calls the model asked for: in its first response, then later."""
        routing = self.routing
        if routing is None:
            return ""
        later = f", {routing.later_calls} more later" if routing.later_calls else ""
        return f"{many(routing.intent_count, 'call')} asked for{later}"

    @property
    def cap_words(self) -> str:
        """Whether the turn kept within its limit on sub-agents; empty when nothing was routed, or a
        plan has other limits."""
        if (
            self.pattern == PLANNED
            or self.routing is None
            or not (self.routing.intent_count or self.routing.rounds)
        ):
            return ""
        limit, run, left_out = self.routing.cap, len(self.parts), self.left_out_count
        if self.routing.cap_behavior != "over" or not left_out:
            return f"{self.routing.cap_behavior} the limit of {limit} at once"
        return (
            f"{run + left_out} asked for, {run} run, {left_out} left out: at most {limit} at once"
        )

    @property
    def tokens(self) -> int | None:
        return self.usage.input_tokens + self.usage.output_tokens if self.usage else None

    @property
    def cost_words(self) -> str:
        """US dollars; a dash where no price is known."""
        return dollars(self.usage.cost if self.usage else None)
