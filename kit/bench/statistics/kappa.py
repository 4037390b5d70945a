"""Cohen's kappa of two sorts of verdict, with an interval that holds close to 1, and where one of the two
says yes more often than the other."""

from math import exp

import numpy as np

from kit.bench.statistics.clusters import Floats
from kit.bench.statistics.distributions import least_where
from kit.metrics.estimate import normal_reach

Table = tuple[tuple[int, int], tuple[int, int]]
"""Counts: first no and yes, by second no and yes."""
_ADDED = 0.25
"""Verdicts that are added to each cell: without them a cell in which none was seen is taken for impossible.
Found by simulation: `python -m tests.coverage`."""


def kappa_of(table: Table) -> tuple[float, float, float]:
    """Kappa (Cohen 1960) and the ends of its interval by profile likelihood (Venzon and Moolgavkar
    1988, "A method for computing profile-likelihood-based confidence intervals").

    The ends are the least and the greatest kappa among all laws under which these counts are not much
    less likely than under the best one; the two rates of yes may be any. Zero, with the whole range
    for an interval, where one of the two always says the same.
    """
    counts = np.array(table, dtype=np.float64)
    if not counts.sum(axis=0).all() or not counts.sum(axis=1).all():
        return 0.0, -1.0, 1.0
    shares = counts / counts.sum()
    by_chance = float(shares.sum(axis=0) @ shares.sum(axis=1))
    kappa = (float(np.trace(shares)) - by_chance) / (1 - by_chance)
    low, high = _ends(counts + _ADDED)
    return kappa, min(kappa, low), max(kappa, high)


def _differing(law: Floats) -> float:
    """How often the two differ, as a share of how often they would by chance: 1 less kappa. Both this and
    the chances of the law are logarithms, so that a search is as fine next to 1 as elsewhere."""
    first = np.logaddexp(law[:, 0], law[:, 1])
    second = np.logaddexp(law[0], law[1])
    by_chance = np.logaddexp(first[0] + second[1], first[1] + second[0])
    return float(np.logaddexp(law[0, 1], law[1, 0]) - by_chance)


def _ends(counts: Floats) -> tuple[float, float]:
    best = np.log(counts / counts.sum())
    allowed = normal_reach() ** 2 / 2
    # A table that is the same from both sides is a saddle, which no search would leave.
    start = best.ravel() + np.array([0.0, 0.001, 0.002, 0.004])

    def law(figures: Floats) -> Floats:
        """Any four figures as the logarithms of chances, which come to 1."""
        return (figures - np.logaddexp.reduce(figures)).reshape(best.shape)

    def room(figures: Floats) -> float:
        """How much less likely the counts may still be than they are under this law."""
        return allowed - float((counts * (best - law(figures))).sum())

    least = least_where(lambda figures: _differing(law(figures)), start, room)
    most = -least_where(lambda figures: -_differing(law(figures)), start, room)
    return 1 - exp(most), 1 - exp(least)
