"""How a turn ended, for whoever awaited it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kit.core.event import Event, ModelEnded, ModelStarted
from kit.core.outcome import Outcome, RoutingDecision, Usage
from kit.core.trace import Trace, trace_of
from kit.models.message import CUT_OFF

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

    @property
    def truncated(self) -> bool:
        """Whether a part of the answer was cut off before its end; the text says so."""
        return any(outcome.kind == "answer" and outcome.truncated for outcome in self.outcomes) or self._ends_cut_off

    @property
    def _ends_cut_off(self) -> bool:
        """Whether the orchestrator's own last words were cut off, and are in the answer."""
        spans = {e.span_id for e in self.events if isinstance(e.body, ModelStarted) and e.body.purpose in ("decide", "compose")}
        ends = [e.body for e in self.events if isinstance(e.body, ModelEnded) and e.span_id in spans]
        text = ends[-1].text.strip() if ends and ends[-1].finish_reason in CUT_OFF else ""
        return bool(text) and text in self.text

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.events)
