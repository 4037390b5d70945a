"""What a dispatch is given and what it returns: values, never exceptions."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from kit.core.display.agent_name import words_of_id
from kit.core.limits import Count, Data, Dollars
from kit.core.value import Value, builder

Axis = Literal["invocation", "data"]
Reason = Literal[
    "timeout",
    "exception",
    "rate_limited",
    "unknown_agent",
    "not_allowed",
    "budget",
    "bad_arguments",
    "script_failed",
    "refusal",
    "unanswerable",
    "unavailable",
    "principal_mismatch",
    "insufficient",
    "contract_violation",
    "low_confidence",
    "uncertain",
    "cancelled",
    "paused",
]
CapBehavior = Literal["within", "at", "over"]
ErrorClass = Literal[
    "auth", "not_found", "limit", "network", "server", "budget", "kit", "judge", "system"
]
"""What lost a call of a real model, none of which says anything about that model (decisions 35);
`judge`: no verdict on it; `system`: a whole system failed by itself, and has never answered yet."""
OF_MODEL: frozenset[Reason] = frozenset(("not_allowed", "bad_arguments", "script_failed"))
"""Faults of the model that made a call, never of the data (decisions 31)."""
STOPPED: frozenset[Reason] = frozenset(("cancelled", "paused"))
"""Ends of work that has neither failed nor succeeded: it was stopped, or waits for its user."""

PARTLY = "Part of the data was not available, so this may be incomplete."
"""The reservation of an answer whose data failed in part, when its tools worded none."""
WITHOUT = "The data for this was not available, so it is general advice and may be incomplete."
"""The reservation of an answer none of whose lookups came back."""
CUT = "This answer was cut off before its end and may be incomplete."
"""The reservation of an answer whose model was stopped in the middle, by its limit of tokens or by its connection."""
BEFORE_YES = "This was looked up before you said yes, and may have changed since."
"""The reservation of an answer that is older than what its turn did once its user said yes."""


class Usage(Value):
    """Tokens and calls spent; `cost` in US dollars, None where a price is not known."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    model_calls: Count = 0
    tool_calls: Count = 0
    cost: Dollars | None = None
    estimated: bool = False
    """Some tokens were counted at four characters each: the model gave no count, or did not finish."""
    untold_tokens: Count = 0
    """Agents of other systems that did not say how many tokens they took: the counts are without those."""
    untold_costs: Count = 0
    """Agents of other systems that did not say what they cost: `cost` is without them."""


def total(parts: Iterable[Usage]) -> Usage:
    """Sums usages; the empty sum is `Usage()`. A cost is the sum of the costs that are known."""
    counts = dict.fromkeys(_COUNTS, 0)
    cost: float | None = None
    estimated = False
    for part in parts:
        for name in _COUNTS:
            counts[name] += getattr(part, name)
        # A model without a price does not take away what the others are known to cost.
        if part.cost is not None:
            cost = (cost or 0.0) + part.cost
        estimated = estimated or part.estimated
    return Usage(**counts, cost=cost, estimated=estimated)


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "model_calls",
    "tool_calls",
    "untold_tokens",
    "untold_costs",
)


class Timing(Value):
    """Seconds since the turn began."""

    started: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class AgentCall(Value):
    """One request to one agent: what a tool call of the orchestrator's model becomes."""

    call_id: str
    agent: str
    query: str
    prior_context: str | None = None
    intent_count: int | None = None
    """How many intents the model says it saw in the user's message."""
    fields: dict[str, Any] = {}
    """Declared hand-off fields, and nothing else."""

    def answered(self, text: str) -> "Answer":
        """Returns the outcome of this call where it was answered."""
        return _new_answer(call_id=self.call_id, agent=self.agent, text=text)

    def failed(
        self,
        reason: Reason,
        detail: str,
        suggestion: str | None = None,
        *,
        axis: Axis = "invocation",
    ) -> "Failure":
        """Returns the outcome of this call where it was not answered."""
        return Failure(
            call_id=self.call_id,
            agent=self.agent,
            axis=axis,
            reason=reason,
            detail=detail,
            suggestion=suggestion,
        )


class ComponentPayload(Value):
    """A structured piece for the page (an offer, a receipt), kept apart from narration."""

    type: str
    payload: Data

    @property
    def reference(self) -> str:
        """Its type, id and title in one short line, and nothing else of its payload."""
        line = f"{self.type} {self.payload.get('id', '')}: {self.payload.get('title', '')}"
        # It stands in brackets in what a model is told, which its own would close.
        words = line.replace("(", " ").replace(")", " ").split()
        return " ".join(words)[:LONGEST_PART].rstrip(": ")


