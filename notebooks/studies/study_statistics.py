"""Means, ratios and percentiles of what studies measure, each with its interval."""

from collections.abc import Sequence
from math import inf
from statistics import NormalDist, fmean, stdev

import numpy as np

from kit.bench.statistics.clusters import Floats
from kit.bench.statistics.distributions import binomial_share, student_reach
from kit.bench.statistics.means import SEED
from kit.core.errors import DataError
from kit.metrics.estimate import LEVEL, Estimate
from kit.metrics.latency import NEAREST_RANK

RESAMPLES = 2000


def mean(values: Sequence[float]) -> Estimate:
    """A mean by Student's t; of a single value its interval is that value alone."""
    middle, n = fmean(values), len(values)
    half = student_reach(n - 1) * stdev(values) / n**0.5 if n > 1 else 0.0
    return Estimate(
        value=middle, low=middle - half, high=middle + half, n=n, basis=f"mean of {n} items"
    )


def ratio(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The mean of `over` divided by that of `under`, item by item the same; whole items are drawn
    again for the interval.

    Raises DataError where the items do not pair, or `under` is nothing.
    """
    if not over or len(over) != len(under) or not sum(under):
        raise DataError(
            f"{len(over)} values over {len(under)} make no ratio: measure both on the same items"
        )
    resampled = _redraw(np.column_stack([over, under]).astype(float))
    low, high = _percentiles(resampled[:, 0] / resampled[:, 1], len(over))
    return Estimate(value=sum(over) / sum(under), low=low, high=high, n=len(over))


def quantile(values: Sequence[float], share: float, *, bounded: bool = False) -> Estimate:
    """The value below which `share` of all draws lie, by nearest rank; of independent values.

    The interval is that of order statistics (David and Nagaraja 2003, "Order Statistics"): it holds
    for every continuous law. An end that so few values cannot show is infinite; `bounded`, it is
    the least or the greatest value, and the interval covers less. Raises DataError for no value.
    """
    if not values:
        raise DataError(
            "there is no value to take a percentile of: measure at least one item first"
        )
    ascending, total, tail = sorted(values), len(values), (1 - LEVEL) / 2
    low = max(
        (rank for rank in range(1, total + 1) if binomial_share(rank - 1, total, share) <= tail),
        default=0,
    )
    high = min(
        (
            rank
            for rank in range(1, total + 1)
            if binomial_share(rank - 1, total, share) >= 1 - tail
        ),
        default=0,
    )
    least, greatest = (ascending[0], ascending[-1]) if bounded else (-inf, inf)
    return Estimate(
        value=float(np.quantile(ascending, share, method=NEAREST_RANK)),
        low=ascending[low - 1] if low else least,
        high=ascending[high - 1] if high else greatest,
        n=total,
    )


def _redraw(rows: Floats) -> Floats:
    """Sums of rows drawn with replacement, as many as there are, once a resample.

    Equal rows are drawn together, as counts of one multinomial: the same law as drawing each by
    itself, and far quicker.
    """
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    generator = np.random.default_rng(SEED)
    return generator.multinomial(len(rows), counts / len(rows), size=RESAMPLES) @ distinct


def _percentiles(resampled: Floats, items: int) -> tuple[float, float]:
    """The ends of the expanded percentile interval (Hesterberg 2015) from so many items."""
    tail = (1 - LEVEL) / 2
    if items > 1:
        tail = NormalDist().cdf(-student_reach(items - 1) * (items / (items - 1)) ** 0.5)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
