"""What became of the parts of a turn's message, and the words for it.

Whoever says "answered", "asked" or "left out" of a turn reads it here: the chat, the panel, the
trace, the list of traces, Compare, the metrics and the command line.
"""

from collections.abc import Iterable
from typing import Literal

from kit.core.bodies.speech import Acknowledgement
from kit.core.outcome import NOTHING_LEFT, LeftOut, RoutedOutcome, RoutingDecision
from kit.core.value import Value, builder

TurnStatus = Literal["running", "ok", "failed", "cancelled", "deadline", "paused", "interrupted"]
Ending = Literal[
    "answered",
    "partly",
    "nothing",
    "deadline",
    "cancelled",
    "paused",
    "interrupted",
    "running",
]
"""How a turn stands or ended. One that came to its end was answered whole, in part or not at all."""
ENDING_WORDS: dict[Ending, str] = {
    "answered": "Answered",
    "partly": "Partly answered",
    "nothing": "Could not answer",
    "deadline": "Ran out of time",
    "cancelled": "Stopped",
    "paused": "Waiting for you",
    "interrupted": "Interrupted",
    "running": "Working",
}
OwningUp = Acknowledgement | Literal["nothing_owed", "unsaid"]
"""How an answer owned up to what it lacks; `unsaid`: something is owed, and the answer was not seen to say so."""


class TurnParts(Value):
    """The parts of one message, each counted once, as the turn itself knows them."""

    whole: int = 0
    """Answered."""
    partly: int = 0
    """Answered, though data was missing for it."""
    failed: int = 0
    stopped: int = 0
    """Cut off by its user, or waiting for them."""
    over_cap: tuple[str, ...] = ()
    """Agents of the parts that the limit of the turn left out."""
    left_out: LeftOut = NOTHING_LEFT
    """Parts that nobody was asked for."""

    @property
    def answered(self) -> int:
        return self.whole + self.partly

    @property
    def asked(self) -> int:
        """Parts that somebody worked on."""
        return self.whole + self.partly + self.failed + self.stopped

    @property
    def omitted(self) -> int:
        """Parts that nobody worked on: over the limit, or asked of nobody."""
        return len(self.over_cap) + self.left_out.count

    @property
    def total(self) -> int:
        return self.asked + self.omitted

    @property
    def is_complete(self) -> bool:
        return not (self.partly or self.failed or self.stopped or self.omitted)


_turn_parts = builder(TurnParts)
NO_PARTS = TurnParts()


def turn_parts(decision: RoutingDecision | None) -> TurnParts:
    """Counts the parts of a turn in its routing decision; none where nothing was routed."""
    if decision is None:
        return NO_PARTS
    whole = partly = failed = stopped = 0
    for outcome in decision.outcomes:
        if not is_part(outcome):
            continue
        if outcome.result == "success":
            whole += 1
        elif outcome.result == "partial":
            partly += 1
        # Not failed: whoever stopped it, or is asked first, knows why it has no answer.
        elif outcome.is_stopped:
            stopped += 1
        else:
            failed += 1
    return _turn_parts(
        whole=whole,
        partly=partly,
        failed=failed,
        stopped=stopped,
        over_cap=decision.dropped,
        left_out=decision.left_out,
    )


def agents_asked(agents: Iterable[str], decision: RoutingDecision | None = None) -> tuple[str, ...]:
    """Returns whom a turn asked, each once, in order: `agents` are those that were started for it.

    Not all of them worked on a part of the message: a planner does not, nor does a step of a plan
    that still goes on. Where nobody was started, as by a monolith, it is whom the decision names.
    """
    names = tuple(dict.fromkeys(agents))
    if not names and decision is not None:
        return decision.invoked
    return names


def is_part(outcome: RoutedOutcome) -> bool:
    """Whether an outcome stands for a part of the message. A hand-over does not, nor a failure that
    a later call made good."""
    return outcome.result != "handed_on" and not outcome.mended


def final_status(status: TurnStatus, parts: TurnParts) -> TurnStatus:
    """Returns the status of a turn that came to its end: `ok` needs an answer to one part at least.

    A pattern may end in order though nobody answered, and it may break off, in composing say, with
    answers in hand. The status follows what the user got. A deadline and a stop stay what they are.
    """
    if status == "ok" and not parts.answered and parts.total:
        return "failed"
    if status == "failed" and parts.answered:
        return "ok"
    return status


def ending_of(status: TurnStatus, parts: TurnParts) -> Ending:
    """Returns how a turn stands or ended."""
    if status == "ok" or status == "failed":
        if status == "ok" and parts.is_complete:
            return "answered"
        if parts.answered:
            return "partly"
        return "nothing"
    return status


def ending_words(status: TurnStatus, parts: TurnParts) -> str:
    """Says how a turn stands or ended, with the numbers where some parts were answered and others not."""
    ending = ending_of(status, parts)
    if ending == "partly" and parts.answered < parts.total:
        return f"{parts.answered} of {parts.total} answered"
    return ENDING_WORDS[ending]


def owning_up(
    status: TurnStatus, parts: TurnParts, acknowledged: Acknowledgement | None
) -> OwningUp | None:
    """Returns how the answer of a turn owned up to what it lacks; `acknowledged` is the path of the
    turn's last acknowledgement. None while that is not known, and where there is no answer."""
    if acknowledged is not None:
        return acknowledged
    ending = ending_of(status, parts)
    if ending == "answered":
        return "nothing_owed"
    if ending in ("partly", "nothing") and parts.total:
        return "unsaid"
    return None
