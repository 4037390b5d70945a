"""The list of stored turns: its filter, and its rows."""

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
"""Words for each failure axis; over the cap is no axis, but can be searched for beside them."""

_STATES: dict[str, State] = {
    "failed": "No full answer",
    "deadline": "Ran out of time",
    "cancelled": "Stopped",
    "interrupted": "Interrupted",
    "running": "Working",
}


class TurnFilter(Value):
    """A filter of turns; a field that is empty lets every turn through."""

    text: str = ""
    states: tuple[State, ...] = ()
    agents: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    session: str = ""
    at_least: float = 0.0
    """Seconds a turn took."""

    def takes(self, turn: TurnRecord) -> bool:
        """Whether a turn passes the filter."""
        return (
            all(word in turn.message.lower() for word in self.text.lower().split())
            and (not self.states or state(turn) in self.states)
            and (not self.agents or bool(set(self.agents) & set(turn.invoked)))
            and (not self.axes or bool(set(self.axes) & axes(turn)))
            and (not self.session or turn.session_id == self.session)
            and (turn.seconds or 0.0) >= self.at_least
        )


def state(turn: TurnRecord) -> State:
    """Returns how a turn ended, in the words of the chat."""
    if turn.status == "ok":
        return "Partly answered" if turn.failed or turn.cap_behavior == "over" else "Answered"
    return _STATES[turn.status]


def axes(turn: TurnRecord) -> set[str]:
    """Returns the failure axes of a turn, and `cap` for one over its limit."""
    agents = turn.measures.agents
    axes_of_turn = {one.axis for one in agents if one.axis is not None}
    axes_of_turn |= {"data"} if any(one.data_faults for one in agents) else set()
    failed = sum(not one.ok for one in agents)
    axes_of_turn |= {"partial"} if len(agents) > 1 and 0 < failed < len(agents) else set()
    axes_of_turn |= {"cap"} if turn.cap_behavior == "over" else set()
    return {str(axis) for axis in axes_of_turn}


def slow(turns: Sequence[TurnRecord]) -> float:
    """Returns the 95th percentile of the turns' seconds by nearest rank; 0 without turns."""
    took = sorted(turn.seconds for turn in turns if turn.seconds is not None)
    return took[max(0, -(-len(took) * 95 // 100) - 1)] if took else 0.0


def table(turns: Iterable[TurnRecord]) -> list[dict[str, Any]]:
    """Returns a row for each turn, for a table; times in seconds, cost in US dollars."""
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
