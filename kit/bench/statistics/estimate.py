"""What counts and scores vouch for: shares, means and pass^k with their intervals, each of which prints as one plain sentence.

Every interval is two-sided. Nothing here reads a clock or a global random state: a seed gives the same bytes on every machine.
"""

from collections.abc import Hashable, Sequence
from math import comb, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.bench.statistics.distributions import normal_quantile, normal_share, t_quantile
from kit.core.errors import DataError
from kit.core.value import Value

LEVEL = 0.95
"""Confidence of every interval, unless another is asked for."""
RESAMPLES = 2000
SEED = 7
Floats = NDArray[np.float64]


class Estimate(Value):
    """A figure, and between which ends the truth lies at `level` confidence."""

    value: float
    low: float
    high: float
    level: float = LEVEL

    def excludes(self, figure: float) -> bool:
        """True when this interval rules a figure out."""
        return not self.low <= figure <= self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Proportion(Estimate):
    """So many right of so many."""

    right: int
    total: int
    clusters: int | None = None
    """Items or dialogues behind them, where one stands for several of the `total`."""
    worth: float
    """Independent outcomes that would vouch for as much: `total`, or fewer in clusters."""

    def __str__(self) -> str:
        within = f" in {self.clusters} clusters" if self.clusters is not None else ""
        return f"{self.right} of {self.total}{within} = {super().__str__()}"


class Mean(Estimate):
    """The mean of scores that are no plain yes or no."""

    items: int
    unit: str = ""

    def __str__(self) -> str:
        return f"mean of {self.items} items = {super().__str__()}{self.unit and ' ' + self.unit}"


class PassK(Estimate):
    """How likely an item is to be right k times out of k."""

    k: int
    items: int

    def __str__(self) -> str:
        return f"pass^{self.k} over {self.items} items = {super().__str__()}"


def wilson(right: int, total: int, level: float = LEVEL) -> Proportion:
    """A share of independent items (Wilson 1927, "Probable inference, the law of succession, and statistical inference").

    Raises DataError where there is nothing to estimate from.
    """
    if total < 1 or not 0 <= right <= total:
        raise DataError(f"{right} right of {total} is no share: score at least one item first")
    low, high = _score(right / total, total, level)
    return Proportion(value=right / total, low=low, high=high, level=level, right=right, total=total, worth=total)


def clustered(outcomes: Sequence[bool], clusters: Sequence[Hashable], level: float = LEVEL) -> Proportion:
    """A share whose outcomes come in clusters: an item asked several times, the turns of one dialogue.

    Wilson's interval on the effective sample size, that is on as many independent outcomes as give the cluster-robust variance
    (Kish 1965; Korn and Graubard 1998; Dean and Pagano 2015). Where all outcomes agree nothing tells how alike a cluster is:
    each cluster then counts once. Raises DataError for no outcome, or for as many clusters as not outcomes.
    """
    if not outcomes or len(outcomes) != len(clusters):
        raise DataError(f"{len(outcomes)} outcomes in {len(clusters)} clusters are no share: name the cluster of each outcome")
    sums, sizes = _by_cluster([float(outcome) for outcome in outcomes], clusters)
    total, right, groups = len(outcomes), sum(map(bool, outcomes)), len(sums)
    effective = _effective(sums, sizes, level)
    low, high = _score(right / total, effective, level)
    shown = groups if groups < total else None
    return Proportion(
        value=right / total, low=low, high=high, level=level, right=right, total=total, clusters=shown, worth=effective
    )


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    unit: str = "",
) -> Mean:
    """The mean of any scores; whole clusters are drawn again with replacement (Efron 1979; Field and Welsh 2007).

    Percentiles are those of the expanded interval, which makes up for small samples (Hesterberg 2015, "What teachers should
    know about the bootstrap"). Scores that are all alike get a width of zero: a bootstrap knows of no others.
    Raises DataError for no value.
    """
    if not values:
        raise DataError("there is no value to take the mean of: score at least one item first")
    sums, sizes = _by_cluster(values, clusters if clusters is not None else range(len(values)))
    drawn = redraw(np.column_stack([sums, sizes]), seed, resamples)
    low, high = percentiles(drawn[:, 0] / drawn[:, 1], len(sums), level)
    return Mean(value=float(sums.sum() / sizes.sum()), low=low, high=high, level=level, items=len(sums), unit=unit)


def pass_k(results: Sequence[Sequence[bool]], k: int, *, seed: int = SEED, level: float = LEVEL) -> PassK:
    """The chance that k tries of one item are all right, from n >= k tries of each item.

    The unbiased estimator C(right, k) / C(tries, k), averaged over items (Yao et al. 2024, tau-bench); items are drawn again for
    the interval. Raises DataError where an item has fewer than k tries.
    """
    short = [number for number, tries in enumerate(results, 1) if len(tries) < k]
    if short or not results or k < 1:
        raise DataError(
            f"pass^{k} needs {k} tries of every item: item {short[0] if short else 1} has fewer; repeat it more often"
        )
    found = [comb(sum(map(bool, tries)), k) / comb(len(tries), k) for tries in results]
    mean = bootstrap_mean(found, seed=seed, level=level)
    return PassK(value=mean.value, low=mean.low, high=mean.high, level=level, k=k, items=len(found))


def redraw(rows: Floats, seed: int, resamples: int) -> Floats:
    """Sums of rows drawn with replacement, as many as there are, once a resample: an array (resamples, columns).

    Equal rows are drawn together, as counts of one multinomial: the same law as drawing each by itself, and far quicker.
    """
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    often = np.random.default_rng(seed).multinomial(len(rows), counts / len(rows), size=resamples)
    return often @ distinct


def percentiles(drawn: Floats, items: int, level: float) -> tuple[float, float]:
    """The ends of the expanded percentile interval of bootstrap estimates from so many items."""
    tail = (1 - level) / 2
    if items > 1:
        tail = normal_share(-t_quantile(1 - tail, items - 1) * sqrt(items / (items - 1)))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def _score(share: float, total: float, level: float) -> tuple[float, float]:
    """The ends of Wilson's interval; `total` may be an effective sample size."""
    z = normal_quantile((1 + level) / 2)
    middle, spread = share + z * z / (2 * total), z * sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    low, high = ((middle - spread) / (1 + z * z / total), (middle + spread) / (1 + z * z / total))
    return max(0.0, low) if share else 0.0, min(1.0, high) if share < 1 else 1.0


def _by_cluster(values: Sequence[float], clusters: Sequence[Any]) -> tuple[Floats, Floats]:
    """Sum and size of every cluster, in the order in which they first appear."""
    place: dict[Any, int] = {}
    where = np.array([place.setdefault(cluster, len(place)) for cluster in clusters])
    sums, sizes = np.bincount(where, weights=np.asarray(values, dtype=float)), np.bincount(where)
    return sums.astype(np.float64), sizes.astype(np.float64)


def _effective(sums: Floats, sizes: Floats, level: float) -> float:
    """How many independent outcomes these clusters are worth; never more than there are."""
    groups, total = len(sums), float(sizes.sum())
    share = float(sums.sum()) / total
    if groups == total:
        return total
    if groups == 1:
        return 1.0
    few = (t_quantile((1 + level) / 2, int(total) - 1) / t_quantile((1 + level) / 2, groups - 1)) ** 2
    if share in (0.0, 1.0):
        return groups * few
    spread = groups / (groups - 1) * float(((sums - share * sizes) ** 2).sum()) / total**2
    return min(total, few * share * (1 - share) / spread) if spread else total
