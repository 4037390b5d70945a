"""A turn as a person sees it: its text, a step for each sub-agent, and how it ended, in plain words."""

from typing import Literal, TypeVar

from pydantic import BaseModel

from kit.core.bodies.speech import Acknowledged, Text
from kit.core.bodies.turn import PlanTaken
from kit.core.context import Principal
from kit.core.display.count import many
from kit.core.display.made_to_fail import WantedFault, wanted_faults
from kit.core.display.turn_parts import (
    OwningUp,
    TurnParts,
    TurnStatus,
    agents_asked,
    ending_words,
    is_part,
    owning_up,
    turn_parts,
)
from kit.core.event import Event
from kit.core.outcome import Reason, RoutedOutcome, RoutingDecision, Usage
from kit.core.trace import Trace, trace_of
from kit.core.transcript import Transcript
from kit.core.value import Value
from kit.ui.shared.tag import Tone
from kit.ui.shared.wording import dollars, label

StepState = Literal["running", "ok", "partial", "failed", "stopped", "waiting"]
Pace = Literal["starting", "active", "quiet", "stalled"]
TONES: dict[StepState, Tone] = {
    "running": "busy",
    "ok": "good",
    "partial": "warn",
    "failed": "bad",
    "stopped": "warn",
    "waiting": "warn",
}
VERDICTS: dict[StepState, str] = {
    "running": "working",
    "ok": "answered",
    "partial": "answered in part",
    "failed": "failed",
    "stopped": "stopped",
    "waiting": "waiting",
}
_Body = TypeVar("_Body", bound=BaseModel)
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
HANDED_ON = "handed the conversation on"


