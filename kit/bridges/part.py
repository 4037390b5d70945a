"""What is asked of a system that is not ours, and what it says on its way to an answer.

A system that does not tell something says None there. It never says 0, which would be a measurement.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kit.core.context import Principal
from kit.core.outcome import Reason, Usage

LONGEST = 1_000_000
"""Characters of an answer; a system that gives more has not answered."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a system, on behalf of one principal."""

    text: str
    principal: Principal
    prior_context: str | None = None
    """What was said before, for a system that keeps no history of its own."""
    seconds: float | None = None
    """How long the answer may take; a bridge hands it on where its framework takes a deadline."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the answer's text, as it is streamed."""

    text: str


@dataclass(frozen=True, slots=True)
class Calling:
    """A call of one of its tools or agents that the system has begun; a Called of the same id ends it.

    What was streamed before it was no part of the answer.
    """

    name: str
    call_id: str
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """A call that the system made of one of its tools or agents, and that has ended."""

    name: str
    kind: str = "tool"
    """`tool` or `agent`."""
    arguments: Mapping[str, Any] | None = None
    seconds: float | None = None
    fault: str | None = None
    """In words, what the call failed of; None where it did not fail, as far as the system says."""
    result: str | None = None
    call_id: str = ""
    """That of its Calling; empty where none was sent."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What the system has spent, or a part of it: several add up. Tool calls are not counted here,
    each is a Called."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Reported:
    """What a whole system says of one answer.

    `calls`: ids of the agents it asked, in order; None where it does not say, so that routing has no
    score. `usage`: tokens, calls and dollars; None where they are not known.
    """

    text: str
    calls: Sequence[str] | None = None
    usage: Usage | None = None


Part = Piece | Calling | Called | Spent | Reported
"""A Reported is the last part; a system that only streams sends none, and its pieces are the answer."""


class BridgeFault(Exception):
    """Raised by a bridge that knows why there is no answer; its text is for the trace alone.

    `status_code`: the HTTP status that the system answered with; None where it did not come to that.
    """

    def __init__(self, reason: Reason, detail: str, status_code: int | None = None):
        self.reason: Reason = reason
        self.status_code = status_code
        super().__init__(detail)


def too_long() -> BridgeFault:
    """The fault of a system that gives more than an answer may have."""
    return BridgeFault("contract_violation", f"an answer of more than {LONGEST:,} characters")


class Bridge(Protocol):
    """A system that can be asked. It raises what the system raises; its caller makes a failure of that."""

    def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Asks once. Closing the generator stops the system's work."""
        ...


Recogniser = Callable[[object, str], Bridge | None]
"""Makes a bridge of an object of its framework, whose source stands beside it; None for any other object."""
