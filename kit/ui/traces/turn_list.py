"""The list of stored turns: its filter, and its rows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.stores.recall import repeated_turn
from kit.ui.shared.turn_view import ending
from kit.ui.shared.wording import label

STATES = (
    "Answered",
    "Partly answered",
    "Could not answer",
    "No full answer",
    "Ran out of time",
    "Stopped",
    "Interrupted",
    "Working",
)
AXES = {"invocation": "a sub-agent failed", "data": "data failed", "partial": "some of several failed", "cap": "over the limit"}
"""Words for each failure axis; over the cap is no axis, but can be searched for beside them."""


class TurnFilter(Value):
    """A filter of turns; a field that is empty lets every turn through."""

    text: str = ""
    states: tuple[str, ...] = ()
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


def state(turn: TurnRecord) -> str:
    """Returns how a turn ended, in the words of the chat."""
    left_out = turn.measures.left_out > 0 or turn.cap_behavior == "over"
    partial = bool(turn.failed) or left_out or any(one.partial for one in turn.measures.agents)
    nothing = bool(turn.invoked) and set(turn.invoked) <= set(turn.failed)
    return ending(turn.status, partial=partial, parts=int(nothing))


def axes(turn: TurnRecord) -> set[str]:
    """Returns the failure axes of a turn, and `cap` for one over its limit."""
    agents = turn.measures.agents
    failed = sum(one.partial or not one.ok for one in agents)
    others = {
        "data": any(one.data_faults for one in agents),
        "partial": 0 < failed < len(agents),
        "cap": turn.cap_behavior == "over",
    }
    return {str(one.axis) for one in agents if one.axis is not None} | {axis for axis, holds in others.items() if holds}


def slow(turns: Sequence[TurnRecord]) -> float:
    """Returns the 95th percentile of the turns' seconds by nearest rank; 0 without turns."""
    took = sorted(turn.seconds for turn in turns if turn.seconds is not None)
    return took[max(0, -(-len(took) * 95 // 100) - 1)] if took else 0.0


def table(turns: Iterable[TurnRecord]) -> list[dict[str, Any]]:
    """Returns a row for each turn, for a table; times in seconds, cost in US dollars."""
    return [
        {
            "Question": " ".join(turn.message.split()) + (" (asked again)" if repeated_turn(turn.session_id) else ""),
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