class Answer(Value):
    """The outcome of a sub-agent that answered."""

    kind: Literal["answer"] = "answer"
    call_id: str
    agent: str
    text: str
    components: tuple[ComponentPayload, ...] = ()
    caveat: str | None = None
    """Set when a source was partial: the answer holds, with this reservation."""
    confidence: float | None = None
    data_faults: tuple[str, ...] = ()
    """Data calls that failed while the sub-agent could still answer (axis 2, decisions 9); where none of its calls
    could be read, those."""
    recovered: bool = False
    """Each of them was made again and answered: they are counted, and nothing is missing."""
    truncated: bool = False
    """Its model was stopped in the middle of it."""
    hands_to: AgentCall | None = None
    """Whom it hands the conversation to, in a swarm; the text is then empty where it had no part of its own."""
    usage: Usage = Usage()
    timing: Timing | None = None

    @property
    def is_handover(self) -> bool:
        """Whether the sub-agent only handed the conversation on, without a text of its own."""
        return self.hands_to is not None and not self.text

    @property
    def reservation(self) -> str | None:
        """What must be said beside this answer, in plain words; None when it holds without reserve."""
        return self.caveat or (PARTLY if self.is_partial else None)

    @property
    def is_partial(self) -> bool:
        """Whether data was still missing when it was given."""
        # What failed first and came at the second try is counted, and nothing of it is missing.
        return bool(self.data_faults) and not self.recovered

    def with_reservation(self, text: str) -> "Answer":
        """Returns the same answer with one more reservation beside those it has."""
        reservation = self.reservation or ""
        if text in reservation:
            return self
        return self.replace(caveat=f"{reservation} {text}".strip())


_new_answer = builder(Answer)


class Failure(Value):
    """The outcome of a sub-agent that did not answer; `detail` goes to the trace alone, never to a
    model or a person."""

    kind: Literal["failure"] = "failure"
    call_id: str
    agent: str
    axis: Axis
    reason: Reason
    detail: str = ""
    suggestion: str | None = None
    """What it would have said, of an agent that was not sure enough; of one that declined, its words for that."""
    usage: Usage = Usage()
    timing: Timing | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether it has not failed: it was stopped with its turn, or waits for its user."""
        return self.reason in STOPPED

    @property
    def why(self) -> str:
        """Why there is no answer, in words that a model and a person may read."""
        return _BECAUSE.get(self.reason, "it is not available right now")


Outcome = Annotated[Answer | Failure, Field(discriminator="kind")]


class FanOut(Value):
    """Everything that became of one round of calls, in emission order."""

    outcomes: tuple[Outcome, ...]
    dropped: tuple[AgentCall, ...] = ()
    """Over the cap: never run."""
    cap: int

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple([outcome for outcome in self.outcomes if isinstance(outcome, Failure)])

    @property
    def clean(self) -> bool:
        """Whether nothing in it must be told to the user: no failure, no reservation, no dropped call."""
        for outcome in self.outcomes:
            if isinstance(outcome, Failure) or outcome.reservation:
                return False
        return not self.dropped


class RoutedOutcome(Value):
    """One line of a routing decision."""

    agent: str
    call_id: str
    result: Literal["success", "partial", "failure", "data_error", "handed_on"]
    """`partial`: an answer that data was missing for."""
    reason: Reason | None = None
    mended: bool = False
    """A failure that a later answer to the same request made good."""

    @property
    def is_stopped(self) -> bool:
        """Whether it has neither failed nor succeeded: it was stopped with its turn, or waits for its user."""
        return self.reason in STOPPED


class MessagePart(Value):
    """One thing that a message asks for, and what became of it: a line of the turn's coverage ledger (decisions 26)."""

    text: str
    """As the user wrote it."""
    asked: tuple[str, ...] = ()
    """The agents that were asked for it; empty where an answer speaks of it unasked, and where it is owed."""
    owed: bool = False
    """No call and no answer covers it, so the reply names it as left out."""


