"""The mean of scores with its interval, by drawing them again."""

from collections.abc import Hashable, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from kit.bench.statistics.clusters import Floats, sum_clusters
from kit.bench.statistics.distributions import student_reach
from kit.core.errors import DataError
from kit.metrics.estimate import LEVEL, Estimate

RESAMPLES = 2000
SEED = 7


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    unit: str = "",
) -> Estimate:
    """The mean of any scores; whole clusters are drawn again with replacement (Efron 1979; Field
    and Welsh 2007).

    Percentiles are those of the expanded interval, which makes up for small samples (Hesterberg
    2015, "What teachers should know about the bootstrap"). Scores that are all alike get a width of
    zero: a bootstrap knows of no others. Raises DataError for no value.
    """
    if not values:
        raise DataError("there is no value to take the mean of: score at least one item first")
    sums, sizes = sum_clusters(values, clusters if clusters is not None else range(len(values)))
    resampled = redraw(np.column_stack([sums, sizes]), seed, resamples)
    low, high = percentiles(resampled[:, 0] / resampled[:, 1], len(sums))
    value, n = float(sums.sum() / sizes.sum()), len(sums)
    return Estimate(value=value, low=low, high=high, n=n, basis=f"mean of {n} items", unit=unit)


def redraw(rows: Floats, seed: int, resamples: int) -> Floats:
    """Sums of rows drawn with replacement, as many as there are, once a resample: an array
    (resamples, columns).

    Equal rows are drawn together, as counts of one multinomial: the same law as drawing each by
    itself, and far quicker.
    """
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    often = np.random.default_rng(seed).multinomial(len(rows), counts / len(rows), size=resamples)
    return often @ distinct


def percentiles(resampled: Floats, items: int) -> tuple[float, float]:
    """The ends of the expanded percentile interval of bootstrap estimates from so many items."""
    tail = (1 - LEVEL) / 2
    if items > 1:
        tail = NormalDist().cdf(-student_reach(items - 1) * sqrt(items / (items - 1)))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
