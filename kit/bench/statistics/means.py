"""The mean of scores, costs or seconds with its interval: skewed ones too, and whole clusters."""

from collections.abc import Hashable, Iterable, Sequence
from math import cbrt, inf, sqrt
from typing import NamedTuple

import numpy as np

from kit.bench.statistics.clusters import Floats, clusters_worth, sum_clusters
from kit.bench.statistics.distributions import student_reach
from kit.core.display.count import many
from kit.core.errors import DataError
from kit.metrics.estimate import LEVEL, Estimate, wilson_bounds

SEED = 7
FEWEST = 4
"""Items, or clusters, from which on a mean has an interval at all."""
_FEW = ((8, 0.99), (50, 0.965))
"""Below so many items the interval is made at this level instead, so that one of skewed costs
holds what 95 % promises. Found by simulation: `python -m tests.coverage`."""


class Range(NamedTuple):
    """Between which figures every value lies."""

    low: float
    high: float


SCORES = Range(0.0, 1.0)
DIFFERENCES_OF_SCORES = Range(-1.0, 1.0)
_ROUNDING = 1e-9
"""How far a sum of fractions may end up outside of its range."""
ANYTHING = Range(-inf, inf)


def mean_of(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    within: Range = ANYTHING,
) -> Estimate:
    """The mean of any scores; `clusters` names what each value belongs to.

    Student's interval with its skewness removed by Hall's transformation (Hall 1992, "On the
    removal of skewness by transformation"), on the cluster-robust variance CR2 (Bell and McCaffrey
    2002). Values that are all alike prove no certainty: `within` says how far another could lie, and
    where nothing does they have no interval. Nor have fewer than four items: its ends are infinite.
    Raises DataError for no value, and for one outside of `within`.
    """
    if not values:
        raise DataError("there is no value to take the mean of: score at least one item first")
    check_range(values, within)
    if clusters is None:
        clusters = range(len(values))
    sums, sizes = sum_clusters(values, clusters)
    return mean_of_sums(sums, sizes, within=within)


def check_range(values: Iterable[float], within: Range) -> None:
    """Raises DataError for a value outside of the range that its interval would be cut to."""
    for value in values:
        if not within.low - _ROUNDING <= value <= within.high + _ROUNDING:
            raise DataError(
                f"{value:g} lies outside of {within.low:g} to {within.high:g}: say by `within=` "
                f"between which figures every value lies, ANYTHING where there are no such figures"
            )


def mean_of_sums(sums: Floats, sizes: Floats, *, within: Range = ANYTHING) -> Estimate:
    """The same from the sum and the size of every cluster."""
    value = float(sums.sum() / sizes.sum())
    worth = clusters_worth(sizes)
    low, high = within
    may_differ: float | None = None
    if worth >= FEWEST - 1e-9:
        residuals = sums - value * sizes
        alike = 1e-12 * max(1.0, abs(value)) * float(sizes.max())
        if float(np.abs(residuals).max()) > alike:
            low, high = _bounds(residuals, sizes, value, worth, within)
        elif within == ANYTHING:
            # The greatest share of which none would be seen in one of twenty samples (Clopper and Pearson 1934).
            may_differ = 1 - (1 - LEVEL) ** (1 / worth)
        else:
            low, high = _of_equal_values(value, worth, within)
    n = len(sums)
    basis = f"mean of {many(n, 'item')}"
    return Estimate(value=value, low=low, high=high, n=n, basis=basis, may_differ=may_differ)


def _bounds(
    residuals: Floats, sizes: Floats, value: float, worth: float, within: Range
) -> tuple[float, float]:
    """The ends of the interval, no further than values can lie."""
    total = float(sizes.sum())
    level = next((level for items, level in _FEW if worth < items), LEVEL)
    reach = student_reach(worth - 1, level)
    error = sqrt(float((residuals**2 / (1 - sizes / total)).sum())) / total
    skewness = float((residuals**3).mean() / (residuals**2).mean() ** 1.5)
    skewness *= sqrt(worth * (worth - 1)) / (worth - 2)
    low = value - error * sqrt(worth) * _untransformed(reach, skewness, worth)
    high = value - error * sqrt(worth) * _untransformed(-reach, skewness, worth)
    return max(within.low, low), min(within.high, high)


def _of_equal_values(value: float, items: float, within: Range) -> tuple[float, float]:
    """As many values that are all alike cannot rule out that this share of all would be others."""
    _, unseen = wilson_bounds(0.0, items)
    return value - unseen * (value - within.low), value + unseen * (within.high - value)


def _untransformed(reach: float, skewness: float, items: float) -> float:
    """Hall's third transformation, inverted: the studentised mean less its skewness."""
    plain = reach / sqrt(items)
    if abs(skewness) < 1e-9:
        return plain
    return 3 / skewness * (cbrt(1 + skewness * (plain - skewness / (6 * items))) - 1)
