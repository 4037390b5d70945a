"""Estimates as a figure draws them: shares by Wilson, means by Student's t, both at 95 %."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from kit.bench.distributions import t_quantile
from kit.bench.statistics import LEVEL, wilson


class Interval(NamedTuple):
    """An estimate, and where the true value is to be looked for."""

    y: float
    low: float
    high: float


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


def said(found: Interval, form: str = ".2f") -> str:
    """As a table has it: the estimate, then the ends of its interval, each in this format."""
    return f"{found.y:{form}} [{found.low:{form}}, {found.high:{form}}]"
