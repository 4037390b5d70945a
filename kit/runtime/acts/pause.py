"""A turn that pauses for its user: what it asked, what was answered, and which acts are done, read
back from its events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kit.core.bodies.call import ToolEnded
from kit.core.bodies.turn import Act, ActStarted, ApprovalAsked, Resumed
from kit.core.event import Event

UNKNOWN = ("cancelled", "timeout")
"""Failures of a tool call that may have done its work all the same."""


class Paused(BaseException):
    """Ends the work that waits for the user. No `except Exception` takes it for a fault, and
    siblings go on to their ends."""


@dataclass
class Acts:
    """What a turn knows of its acts, by the key of a call."""

    answers: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """The user's yes or no."""
    results: dict[str, Act] = field(default_factory=dict[str, Act])
    questions: dict[str, ApprovalAsked] = field(default_factory=dict[str, ApprovalAsked])
    """What waits for an answer."""


@dataclass(frozen=True)
class Resumption:
    """What a turn that goes on has of its first part."""

    started_at: float
    """Seconds since the epoch."""
    acts: Acts


def acts_of(events: Iterable[Event]) -> Acts:
    """Reads the acts of a stored turn; one that began and has no end is not known."""
    answers = dict[str, bool]()
    results = dict[str, Act]()
    questions = dict[str, ApprovalAsked]()
    spans = dict[str, str]()
    for event in events:
        match event.body:
            case Resumed(answers=earlier_answers, acts=acts):
                answers |= earlier_answers
                results |= acts
            case ApprovalAsked(key=key):
                questions[key] = event.body
            case ActStarted(key=key):
                # Until its end is read nobody knows how it came out.
                results[key] = Act()
                spans[event.span_id] = key
            case ToolEnded(failure=failure) if event.span_id in spans and not (
                failure and failure.kind in UNKNOWN
            ):
                end = event.body
                results[spans[event.span_id]] = Act(
                    text=end.result, error=end.error, failure=failure
                )
            case _:
                pass
    return Acts(
        answers, results, {key: body for key, body in questions.items() if key not in answers}
    )
