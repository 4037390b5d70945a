"""Turns over time: how they ended and what they took, in equal stretches of the window."""

from collections.abc import Iterable, Sequence

from kit.core.display.turn_parts import ending_of
from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.metrics.latency import spread

STRETCHES = 24
SHORTEST = 60.0
"""Seconds of a stretch, at least: a store of one minute is no line."""


class TurnPoint(Value):
    """The turns that began in one stretch."""

    at: float
    """Where the stretch begins, in seconds since the epoch."""
    whole: int = 0
    partly: int = 0
    unanswered: int = 0
    p50: float | None = None
    """Seconds of a whole turn; None where none began."""
    p95: float | None = None


def points_of(turns: Iterable[TurnRecord], now: float) -> list[TurnPoint]:
    """Sorts turns that have ended into stretches from the first one until `now`; none for no turn."""
    ended_turns = [turn for turn in turns if turn.seconds is not None and turn.status != "paused"]
    if not ended_turns:
        return []
    first = min(turn.started_at for turn in ended_turns)
    length = max(SHORTEST, (now - first) / STRETCHES)
    stretches: dict[int, list[TurnRecord]] = {}
    for turn in ended_turns:
        stretches.setdefault(int((turn.started_at - first) / length), []).append(turn)
    points: list[TurnPoint] = []
    for number in range(max(stretches) + 1):
        points.append(_point(first + number * length, stretches.get(number, ())))
    return points


def _point(at: float, turns: Sequence[TurnRecord]) -> TurnPoint:
    whole = 0
    partly = 0
    seconds: list[float] = []
    for turn in turns:
        ending = ending_of(turn.status, turn.measures.parts)
        whole += ending == "answered"
        partly += ending == "partly"
        seconds.append(turn.seconds or 0.0)
    times = spread(seconds)
    return TurnPoint(
        at=at,
        whole=whole,
        partly=partly,
        unanswered=len(turns) - whole - partly,
        p50=times.p50 if times else None,
        p95=times.p95 if times else None,
    )
