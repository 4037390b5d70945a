"""How long turns took: routing, the first text, the whole turn, as percentiles by pattern and by
whether anybody was asked."""

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

import numpy as np

from kit.core.value import Value
from kit.stores.tally import ALONE, ASKED, NOBODY, Tally

Path = Literal["every turn", "nobody asked", "sub-agents asked"]
PATHS: tuple[Path, ...] = get_args(Path)
TimedPart = Literal["routing", "first_text", "turn"]
"""Deciding whom to ask and writing prior_context; from the message to the first text; the whole turn."""
_BRANCHES: Mapping[Path, tuple[str, ...]] = {
    "every turn": (NOBODY, ALONE, ASKED),
    "nobody asked": (NOBODY,),
    "sub-agents asked": (ASKED,),
}


NEAREST_RANK = "inverted_cdf"
"""What NumPy calls a percentile that is one of the values: the smallest that so many do not exceed."""


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


def spread(values: Iterable[float]) -> Spread | None:
    """Percentiles of values; None when there is none."""
    every = list(values)
    if not every:
        return None
    p50, p95, p99 = np.quantile(every, (0.5, 0.95, 0.99), method=NEAREST_RANK).tolist()
    return Spread(count=len(every), p50=p50, p95=p95, p99=p99)


def p95(seconds: Iterable[float]) -> float | None:
    """The 95th percentile alone; None where there is no value."""
    percentiles = spread(seconds)
    if percentiles is None:
        return None
    return percentiles.p95
