"""Shares whose outcomes come in clusters, from sums by cluster.

Nothing here reads a clock or draws at random: the same outcomes give the same bytes on every machine.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.bench.statistics.distributions import student_reach
from kit.metrics.estimate import Estimate, normal_reach, wilson_bounds

Floats = NDArray[np.float64]
PSEUDO_CLUSTER = 0.75
"""Size, in clusters of the mean size, of the imagined cluster of the rarer outcome. Without it the
variance comes out too small whenever the few clusters that differ happen not to be drawn."""


def share_of_sums(sums: Floats, sizes: Floats) -> Estimate:
    """A share whose outcomes come in clusters, such as an item asked several times or the turns of one
    dialogue, from the right outcomes and the size of every cluster.

    Wilson's interval on the effective sample size, that is on as many independent outcomes as give
    the cluster-robust variance (Kish 1965; Korn and Graubard 1998; Dean and Pagano 2015), with the
    correction CR2 and the degrees of freedom of clusters of unequal size (Bell and McCaffrey 2002;
    Carter, Schnepel and Steigerwald 2017).
    """
    total = int(sizes.sum())
    right = round(float(sums.sum()))
    effective = _effective(sums, sizes)
    low, high = wilson_bounds(right / total, effective)
    groups = len(sums)
    basis = f"{right} of {total}"
    if groups < total:
        basis += f" in {groups} clusters"
    return Estimate(
        value=right / total,
        low=low,
        high=high,
        n=total,
        basis=basis,
        right=right,
        effective_n=effective,
    )


def sum_clusters(values: Sequence[float], clusters: Sequence[Any]) -> tuple[Floats, Floats]:
    """Sum and size of every cluster, in the order in which they first appear."""
    index_of: dict[Any, int] = {}
    where = np.array([index_of.setdefault(cluster, len(index_of)) for cluster in clusters])
    sums = np.bincount(where, weights=np.asarray(values, dtype=float))
    sizes = np.bincount(where)
    return sums.astype(np.float64), sizes.astype(np.float64)


def clusters_worth(sizes: Floats) -> float:
    """How many clusters of equal size would vouch for as much as these (Carter et al. 2017)."""
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def _effective(sums: Floats, sizes: Floats) -> float:
    """How many independent outcomes these clusters are worth; never more than there are."""
    total = float(sizes.sum())
    # Every cluster is of one item: they are independent.
    if len(sums) == total:
        return total
    if len(sums) == 1:
        return 1.0
    worth = clusters_worth(sizes)
    few = (normal_reach() / student_reach(max(1.0, worth - 1))) ** 2
    imagined = PSEUDO_CLUSTER * float(sizes.mean())
    as_wrong = _relative_variance(np.append(sums, 0.0), np.append(sizes, imagined))
    as_right = _relative_variance(np.append(sums, imagined), np.append(sizes, imagined))
    variance = max(as_wrong, as_right)
    # No sample is worth less than its clusters, however alike the outcomes of each of them are.
    if variance:
        return min(total, max(few / variance, few * worth))
    return total


def _relative_variance(sums: Floats, sizes: Floats) -> float:
    """The cluster-robust variance of a share (CR2), over that of one independent outcome."""
    total = float(sizes.sum())
    share = float(sums.sum()) / total
    if share in (0.0, 1.0):
        return 0.0
    residuals = sums - share * sizes
    variance = float((residuals**2 / (1 - sizes / total)).sum()) / total**2
    return variance / (share * (1 - share))