def step_end(reason: Reason | None, *, partial: bool = False) -> tuple[StepState, str]:
    """Returns how a step ended, and a note on why it failed or what its answer lacks."""
    if reason == "cancelled":
        return "stopped", ""
    if reason == "paused":
        return "waiting", REASONS[reason]
    if reason is not None:
        return "failed", REASONS[reason]
    if partial:
        return "partial", PARTLY
    return "ok", ""


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
    call_id: str = ""
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
    open_acts: frozenset[str] = frozenset()
    """Spans of what it has begun to do in the world, and of whose end nothing is known."""
    has_acted: bool = False
    """Whether it has done something in the world."""

    @property
    def label(self) -> str:
        return label(self.agent)

    @property
    def verdict(self) -> str:
        """A word or a clause on how the step went."""
        return self.note or VERDICTS[self.state]

    @property
    def lines(self) -> tuple[str, ...]:
        """Progress in the assistant's words."""
        texts: list[str] = []
        for entry in self.entries:
            if entry.is_status:
                texts.append(entry.text)
        return tuple(texts)

    def pace(self, now: float, quiet: float, stalled: float) -> Pace:
        """Returns how a running step goes; `quiet` and `stalled` in seconds since it last did something."""
        pace: Pace = "starting"
        heard_at = self.start
        for entry in self.entries:
            # The runtime may say a status line for a sub-agent that hangs: only an act counts.
            if not entry.is_status:
                pace = "active"
                heard_at = entry.at
        silence = now - heard_at
        if silence >= stalled:
            return "stalled"
        if silence >= quiet:
            return "quiet"
        return pace

    def seconds(self, now: float) -> float:
        """Returns how long the step has run, or ran; `now` in seconds since the turn began."""
        if self.end is not None:
            now = self.end
        return max(0.0, now - self.start)

    @classmethod
    def of(cls, outcome: RoutedOutcome) -> "Step":
        """Returns a step that only its outcome is known of: a part that one agent did for another."""
        state, note = step_end(outcome.reason, partial=outcome.result == "partial")
        return cls(
            span_id=outcome.call_id,
            call_id=outcome.call_id,
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
    """Another process runs it, and is followed."""
    started_at: float = 0.0
    """Wall clock, seconds since the epoch."""
    seconds: float | None = None
    """How long it took; None while it runs, or when nobody saw it end."""
    steps: tuple[Step, ...] = ()
    left_out: tuple[str, ...] = ()
    """Agents over the cap, as far as a turn that still runs has come."""
    routing: RoutingDecision | None = None
    usage: Usage | None = None
    principal: Principal | None = None
    """On whose behalf it ran."""
    pattern: str = ""
    model: str = ""
    """Key of the orchestrator's model."""
    saved: bool = True
    final: str | None = None
    """The answer as it was stored, for a turn whose events are not at hand."""
    events: tuple[Event, ...] = ()
    transcript: Transcript = Transcript()
    """What the user has read of the events so far."""

    def bodies(self, *kinds: type[_Body]) -> list[_Body]:
        """Returns the bodies of these kinds among the events, in order."""
        rows: list[_Body] = []
        for event in self.events:
            if isinstance(event.body, kinds):
                rows.append(event.body)
        return rows

    @property
    def wanted_faults(self) -> tuple[WantedFault, ...]:
        """What it was made to run into on purpose, from its start or in the middle."""
        return wanted_faults(self.events)

    @property
    def faults(self) -> tuple[str, ...]:
        """The same, as `agent=kind`."""
        return tuple(fault.fault for fault in self.wanted_faults)

    @property
    def lead(self) -> str:
        """What was said before sub-agents were called; the whole answer when none was."""
        return self.transcript.lead

    @property
    def answer(self) -> str:
        """The composed answer as far as it stands; empty when the lead was all there is."""
        if self.events:
            return self.transcript.answer
        return self.final or ""

    @property
    def ttft(self) -> float | None:
        """Seconds to the first text."""
        for event in self.events:
            if isinstance(event.body, Text):
                return event.at
        return None

    @property
    def trace(self) -> Trace:
        return trace_of(self.events)

    @property
    def is_plan(self) -> bool:
        """Whether it works on a plan, which has limits of its own and whose parts are steps."""
        return bool(self.bodies(PlanTaken))

    @property
    def running(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self.status == "running"

    @property
    def parts(self) -> TurnParts:
        """What became of the parts of the message, in numbers; of a turn that runs nothing is known yet."""
        return turn_parts(self.routing)

    @property
    def taken_on(self) -> tuple[Step, ...]:
        """The parts that somebody worked on, a step each. While the turn runs those are the latest try
        of each request; then they are what was routed."""
        if self.routing is None:
            return self._latest_tries
        steps = {step.call_id: step for step in self.steps}
        parts: list[Step] = []
        for outcome in self.routing.outcomes:
            if not is_part(outcome):
                continue
            part = Step.of(outcome)
            step = steps.get(outcome.call_id)
            # A plan runs a step again under the same id: what it came to in the end is its outcome.
            if step is not None and step.state == part.state:
                part = step
            parts.append(part)
        return tuple(parts)

    @property
    def agent_steps(self) -> tuple[Step, ...]:
        """Whoever was asked, a step each: those whose work covers no part of the message, such as a
        planner's, and those that worked on the parts."""
        parts = self.taken_on
        agents_with_part = {part.agent for part in parts}
        agents = [step.agent for step in self.steps]
        steps: list[Step] = []
        for agent in agents_asked(agents, self.routing):
            if agent not in agents_with_part:
                steps += [step for step in self._latest_tries if step.agent == agent]
        return (*steps, *parts)

    @property
    def _latest_tries(self) -> tuple[Step, ...]:
        latest = {(step.agent, step.query.casefold().strip()): step for step in self.steps}
        return tuple(latest.values())

    @property
    def skipped(self) -> tuple[str, ...]:
        """Parts that were not taken on, in words: over the limit, or asked of nobody."""
        return (*map(label, self.over_cap), *self.parts.left_out.names)

    @property
    def headline(self) -> str:
        if self.elsewhere and self.running:
            return "Runs on another server"
        return ending_words(self.status, self.parts)

    @property
    def owned_up(self) -> Acknowledged | None:
        """How the answer came to own up to what it lacks; None where no event says so."""
        return next(reversed(self.bodies(Acknowledged)), None)

    @property
    def owning_up(self) -> OwningUp | None:
        """The same, and whether anything was owed at all; None while that is not known, and for a
        turn that ended without an answer."""
        owned_up = self.owned_up
        return owning_up(self.status, self.parts, owned_up.path if owned_up else None)

    @property
    def regret(self) -> str:
        """The sentence in place of an answer, when a turn ended without one."""
        if self.answer or self.lead:
            return ""
        return _REGRET.get(self.status, "")

    @property
    def over_cap(self) -> tuple[str, ...]:
        if self.routing is None:
            return self.left_out
        return self.parts.over_cap

    @property
    def asked_words(self) -> str:
        """How many sub-agents were asked; of a plan, which asks two of them again and again, how often
        they were. Empty where nobody was."""
        if self.is_plan and self.steps:
            return many(len(self.steps), "sub-agent run")
        if self.routing is None or not self.routing.invoked:
            return ""
        return many(len(self.routing.invoked), "sub-agent")

    @property
    def call_words(self) -> str:
        """What the model made of the message: the parts it counted and the calls it made, first and later."""
        routing = self.routing
        if routing is None or self.is_plan:
            return ""
        counted = many(routing.reported_intents, "part")
        words = f"counted {counted}, made {many(routing.intent_count, 'call')}"
        if routing.rounds > 1:
            words += f" in {routing.rounds} rounds"
        if routing.later_calls:
            words += f", {routing.later_calls} more later"
        return words

    @property
    def cap_words(self) -> str:
        """Whether the turn kept within its limit on sub-agents; empty when nothing was routed, or a
        plan has other limits."""
        routing = self.routing
        if routing is None or self.is_plan or not (routing.intent_count or routing.rounds):
            return ""
        words = f"{routing.cap_behavior} the limit of {routing.cap} at once"
        if routing.cap_behavior == "over" and self.parts.omitted:
            words += f", {self.parts.omitted} left out"
        return words

    @property
    def tokens(self) -> int | None:
        if self.usage:
            return self.usage.input_tokens + self.usage.output_tokens
        return None

    @property
    def cost_words(self) -> str:
        """US dollars; a dash where no price is known."""
        return dollars(self.usage.cost if self.usage else None)
