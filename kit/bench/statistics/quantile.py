"""Percentiles with their intervals, whatever the law behind the values: between which of the ordered values the truth lies."""

from collections.abc import Sequence
from math import inf

from kit.bench.statistics.distributions import binomial_share
from kit.bench.statistics.estimate import LEVEL, Estimate
from kit.core.errors import DataError
from kit.metrics.summary import percentile


def quantile(values: Sequence[float], share: float, level: float = LEVEL) -> Estimate:
    """The value below which `share` of all draws lie, by nearest rank; of independent values.

    The interval is that of order statistics (David and Nagaraja 2003, "Order Statistics"): it holds for every continuous law.
    An end that so few values cannot show is infinite. Raises DataError for no value.
    """
    if not values:
        raise DataError("there is no value to take a percentile of: measure at least one item first")
    ordered, total, tail = sorted(values), len(values), (1 - level) / 2
    low = max((rank for rank in range(1, total + 1) if binomial_share(rank - 1, total, share) <= tail), default=0)
    high = min((rank for rank in range(1, total + 1) if binomial_share(rank - 1, total, share) >= 1 - tail), default=0)
    return Estimate(
        value=percentile(ordered, share),
        low=ordered[low - 1] if low else -inf,
        high=ordered[high - 1] if high else inf,
        level=level,
    )
