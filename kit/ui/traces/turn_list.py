"""Stored turns on a shelf: which of them a person asked for, and how each reads as a row."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.ui.shared.wording import label

State = Literal["Answered", "Partly answered", "No full answer", "Stopped", "Ran out of time", "Interrupted", "Working"]
STATES: tuple[State, ...] = (
    "Answered",
    "Partly answered",
    "No full answer",
    "Ran out of time",
    "Stopped",
    "Interrupted",
    "Working",
)
AXES = {"invocation": "a sub-agent failed", "data": "data failed", "partial": "some of several failed", "cap": "over the limit"}
"""Failure axis -> its words. The third axis is a partial fan-out; over the cap is none, but looked for beside them."""

_STATES: dict[str, State] = {
    "failed": "No full answer",
    "deadline": "Ran out of time",
    "cancelled": "Stopped",
    "interrupted": "Interrupted",
    "running": "Working",
}


class TurnFilter(Value):
    """What a list of turns is narrowed to; what is left empty narrows nothing."""

    text: str = ""
    states: tuple[State, ...] = ()
    agents: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    session: str = ""
    at_least: float = 0.0
    """Seconds a turn took."""

    def takes(self, turn: TurnRecord) -> bool:
        """Whether a turn is among those asked for."""
        return (
            all(word in turn.message.lower() for word in self.text.lower().split())
            and (not self.states or state(turn) in self.states)
            and (not self.agents or bool(set(self.agents) & set(turn.invoked)))
            and (not self.axes or bool(set(self.axes) & axes(turn)))
            and (not self.session or turn.session_id == self.session)
            and (turn.seconds or 0.0) >= self.at_least
        )


def state(turn: TurnRecord) -> State:
    """How a turn ended, in the words of the chat."""
    if turn.status == "ok":
        return "Partly answered" if turn.failed or turn.cap_behavior == "over" else "Answered"
    return _STATES[turn.status]


def axes(turn: TurnRecord) -> set[str]:
    """The failure axes a turn touched (PC2-S5.8)."""
    agents = turn.measures.agents
    axes_of_turn = {one.axis for one in agents if one.axis is not None}
    axes_of_turn |= {"data"} if any(one.data_faults for one in agents) else set()
    failed = sum(not one.ok for one in agents)
    axes_of_turn |= {"partial"} if len(agents) > 1 and 0 < failed < len(agents) else set()
    axes_of_turn |= {"cap"} if turn.cap_behavior == "over" else set()
    return {str(axis) for axis in axes_of_turn}


def slow(turns: Sequence[TurnRecord]) -> float:
    """Seconds that one turn in twenty takes or exceeds; 0 where there is none (nearest rank)."""
    took = sorted(turn.seconds for turn in turns if turn.seconds is not None)
    return took[max(0, -(-len(took) * 95 // 100) - 1)] if took else 0.0


def table(turns: Iterable[TurnRecord]) -> list[dict[str, Any]]:
    """A row a turn, for a table; times in seconds, cost in US dollars."""
    return [
        {
            "Question": " ".join(turn.message.split()),
            "How it ended": state(turn),
            "Sub-agents": [label(agent) + (" ✗" if agent in turn.failed else "") for agent in turn.invoked],
            "Seconds": turn.seconds,
            "First words": turn.ttft,
            "Tokens": turn.input_tokens + turn.output_tokens,
            "Cost": turn.cost,
            "When": datetime.fromtimestamp(turn.started_at),
        }
        for turn in turns
    ]
