"""How a turn ended, for whoever awaited it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kit.core.event import Event
from kit.core.outcome import Outcome, RoutingDecision, Usage
from kit.core.trace import Trace, trace_of

Status = Literal["ok", "failed", "cancelled", "deadline"]


@dataclass(frozen=True)
class Reply:
    """How a turn ended."""

    turn_id: str
    status: Status
    text: str
    """The answer as the user has it."""
    preamble: str
    """What was said before sub-agents were called; empty when none was."""
    outcomes: tuple[Outcome, ...]
    routing: RoutingDecision
    usage: Usage
    events: tuple[Event, ...]
    saved: bool = True
    """Whether the store has the turn; one that it has not is in no history."""

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.events)
