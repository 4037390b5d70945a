"""How many items settle a difference between two ways."""

from math import ceil
from statistics import NormalDist

from kit.bench.statistics.difference import Difference
from kit.metrics.estimate import LEVEL, normal_reach

POWER = 0.8
"""How often the sample found here settles a question whose answer is as it was seen."""


def items_for_mean(gap: float, deviation: float, level: float = LEVEL) -> int | None:
    """Items until a mean difference of any scores shows, from the standard deviation of the differences by item."""
    if gap == 0:
        return None
    reach = normal_reach(level) + NormalDist().inv_cdf(POWER)
    return max(2, ceil((reach * deviation / gap) ** 2))


def more_items(difference: Difference, deviation: float, level: float = LEVEL) -> int | None:
    """Items still needed, at least one, until a difference like this one shows; None where none is
    seen.

    `deviation`: the standard deviation of the differences by item. `level`: the confidence that
    many comparisons ask of each.
    """
    count = items_for_mean(difference.value, deviation, level)
    return None if count is None else max(1, count - difference.n)
