"""Two ways set side by side: differences with their intervals, tests by item, and what they entitle one to say."""

from collections.abc import Hashable, Mapping
from math import comb, hypot, sqrt
from statistics import fmean as mean
from typing import TypeVar

import numpy as np

from kit.bench.statistics.clusters import sum_clusters
from kit.bench.statistics.means import DIFFERENCES_OF_SCORES, Range, check_range, mean_of_sums
from kit.core.display.count import many
from kit.metrics.estimate import LEVEL, Estimate, normal_reach, wilson

K = TypeVar("K", bound=Hashable)


class Difference(Estimate):
    """How much more one way scores than another; positive where the second is ahead."""

    middle: float | None = None
    """What its ends are equally far from at every confidence; None where that is the figure, or nothing is."""

    def reaching(self, errors: float) -> "Difference":
        """The same where an interval reaches so many standard errors to either side."""
        return self.widened(errors / normal_reach())

    def widened(self, times: float) -> "Difference":
        """The same with both ends so many times as far from its middle."""
        middle = self.value if self.middle is None else self.middle
        low = middle + times * (self.low - middle)
        high = middle + times * (self.high - middle)
        return self.model_copy(update={"low": low, "high": high})

    @property
    def of_scores(self) -> "Difference":
        """The same of scores from 0 to 1, which an interval that was widened does not know."""
        return self.model_copy(update={"low": max(-1.0, self.low), "high": min(1.0, self.high)})

    @property
    def deviation(self) -> float:
        """The standard deviation by item that an interval as wide as this one speaks of."""
        return (self.high - self.low) / 2 / normal_reach() * sqrt(self.n)

    def __str__(self) -> str:
        return f"difference {self:+.3f}, {self.basis}"


def newcombe(first: tuple[int, int], second: tuple[int, int]) -> Difference:
    """Two shares of different items, each (right, total): the hybrid score interval (Newcombe 1998,
    "Interval estimation for the difference between independent proportions", method 10). Raises
    DataError for a share of nothing.
    """
    return unpaired_difference(wilson(*first), wilson(*second), min(first[1], second[1]))


def unpaired_difference(
    first: Estimate, second: Estimate, n: int, unit: str = "item"
) -> Difference:
    """The difference of two estimates of different items, from the interval of each (Zou and Donner
    2008, "Construction of confidence intervals about effect measures"); `n` is the number of items
    of the smaller one."""
    gap = second.value - first.value
    below = hypot(second.value - second.low, first.high - first.value)
    above = hypot(second.high - second.value, first.value - first.low)
    basis = f"{many(n, unit)}, not paired"
    return Difference(value=gap, low=gap - below, high=gap + above, n=n, basis=basis)


def difference_of(
    gains: Mapping[str, float],
    *,
    clusters: Mapping[str, Hashable] | None = None,
    within: Range = DIFFERENCES_OF_SCORES,
) -> Difference:
    """The mean of differences by item, with its interval.

    Where every item is right or wrong it is that of Bonett and Price (2012, "Adjusted Wald
    confidence interval for a difference of binomial proportions based on paired data"), which holds
    from five items on; else that of `mean_of`. Raises DataError for a difference outside of `within`.
    """
    check_range(gains.values(), within)
    n = len(gains)
    groups = list(gains)
    if clusters is not None:
        groups = [clusters.get(item, item) for item in gains]
    together = len(set(groups))
    basis = f"paired by {many(n, 'item')}"
    if together < n:
        basis += f" in {together} clusters"
    # Costs that are all alike are no scores of zero: between them an item may lie anywhere.
    if together == n and within == DIFFERENCES_OF_SCORES and all_or_nothing(gains):
        value = mean(gains.values())
        low, middle, high = _bonett_price(gains)
        return Difference(value=value, low=low, high=high, n=n, basis=basis, middle=middle)
    sums, sizes = sum_clusters(list(gains.values()), groups)
    estimate = mean_of_sums(sums, sizes, within=within)
    return Difference(
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=n,
        basis=basis,
        may_differ=estimate.may_differ,
    )


def all_or_nothing(gains: Mapping[str, float]) -> bool:
    """Whether each of two ways is right or wrong on every item, so that McNemar's test is theirs."""
    return {-1.0, 0.0, 1.0}.issuperset(gains.values())


def _bonett_price(gains: Mapping[str, float]) -> tuple[float, float, float]:
    """The ends and, between them, the middle.

    One item is added on which only the first was right, and one on which only the second was.
    """
    items = len(gains) + 2
    first, second = items_ahead(gains)
    only_first = (first + 1) / items
    only_second = (second + 1) / items
    middle = only_second - only_first
    half = normal_reach() * sqrt((only_second + only_first - middle**2) / items)
    return max(-1.0, middle - half), middle, min(1.0, middle + half)


def mid_p(gains: Mapping[str, float]) -> float:
    """McNemar's test by its mid-p, which is less cautious than the exact one (McNemar 1947;
    Fagerland, Lydersen and Laake 2013).

    Of items with repeats, those count whose mean score is higher on one side: the sign test, which
    is the same for single tries.
    """
    first, second = items_ahead(gains)
    fewer = min(first, second)
    tosses = first + second
    below = sum(comb(tosses, heads) for heads in range(fewer + 1)) / 2**tosses
    as_uneven = comb(tosses, fewer) / 2**tosses
    return min(1.0, 2 * below - as_uneven)


def items_ahead(gains: Mapping[str, float]) -> tuple[int, int]:
    """On how many items the first is ahead, and the second."""
    signs = np.sign(list(gains.values()))
    return int((signs < 0).sum()), int((signs > 0).sum())


def holm(chances: Mapping[K, float]) -> dict[K, float]:
    """P-values adjusted so that the chance of any false claim among them stays what it was for one (Holm 1979)."""
    names = sorted(chances, key=chances.__getitem__)
    adjusted: dict[K, float] = {}
    highest = 0.0
    for index, name in enumerate(names):
        highest = max(highest, min(1.0, (len(names) - index) * chances[name]))
        adjusted[name] = highest
    # In the order in which they were given.
    return {name: adjusted[name] for name in chances}


def holm_levels(chances: Mapping[K, float]) -> dict[K, float]:
    """The confidence that Holm's correction asks of each interval, so that it stands beside its
    adjusted p-value. Equal p-values get one level: that of the first of them, the widest."""
    claims = sum(chance < 1 - LEVEL for chance in holm(chances).values())
    ascending = sorted(chances.values())
    levels: dict[K, float] = {}
    for name, chance in chances.items():
        index = min(ascending.index(chance), claims)
        levels[name] = 1 - (1 - LEVEL) / (len(chances) - index)
    return levels
