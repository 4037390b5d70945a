"""Estimates as a figure draws them: shares by Wilson, means by Student's t, quantiles by order statistics, all at 95 %."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kit.bench.statistics.distributions import normal_quantile, t_quantile
from kit.bench.statistics.estimate import LEVEL, wilson
from kit.bench.statistics.quantile import quantile as by_order


class Interval(NamedTuple):
    """An estimate, and where the true value is to be looked for."""

    y: float
    low: float
    high: float

    def told(self, form: str = ".2f") -> str:
        """The estimate with its ends, in one format: `1.20 [1.00, 1.40]`."""
        return f"{self.y:{form}} [{self.low:{form}}, {self.high:{form}}]"


def share(right: int, total: int) -> Interval:
    """A share by Wilson; of nothing it is 0 and may be anything."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    found = wilson(right, total)
    return Interval(found.value, found.low, found.high)


def mean(values: Sequence[float]) -> Interval:
    """A mean; of a single value its interval is that value alone."""
    middle, n = statistics.fmean(values), len(values)
    if n < 2:
        return Interval(middle, middle, middle)
    half = t_quantile((1 + LEVEL) / 2, n - 1) * statistics.stdev(values) / n**0.5
    return Interval(middle, middle - half, middle + half)


def stratified(values: Mapping[int, Sequence[float]], shares: Mapping[int, float]) -> Interval:
    """A mean over strata that are not sampled as they occur; `shares` sum to 1. Normal law (Cochran 1977, section 5.3)."""
    middle = sum(share * statistics.fmean(values[name]) for name, share in shares.items())
    spread = sum(share**2 * statistics.variance(values[name]) / len(values[name]) for name, share in shares.items())
    half = normal_quantile((1 + LEVEL) / 2) * spread**0.5
    return Interval(middle, middle - half, middle + half)


def quantile(values: Sequence[float], share: float) -> Interval:
    """The value below which `share` of a law lies, whatever the law (kit.bench.statistics.quantile).

    Where the sample is too small for the level, an end is the least or the greatest value and the interval covers less.
    """
    found = by_order(values, share)
    return Interval(found.value, max(found.low, min(values)), min(found.high, max(values)))


def said(found: Interval, form: str = ".2f") -> str:
    """As a table has it: the estimate, then the ends of its interval, each in this format."""
    return f"{found.y:{form}} [{found.low:{form}}, {found.high:{form}}]"
