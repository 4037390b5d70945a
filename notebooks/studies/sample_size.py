"""How many items settle whether a share reaches a figure, or whether two shares differ."""

from math import ceil, sqrt
from statistics import NormalDist
from typing import Literal

from kit.bench.statistics.power import POWER
from kit.core.errors import DataError
from kit.core.value import Value
from kit.metrics.estimate import Estimate, normal_reach, wilson


class Target(Value):
    """A share held against a figure it was said to reach."""

    proportion: Estimate
    target: float
    verdict: Literal["above", "below", "open"]
    more: int | None
    """Items still needed, if the rate stays as seen; 0 when settled, None when the rate is the target itself."""

    @property
    def settles(self) -> str:
        """What the interval says about the figure, in a few words."""
        return (
            f"does not settle {self.target:g}"
            if self.verdict == "open"
            else f"excludes {self.target:g}, it is {self.verdict}"
        )

    def __str__(self) -> str:
        more = (
            ""
            if self.more == 0
            else "; no sample would part the two"
            if self.more is None
            else _MORE.format(self.more)
        )
        return f"{self.proportion}, {self.settles}{more}"


_MORE = "; about {:,} more items at this rate would"


def target(proportion: Estimate, figure: float) -> Target:
    """Whether a share is above or below a figure, and how many more items would tell."""
    if proportion.excludes(figure):
        verdict = "above" if proportion.low > figure else "below"
        return Target(proportion=proportion, target=figure, verdict=verdict, more=0)
    count = items_for_target(proportion.value, figure)
    each = proportion.n / proportion.effective_n
    more = None if count is None else max(1, ceil((count - proportion.effective_n) * each))
    return Target(proportion=proportion, target=figure, verdict="open", more=more)


def items_for_target(rate: float, figure: float) -> int | None:
    """Independent items until Wilson's interval of a true `rate` excludes `figure`, this often
    (Fleiss, Levin, Paik 2003, 2.2).

    None where the two are the same. Raises DataError for a figure that is no share between 0 and 1.
    """
    if not 0 < figure < 1 or not 0 <= rate <= 1:
        raise DataError(
            f"a rate of {rate:g} cannot be held against {figure:g}: both are shares, the target neither 0 nor 1"
        )
    if rate == figure:
        return None
    sure, lucky = normal_reach(), NormalDist().inv_cdf(POWER)
    spread = sure * sqrt(figure * (1 - figure)) + lucky * sqrt(rate * (1 - rate))
    count = max(1, ceil((spread / (rate - figure)) ** 2))
    while rate in (0.0, 1.0) and not wilson(round(rate * count), count).excludes(figure):
        count += 1
    return count


def items_for_shares(first: float, second: float) -> int | None:
    """Items on each side, not paired, until two true shares are told apart (Fleiss, Levin and Paik 2003, 4.2)."""
    if first == second:
        return None
    sure, lucky, middle = normal_reach(), NormalDist().inv_cdf(POWER), (first + second) / 2
    spread = sure * sqrt(2 * middle * (1 - middle)) + lucky * sqrt(
        first * (1 - first) + second * (1 - second)
    )
    return max(2, ceil((spread / (second - first)) ** 2))
