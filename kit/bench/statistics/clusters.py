"""Shares whose outcomes come in clusters, from sums by cluster.

Nothing here reads a clock or a global random state: a seed gives the same bytes on every machine.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.bench.statistics.distributions import student_reach
from kit.core.errors import DataError
from kit.metrics.estimate import Estimate, wilson_bounds

Floats = NDArray[np.float64]


def clustered(outcomes: Sequence[bool], clusters: Sequence[Hashable]) -> Estimate:
    """A share whose outcomes come in clusters: an item asked several times, the turns of one
    dialogue.

    Wilson's interval on the effective sample size, that is on as many independent outcomes as give
    the cluster-robust variance (Kish 1965; Korn and Graubard 1998; Dean and Pagano 2015). Where all
    outcomes agree nothing tells how alike a cluster is: each cluster then counts once. Raises
    DataError for no outcome, or for as many clusters as not outcomes.
    """
    if not outcomes or len(outcomes) != len(clusters):
        raise DataError(
            f"{len(outcomes)} outcomes in {len(clusters)} clusters are no share: name the cluster of each outcome"
        )
    sums, sizes = sum_clusters([float(outcome) for outcome in outcomes], clusters)
    total, right, groups = len(outcomes), sum(map(bool, outcomes)), len(sums)
    effective = _effective(sums, sizes)
    low, high = wilson_bounds(right / total, effective)
    within = f" in {groups} clusters" if groups < total else ""
    return Estimate(
        value=right / total,
        low=low,
        high=high,
        n=total,
        basis=f"{right} of {total}{within}",
        right=right,
        effective_n=effective,
    )


def sum_clusters(values: Sequence[float], clusters: Sequence[Any]) -> tuple[Floats, Floats]:
    """Sum and size of every cluster, in the order in which they first appear."""
    place: dict[Any, int] = {}
    where = np.array([place.setdefault(cluster, len(place)) for cluster in clusters])
    sums, sizes = np.bincount(where, weights=np.asarray(values, dtype=float)), np.bincount(where)
    return sums.astype(np.float64), sizes.astype(np.float64)


def _effective(sums: Floats, sizes: Floats) -> float:
    """How many independent outcomes these clusters are worth; never more than there are."""
    groups, total = len(sums), float(sizes.sum())
    share = float(sums.sum()) / total
    if groups == total:
        return total
    if groups == 1:
        return 1.0
    few = (student_reach(int(total) - 1) / student_reach(groups - 1)) ** 2
    if share in (0.0, 1.0):
        return groups * few
    spread = groups / (groups - 1) * float(((sums - share * sizes) ** 2).sum()) / total**2
    return min(total, few * share * (1 - share) / spread) if spread else total
