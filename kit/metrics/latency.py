"""How long turns took: routing, the first text, the whole turn, as percentiles by pattern and by
whether anybody was asked."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from kit.core.value import Value
from kit.stores.tally import ASKED, NOBODY, Tally

Path = Literal["every turn", "nobody asked", "sub-agents asked"]
PATHS: tuple[Path, ...] = get_args(Path)
TimedPart = Literal["routing", "first_text", "turn"]
"""Deciding whom to ask and writing prior_context; from the message to the first text; the whole turn."""
_BRANCHES: Mapping[Path, tuple[str, ...]] = {
    "every turn": (NOBODY, ASKED),
    "nobody asked": (NOBODY,),
    "sub-agents asked": (ASKED,),
}


class Spread(Value):
    """Percentiles by nearest rank, in the unit of what was measured."""

    count: int
    p50: float
    p95: float
    p99: float


def latencies(tally: Tally, part: TimedPart, path: Path) -> dict[str, Spread]:
    """Returns pattern -> how long a part of its ended turns took, of those that went this way."""
    patterns: set[str] = set()
    for key in tally.counts:
        if key[0] == "path":
            patterns.add(key[1])
    times: dict[str, Spread] = {}
    for pattern in sorted(patterns):
        seconds: list[float] = []
        for branch in _BRANCHES[path]:
            seconds += tally.samples.get((part, pattern, branch), ())
        percentiles = spread(seconds)
        if percentiles is not None:
            times[pattern] = percentiles
    return times


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    return _nearest_rank(sorted(values), share)


def percentile_of_counts(counts: Mapping[float, int], share: float) -> float:
    """The same of values that are counted: value -> how often it came. Raises ValueError where there is none."""
    rank = _rank(sum(counts.values()), share)
    for value in sorted(counts):
        rank -= counts[value]
        if rank <= 0:
            return value
    raise ValueError("nothing was counted")


def spread(values: Iterable[float]) -> Spread | None:
    """Percentiles of values; None when there is none."""
    # Sorted once for three percentiles.
    ascending = sorted(values)
    if not ascending:
        return None
    return Spread(
        count=len(ascending),
        p50=_nearest_rank(ascending, 0.5),
        p95=_nearest_rank(ascending, 0.95),
        p99=_nearest_rank(ascending, 0.99),
    )


def _nearest_rank(ascending: Sequence[float], share: float) -> float:
    return ascending[_rank(len(ascending), share) - 1]


def _rank(count: int, share: float) -> int:
    # 0.95 * 20 is a little more than 19 as a float: without the allowance its rank would be 20.
    return max(1, math.ceil(share * count - 1e-9))
