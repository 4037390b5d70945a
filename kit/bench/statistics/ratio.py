"""How many times as much: the ratio of two means over the same items, with its interval."""

from collections.abc import Sequence

import numpy as np

from kit.bench.statistics.estimate import LEVEL, RESAMPLES, SEED, Estimate, percentiles, redraw
from kit.core.errors import DataError


def ratio(over: Sequence[float], under: Sequence[float], *, seed: int = SEED, level: float = LEVEL) -> Estimate:
    """The mean of `over` divided by that of `under`, item by item the same; whole items are drawn again for the interval.

    Raises DataError where the items do not pair, or `under` is nothing.
    """
    if not over or len(over) != len(under) or not sum(under):
        raise DataError(f"{len(over)} values over {len(under)} make no ratio: measure both on the same items")
    rows = np.column_stack([np.asarray(over, dtype=float), np.asarray(under, dtype=float)])
    drawn = redraw(rows, seed, RESAMPLES)
    low, high = percentiles(drawn[:, 0] / drawn[:, 1], len(over), level)
    return Estimate(value=sum(over) / sum(under), low=low, high=high, level=level)