class LeftOut(Value):
    """Parts of a message that no call and no answer covers (decisions 26)."""

    count: int = 0
    parts: tuple[str, ...] = ()
    """Their words in the message, where they are known."""
    for_nobody: tuple[str, ...] = ()
    """Those of `parts` that no agent's card is for: nobody takes them next either."""

    @property
    def unnamed(self) -> int:
        """How many of them are known by number alone."""
        return self.count - len(self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Each in words that a sentence can hold; those known by number alone come last."""
        names: list[str] = []
        for part in self.parts:
            names.append(quoted(part))
        if self.unnamed > 1:
            names.append(f"{self.unnamed} more parts of your message")
        elif self.unnamed:
            names.append("one more part of your message")
        return tuple(names)

    @property
    def names_for_nobody(self) -> tuple[str, ...]:
        """The names of the parts that no agent's card is for."""
        return tuple(quoted(part) for part in self.for_nobody)


LONGEST_PART = 80
"""Characters of a part that a sentence repeats."""
NOTHING_LEFT = LeftOut()


def quoted(part: str) -> str:
    """Words of a message as a sentence can hold them: in quotation marks, and cut where they are long."""
    # Cut between words: half a word can be another one.
    if len(part) > LONGEST_PART:
        part = part[:LONGEST_PART].rsplit(" ", 1)[0] + " …"
    return f"“{part}”"


class RoutingDecision(Value):
    """What was routed where on one turn: what became of each call, and of the parts that got none."""

    pattern: str
    invoked: tuple[str, ...]
    intent_count: int
    """Distinct sub-agent calls of the model's first response, before any guard (decisions 34)."""
    later_calls: int = 0
    """Calls of its later responses: the failsafe's retry, further rounds."""
    reported_intents: int
    """Intents the model said it saw (decisions 4)."""
    cap: int
    cap_behavior: CapBehavior
    dropped: tuple[str, ...] = ()
    """The agent of each request over the cap that never ran."""
    refused: tuple[str, ...] = ()
    """Agents whose call a guard dropped."""
    left_out: LeftOut = NOTHING_LEFT
    parts: tuple[MessagePart, ...] = ()
    """The parts of the message, counted without the model; empty for a message of one clause."""
    outcomes: tuple[RoutedOutcome, ...] = ()
    rounds: int = 0
    has_failsafe: bool = False
    """Whether the first reply of this pattern is one that the failsafe reads (decisions 4)."""


NO_ANSWER = "NO_ANSWER"
"""What a card's prompt may tell its model to reply with when it has nothing on a request, and with nothing else."""
SET_ASIDE = "Not needed: the other results are all there is to say."
"""What a model is told of a call that a guard set aside. Endpoints want every call answered, and
not by nothing (decisions 7)."""
NOT_ASKED = "Not asked:"
"""Begins what a model is told of parts that nobody was asked for."""
FOR_NOBODY = "For nobody here:"
"""Begins what a model is told of parts that no agent is for."""
BESIDE = "Shown beside it, not to be repeated:"
"""Begins what a model is told of the components of an answer."""
REFERENCES = 8
"""Components of one answer that a model is told of one by one."""
NO_TEXT = "(no text)"
"""Stands for an answer or a result without words."""
_BECAUSE: dict[Reason, str] = {
    "timeout": "it took too long to answer",
    "budget": "it ran out of the room it was given",
    "rate_limited": "too much is asked at the moment",
    "refusal": "it declined to answer",
    "unanswerable": "it has nothing on that",
    "low_confidence": "it was not sure enough of its answer",
    "principal_mismatch": "its data could not be confirmed as yours",
    "uncertain": "it broke off while something was being done, and whether that was done is not known",
    "cancelled": "it was stopped",
    "not_allowed": "it may not be used here",
    "unknown_agent": "there is no such assistant",
}


def tell(
    outcome: Outcome,
    *,
    with_components: bool = False,
    reword: Callable[[str], str] = str,
    request: str = "",
    label: str = "",
) -> str:
    """Words an outcome for a model: the answer, or one plain sentence without code, id or error text.

    `with_components` adds a compact reference to each that the person sees beside it. `reword` words a reservation in
    the language of the session, because models repeat it. `request` is what was asked, in the words of the message:
    where an agent has nothing on that, its name may say little of what goes unanswered. `label` is what people
    read in place of its id.
    """
    label = label or words_of_id(outcome.agent)
    if isinstance(outcome, Answer):
        text = outcome.text or NO_TEXT
        components = outcome.components if with_components else ()
        if components:
            # Once each: two components may have the same type, id and title.
            lines = list(dict.fromkeys(item.reference for item in components[:REFERENCES]))
            if len(components) > REFERENCES:
                lines.append(f"{len(components) - REFERENCES} more")
            text += f"\n\n({BESIDE} {'; '.join(lines)})"
        reservation = outcome.reservation
        if reservation:
            # Said by the kit itself: a decision that is played was made without it, and must read what it read then.
            reservation = reservation.replace(BEFORE_YES, "").strip()
        if reservation:
            text += f"\n\n(Note: {reword(reservation)})"
        return text
    sentence = f"No answer from {label}: {outcome.why}"
    if request and outcome.reason == "unanswerable":
        sentence = f"No answer from {label} to {quoted(request)}: {outcome.why}"
    # Models fill a gap that nobody tells them to leave open.
    if outcome.suggestion and outcome.reason == "refusal":
        return (
            f"{sentence}, in these words: {outcome.suggestion} "
            f"Say plainly that this part could not be answered; you may pass on why, and nothing else of it."
        )
    if outcome.suggestion:
        return (
            f"{sentence}. Say plainly that this part could not be answered for certain. "
            f"You may ask the user for what is missing, and state nothing of this as fact: {outcome.suggestion}"
        )
    return (
        f"{sentence}. Say plainly that this part could not be answered, and claim nothing for it."
    )


def tell_dropped(label: str) -> str:
    """Words an over-cap call for a model; `label` is what people read in place of the agent's id."""
    return _tell_not_asked([label])


def tell_left_out(left_out: LeftOut) -> str:
    """Words for a model what was not asked at all; empty where there is nothing."""
    lines: list[str] = []
    askable_names = [name for name in left_out.names if name not in left_out.names_for_nobody]
    if askable_names:
        lines.append(_tell_not_asked(askable_names))
    if left_out.for_nobody:
        names = ", ".join(left_out.names_for_nobody)
        lines.append(f"{FOR_NOBODY} {names}. Say plainly that you cannot help with this part.")
    return "\n".join(lines)


def _tell_not_asked(names: Iterable[str]) -> str:
    request = "Too many parts in one message. Say plainly that this part was left out, and offer to take it next."
    return f"{NOT_ASKED} {', '.join(names)}. {request}"
