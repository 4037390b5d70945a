"""An estimate: a figure with its interval, which prints as one plain sentence; and shares, the
estimates made from counts."""

from math import isfinite, sqrt
from statistics import NormalDist

from kit.core.errors import DataError
from kit.core.value import Value

LEVEL = 0.95
"""Confidence of every interval; all are two-sided."""


class Estimate(Value):
    """A figure, and between which ends the truth lies at `LEVEL` confidence.

    `str()` is its sentence; a format such as `f"{estimate:.1%}"` is applied to the figure and to both ends.
    """

    value: float
    low: float
    high: float
    n: int
    """Items behind it; of a share its outcomes."""
    basis: str = ""
    """What it is made from, in words: `181 of 200`, `mean of 80 items`."""
    right: int | None = None
    """Of a share: how many of the `n` are right; None for a figure that is no share."""
    effective_n: float = 0.0
    """Of a share: independent outcomes that would vouch for as much: `n`, or fewer in clusters."""
    may_differ: float | None = None
    """Of values that are all alike and have no bound: the share of all there are that may still differ from
    them, and by any amount. They bound no mean, so there is no interval."""

    @property
    def is_share(self) -> bool:
        """True for so many right of so many."""
        return self.right is not None

    @property
    def has_interval(self) -> bool:
        """False where nothing bounds the figure, for the reason of `why_none`; its ends are infinite then."""
        return isfinite(self.low) or isfinite(self.high)

    @property
    def why_none(self) -> str:
        """Why there is no interval, in words."""
        if self.may_differ is None:
            return "too few for an interval"
        return f"the same in each; up to {_percent(self.may_differ)} % of all may differ, by any amount"

    def excludes(self, figure: float) -> bool:
        """True when this interval rules a figure out."""
        return not self.low <= figure <= self.high

    def columns(self) -> dict[str, float]:
        """The figure and its ends as a row of a chart's frame has them: y, low, high. Without an
        interval both ends are the figure, so that a chart draws its dot alone."""
        # A chart cannot draw a whisker without an end.
        if not self.has_interval:
            return {"y": self.value, "low": self.value, "high": self.value}
        return {"y": self.value, "low": self.low, "high": self.high}

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        if not self.has_interval:
            return f"{self.value:{form}} ({self.why_none})"
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"

    def __str__(self) -> str:
        if self.basis:
            return f"{self.basis} = {self:.3f}"
        return f"{self:.3f}"


def wilson(right: int, total: int) -> Estimate:
    """A share of independent items (Wilson 1927, "Probable inference, the law of succession, and
    statistical inference").

    Raises DataError where there is nothing to estimate from.
    """
    if total < 1 or not 0 <= right <= total:
        raise DataError(f"{right} right of {total} is no share: score at least one item first")
    return share(right, total)


def share(right: int, total: int) -> Estimate:
    """A share by Wilson; of nothing it is 0 and may be anything."""
    value = 0.0
    low = 0.0
    high = 1.0
    if total:
        value = right / total
        low, high = wilson_bounds(value, total)
    return Estimate(
        value=value,
        low=low,
        high=high,
        n=total,
        basis=f"{right} of {total}",
        right=right,
        effective_n=total,
    )


def wilson_bounds(share: float, total: float) -> tuple[float, float]:
    """The ends of Wilson's interval; `total` may be an effective sample size."""
    z = normal_reach()
    middle = share + z * z / (2 * total)
    spread = z * sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    low = (middle - spread) / (1 + z * z / total)
    high = (middle + spread) / (1 + z * z / total)
    # At either end only rounding moves the interval's own end away from it.
    if not share:
        low = 0.0
    if share >= 1:
        high = 1.0
    return max(0.0, low), min(1.0, high)


def percent_words(share: Estimate) -> str:
    """Returns a share and the ends of its interval as a person reads them, such as `28% (19 to 40)`."""
    return f"{_percent(share.value)}% ({_percent(share.low)} to {_percent(share.high)})"


def _percent(share: float) -> str:
    """Returns a share in per cent; one that is small, or next to all, is not rounded to none or all of it."""
    if share in (0, 1) or 0.1 <= share < 0.995:
        return f"{share:.0%}".removesuffix("%")
    return f"{share:.1%}".removesuffix("%")


def normal_reach(level: float = LEVEL) -> float:
    """How many standard deviations a normal law's two-sided interval reaches to either side."""
    return NormalDist().inv_cdf((1 + level) / 2)
