"""How many items settle a difference between two ways."""

from math import ceil
from statistics import NormalDist

from kit.metrics.estimate import LEVEL, normal_reach

POWER = 0.8
"""How often the sample found here settles a question whose answer is as it was assumed."""


def items_for_mean(gap: float, deviation: float, level: float = LEVEL) -> int | None:
    """Items until a mean difference of any scores shows, from the standard deviation of the differences by item."""
    if gap == 0:
        return None
    return items_for_reach(gap, deviation, normal_reach(level))


def items_for_reach(gap: float, deviation: float, errors: float) -> int:
    """The same for an interval that reaches so many standard errors to either side."""
    return max(2, ceil(((errors + NormalDist().inv_cdf(POWER)) * deviation / gap) ** 2))
