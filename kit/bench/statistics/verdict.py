"""What a comparison of two ways entitles one to say, and the words for it: the report, the page,
the commands and the notebooks all take them from here."""

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Literal

from kit.bench.statistics.measures import MEASURES
from kit.core.errors import DataError, nearest
from kit.metrics.estimate import Estimate

Margin = float | Mapping[str, float]
"""The difference that is too small to matter: of every score, or by scorer or measure. `margin:` of a grid or
`--margin` of a command states it; where nothing does, no two ways are called equivalent."""
POINTS = 0.05
"""The difference of scores that sample sizes are given for where none is stated."""
TENTH = 0.1
"""The same of seconds, tokens and dollars, as a share of the baseline's mean."""
_UNITS = {
    "seconds": " s",
    "ttft": " s",
    "routing_seconds": " s",
    "cost": " $",
    "hop_ms": " ms",
    "peer_seconds": " s",
    "peer_cost": " $",
}


Verdict = Literal["better", "worse", "equivalent", "cannot tell", "no verdict"]
"""What a comparison came to, whatever the cells say that are missing. `equivalent`: the difference
is smaller than the margin, to either side. `cannot tell`: the way may be ahead, or behind, or the
same. `no verdict`: too many cells failed to compare the two."""


NO_COMPARISON = (
    "Simulated models are told whom a case expects and err from there by a law: beside any other model "
    "they are no comparison."
)
"""Said wherever simulated figures stand beside others."""


def is_score(measure: str) -> bool:
    """Whether its values lie between 0 and 1."""
    return measure not in MEASURES


def margin_of(measure: str, margin: Margin | None) -> float | None:
    """Returns the margin of a measure; None where none was stated for it.

    Raises DataError for points in the place of a share: within 5 every two scores would be equivalent.
    """
    if isinstance(margin, Mapping):
        margin = margin.get(measure)
    elif not is_score(measure):
        return None
    if margin is not None and margin >= 1 and is_score(measure):
        raise DataError(
            f"margin {margin:g} of {measure!r}: scores lie between 0 and 1, so no two differ by more; "
            "write 0.05 for 5 points"
        )
    return margin


def check_margin(margin: Margin | None, measures: Collection[str]) -> None:
    """Raises DataError for a margin of what is not compared: without it the verdict would be another. So does
    `margin_of`, for points in the place of a share."""
    for name in margin if isinstance(margin, Mapping) else ():
        if name not in measures:
            raise DataError(f"margin of {name!r}, which is not compared: {nearest(name, measures)}")
    for measure in measures:
        margin_of(measure, margin)


def figure_words(figure: float, measure: str) -> str:
    """Returns a figure with its unit, as a person reads it; of a score as a percentage."""
    if is_score(measure):
        return f"{_bare(figure, measure)} %"
    return f"{_bare(figure, measure)}{_UNITS.get(measure, '')}"


def interval_words(estimate: Estimate, measure: str) -> str:
    """Returns the ends of an interval with their unit."""
    if not estimate.has_interval:
        return f"none: {estimate.why_none}"
    return f"{_bare(estimate.low, measure)} to {figure_words(estimate.high, measure)}"


def amount(figure: float, measure: str) -> str:
    """Returns a difference without its sign, as a person says it: `5 points`, `1.25 s`."""
    size = abs(figure)
    if is_score(measure):
        return f"{round(100 * size, 1):g} points"
    return figure_words(size, measure)


def _bare(figure: float, measure: str) -> str:
    """Returns a figure without its unit."""
    if is_score(measure):
        return f"{100 * figure:.1f}"
    if measure == "cost":
        # A turn of a cheap model costs a hundredth of a cent.
        digits = 4 if abs(figure) >= 0.001 or figure == 0 else 6
        return f"{figure:,.{digits}f}"
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:,.2f}"


def possible(difference: Estimate, measure: str) -> str:
    """Returns in words which differences an interval leaves possible."""
    low = difference.low
    high = difference.high
    if not isfinite(low) or not isfinite(high):
        return "any difference is possible"
    if low < 0 < high:
        below = amount(low, measure)
        above = amount(high, measure)
        if below == above:
            return f"{above} either way are possible"
        return f"from {below} lower to {above} higher is possible"
    side = "higher"
    if high <= 0:
        side = "lower"
    near, far = sorted((abs(low), abs(high)))
    return f"from {amount(near, measure)} to {amount(far, measure)} {side} is possible"


def sample_words(cases: int | None, count: int, margin: float, measure: str) -> str:
    """Returns how many cases a difference of the margin takes, in words."""
    if cases is None:
        return ""
    if cases <= count:
        return f"a difference of {amount(margin, measure)} would have shown 8 times in 10"
    return f"a difference of {amount(margin, measure)} takes about {cases:,} cases"
