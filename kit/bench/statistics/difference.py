"""Two ways set side by side: differences with their intervals, tests by item, and what they entitle one to say."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import comb, hypot
from statistics import fmean as mean

import numpy as np

from kit.bench.statistics.distributions import student_reach
from kit.bench.statistics.means import RESAMPLES, SEED, percentiles, redraw
from kit.core.errors import DataError
from kit.core.value import Value
from kit.metrics.estimate import LEVEL, Estimate, wilson

SCARCE = 50
"""Items from which on the paired bootstrap holds what it promises, by simulation: docs/statistics.md."""
Scores = Mapping[str, Sequence[float]]
"""Item -> its scores, one a repeat."""


class Difference(Estimate):
    """How much more one way scores than another; positive where the second is ahead."""

    def at(self, level: float) -> "Difference":
        """The same at another confidence: both ends are moved by as much as Student's reach grows."""
        freedom = max(1, self.n - 1)
        reach = student_reach(freedom, level) / student_reach(freedom)
        low, high = (self.value + reach * (end - self.value) for end in (self.low, self.high))
        return self.model_copy(update={"low": low, "high": high})

    def __str__(self) -> str:
        return f"difference {self:+.3f}, {self.basis}"


class McNemar(Value):
    """Items on which exactly one of two ways was right (or scored higher), and how odd so uneven a count would be."""

    only_first: int
    only_second: int
    exact: float
    mid_p: float
    """Less cautious than `exact`, which is nearly always too cautious."""

    def __str__(self) -> str:
        return (
            f"{self.only_first} items only the first got right, {self.only_second} only the second: "
            f"exact p = {self.exact:.4f}, mid-p = {self.mid_p:.4f}"
        )


def newcombe(first: tuple[int, int], second: tuple[int, int]) -> Difference:
    """Two shares of different items, each (right, total): the hybrid score interval (Newcombe 1998,
    "Interval estimation for the difference between independent proportions", method 10). Raises
    DataError for a share of nothing.
    """
    one, two, n = wilson(*first), wilson(*second), min(first[1], second[1])
    gap = two.value - one.value
    low = gap - hypot(two.value - two.low, one.high - one.value)
    high = gap + hypot(two.high - two.value, one.value - one.low)
    return Difference(value=gap, low=low, high=high, n=n, basis=f"{n} items, not paired")


def paired_difference(
    first: Scores, second: Scores, *, seed: int = SEED, resamples: int = RESAMPLES
) -> Difference:
    """The mean difference over the same items, items drawn again with replacement (Efron and
    Tibshirani 1993; Hesterberg 2015 for the expanded percentiles). Repeats of an item are averaged
    first: they are no items of their own.

    When all items differ alike a bootstrap would call itself certain; the ends are then moved by
    the share of differing items that so many alike cannot rule out. Good for 50 items or more.
    Raises DataError where the items are not the same.
    """
    gains = np.array(list(by_item(first, second).values()))
    resampled = redraw(gains[:, None], seed, resamples)[:, 0] / len(gains)
    low, high = percentiles(resampled, len(gains))
    if np.ptp(gains) == 0.0:
        unseen = wilson(0, len(gains)).high
        low, high = max(-1.0, low - unseen), min(1.0, high + unseen)
    return Difference(
        value=float(gains.mean()),
        low=low,
        high=high,
        n=len(gains),
        basis=f"paired by {len(gains)} items",
    )


def by_item(first: Scores, second: Scores) -> dict[str, float]:
    """Item -> mean score of the second less that of the first. Raises DataError where the items are not the same."""
    odd = sorted(first.keys() ^ second.keys())
    if odd or not first:
        missing = f"item {odd[0]!r} was scored on one side only" if odd else "no item was scored"
        raise DataError(f"{missing}: a paired comparison needs the same items on both sides")
    return {item: mean(second[item]) - mean(first[item]) for item in sorted(first)}


def mcnemar(only_first: int, only_second: int) -> McNemar:
    """McNemar's test from the discordant items: exact, and by mid-p (McNemar 1947; Fagerland,
    Lydersen and Laake 2013).

    Of items with repeats, those count whose mean score is higher on one side: the sign test, which
    is the same for single tries.
    """
    fewer, tosses = min(only_first, only_second), only_first + only_second
    below, at = (
        sum(comb(tosses, heads) for heads in some) / 2**tosses
        for some in (range(fewer + 1), (fewer,))
    )
    return McNemar(
        only_first=only_first,
        only_second=only_second,
        exact=min(1.0, 2 * below),
        mid_p=min(1.0, 2 * below - at),
    )


def mcnemar_of(gains: Mapping[str, float]) -> McNemar:
    """The same from the differences by item."""
    return mcnemar(
        sum(gain < 0 for gain in gains.values()), sum(gain > 0 for gain in gains.values())
    )


def holm(chances: Mapping[str, float]) -> dict[str, float]:
    """P-values adjusted so that the chance of any false claim among them stays what it was for one (Holm 1979)."""
    names = sorted(chances, key=lambda name: (chances[name], name))
    products = (min(1.0, (len(names) - place) * chances[name]) for place, name in enumerate(names))
    adjusted = dict(zip(names, accumulate(products, max), strict=True))
    return {name: adjusted[name] for name in chances}


def holm_levels(chances: Mapping[str, float]) -> dict[str, float]:
    """The confidence that Holm's correction asks of each interval, so that it stands beside its adjusted p-value."""
    claims = sum(chance < 1 - LEVEL for chance in holm(chances).values())
    names = sorted(chances, key=lambda name: (chances[name], name))
    levels = {
        name: 1 - (1 - LEVEL) / (len(names) - min(place, claims))
        for place, name in enumerate(names)
    }
    return {name: levels[name] for name in chances}
