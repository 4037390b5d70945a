"""How many items settle a difference between two ways."""

from math import ceil
from statistics import NormalDist

POWER = 0.8
"""How often the sample found here settles a question whose answer is as it was assumed."""


def items_for_reach(gap: float, deviation: float, errors: float) -> int:
    """Items until a mean difference of any scores shows, from the standard deviation of the
    differences by item, where its interval reaches so many standard errors to either side."""
    return max(2, ceil(((errors + NormalDist().inv_cdf(POWER)) * deviation / gap) ** 2))
