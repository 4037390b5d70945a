"""An estimate: a figure with its interval, which prints as one plain sentence; and shares, the estimates made from counts.

Every interval is two-sided. Nothing here reads a clock or a global random state: a seed gives the same bytes on every machine.
"""

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kit.bench.statistics.distributions import normal_quantile, t_quantile
from kit.core.errors import DataError
from kit.core.value import Value

LEVEL = 0.95
"""Confidence of every interval, unless another is asked for."""
Floats = NDArray[np.float64]
Method = Literal[
    "Wilson",
    "clustered Wilson",
    "bootstrap",
    "Student's t",
    "stratified",
    "bootstrap ratio",
    "order statistics",
    "Newcombe",
    "paired bootstrap",
    "large-sample kappa",
]


class Estimate(Value):
    """A figure, and between which ends the truth lies at `level` confidence.

    `str()` is its sentence; a format such as `f"{estimate:.1%}"` is applied to the figure and to both ends.
    """

    value: float
    low: float
    high: float
    n: int
    """Items behind it; of a share its outcomes."""
    method: Method
    """How the interval is made; the function that makes it names the source."""
    level: float = LEVEL
    right: int | None = None
    """Of a share: how many of the `n` are right; None for a figure that is no share."""
    clusters: int | None = None
    """Of a share: the items or dialogues behind it, where one stands for several of the `n`."""
    effective_n: float = 0.0
    """Of a share: independent outcomes that would vouch for as much: `n`, or fewer in clusters."""
    unit: str = ""

    @property
    def is_share(self) -> bool:
        """True for so many right of so many."""
        return self.right is not None

    def excludes(self, figure: float) -> bool:
        """True when this interval rules a figure out."""
        return not self.low <= figure <= self.high

    def columns(self) -> dict[str, float]:
        """The figure and its ends as a row of a chart's frame has them: y, low, high."""
        return {"y": self.value, "low": self.low, "high": self.high}

    def __format__(self, form: str) -> str:
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]" if form else str(self)

    def __str__(self) -> str:
        if self.is_share:
            within = f" in {self.clusters} clusters" if self.clusters is not None else ""
            return f"{self.right} of {self.n}{within} = {self:.3f}"
        is_mean = self.method in ("bootstrap", "Student's t", "stratified")
        return f"mean of {self.n} items = {self:.3f}{self.unit and ' ' + self.unit}" if is_mean else f"{self:.3f}"


def wilson(right: int, total: int, level: float = LEVEL) -> Estimate:
    """A share of independent items (Wilson 1927, "Probable inference, the law of succession, and statistical inference").

    Raises DataError where there is nothing to estimate from.
    """
    if total < 1 or not 0 <= right <= total:
        raise DataError(f"{right} right of {total} is no share: score at least one item first")
    low, high = _score(right / total, total, level)
    return Estimate(
        value=right / total, low=low, high=high, n=total, method="Wilson", level=level, right=right, effective_n=total
    )


def share(right: int, total: int) -> Estimate:
    """A share by Wilson; of nothing it is 0 and may be anything."""
    return wilson(right, total) if total else Estimate(value=0.0, low=0.0, high=1.0, n=0, method="Wilson", right=0)


def clustered(outcomes: Sequence[bool], clusters: Sequence[Hashable], level: float = LEVEL) -> Estimate:
    """A share whose outcomes come in clusters: an item asked several times, the turns of one dialogue.

    Wilson's interval on the effective sample size, that is on as many independent outcomes as give the cluster-robust variance
    (Kish 1965; Korn and Graubard 1998; Dean and Pagano 2015). Where all outcomes agree nothing tells how alike a cluster is:
    each cluster then counts once. Raises DataError for no outcome, or for as many clusters as not outcomes.
    """
    if not outcomes or len(outcomes) != len(clusters):
        raise DataError(f"{len(outcomes)} outcomes in {len(clusters)} clusters are no share: name the cluster of each outcome")
    sums, sizes = sum_clusters([float(outcome) for outcome in outcomes], clusters)
    total, right, groups = len(outcomes), sum(map(bool, outcomes)), len(sums)
    effective = _effective(sums, sizes, level)
    low, high = _score(right / total, effective, level)
    return Estimate(
        value=right / total,
        low=low,
        high=high,
        n=total,
        method="clustered Wilson" if groups < total else "Wilson",
        level=level,
        right=right,
        clusters=groups if groups < total else None,
        effective_n=effective,
    )


def _score(share: float, total: float, level: float) -> tuple[float, float]:
    """The ends of Wilson's interval; `total` may be an effective sample size."""
    z = normal_quantile((1 + level) / 2)
    middle, spread = share + z * z / (2 * total), z * sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    low, high = ((middle - spread) / (1 + z * z / total), (middle + spread) / (1 + z * z / total))
    return max(0.0, low) if share else 0.0, min(1.0, high) if share < 1 else 1.0


def sum_clusters(values: Sequence[float], clusters: Sequence[Any]) -> tuple[Floats, Floats]:
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
