"""Estimates with 95 % intervals: shares by Wilson, means by Student's t."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from kit.bench.descriptions import wilson_lower

_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09)
"""Student's t at 95 %, two-sided, for 1 to 20 degrees of freedom."""
_T_MORE = 2.08
"""For more than 20: a little wide, never narrow."""


class Interval(NamedTuple):
    """An estimate, and where the true value is to be looked for."""

    y: float
    low: float
    high: float


def share(right: int, total: int) -> Interval:
    """A share by Wilson; of nothing it is 0 and may be anything."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    return Interval(right / total, wilson_lower(right, total), 1.0 - wilson_lower(total - right, total))


def mean(values: Sequence[float]) -> Interval:
    """A mean; of a single value its interval is that value alone."""
    middle, n = statistics.fmean(values), len(values)
    if n < 2:
        return Interval(middle, middle, middle)
    t = _T[n - 2] if n - 2 < len(_T) else _T_MORE
    half = t * statistics.stdev(values) / n**0.5
    return Interval(middle, middle - half, middle + half)
