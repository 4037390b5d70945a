"""Results of a grid in words: which way is better, by how much, how sure that is, and what would settle it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from kit.bench.grid.comparison import LOWER, Comparison, Summary
from kit.bench.statistics.verdict import amount, difference_words, figure_words, interval_words
from kit.core.display.count import many

WORDS = {
    "exact": "messages routed exactly right",
    "mixed_exact": "mixed messages routed whole",
    "single_exact": "single requests routed right",
    "strict": "each called with its own part",
    "seconds": "seconds of a turn",
    "ttft": "seconds to the first words",
    "routing_seconds": "seconds to decide whom to ask",
    "input_tokens": "tokens read in a turn",
    "output_tokens": "tokens written in a turn",
    "model_calls": "model calls of a turn",
    "cost": "dollars of a turn",
    "hops": "calls to peers",
    "hop_bytes": "bytes to and from peers",
    "hop_ms": "milliseconds that calls to peers took beside the peers' work",
    "peer_seconds": "seconds that peers worked",
    "peer_cost": "dollars that peers spent",
}
"""Scorer or measure -> what it counts."""
NONE_LOST: Mapping[str, str] = MappingProxyType({})


class Line(NamedTuple):
    """A row of the table: one way by one measure."""

    way: str
    value: str
    interval: str
    difference: str
    """Beside the baseline; empty for the baseline itself."""
    verdict: str
    cases_needed: str
    """How many cases a difference worth knowing takes, or that none are needed."""


def way_name(way: Mapping[str, str], axes: Sequence[str]) -> str:
    """Returns the name of a way: its values on the axes on which ways differ."""
    return " / ".join(way[axis] for axis in axes) or " / ".join(way.values())


def words(measure: str) -> str:
    """Returns in words what a measure counts."""
    return WORDS.get(measure, measure.replace("_", " "))


def headline(
    comparisons: Sequence[Comparison],
    baseline: str,
    kinds: str,
    axes: Sequence[str],
    ways: Sequence[Summary] = (),
    lost: Mapping[str, str] = NONE_LOST,
) -> str:
    """Returns the verdict on one measure as a sentence of markdown. `comparisons`: every way
    against the baseline by that measure; `ways`: each by itself; `lost`: ways that nothing was
    scored of, and why."""
    if lost:
        without = ", ".join(f"**{name}** ({reason})" for name, reason in lost.items())
        sentence = f"There is no verdict on {without}."
        if comparisons:
            sentence += f" {headline(comparisons, baseline, kinds, axes)}"
        return sentence
    if not comparisons and len(ways) == 1:
        line = lines(ways, (), axes)[0]
        sentence = f"By {words(ways[0].scorer)}, **{line.way}** is the only way here ({kinds})"
        return f"{sentence}: {line.value}, 95 % interval {line.interval}; there is nothing to compare it with."
    if not comparisons:
        return (
            f"There is nothing to compare with **{baseline}** here: choose another baseline, "
            f"or a run with several ways."
        )
    by = f"By {words(comparisons[0].scorer)}"
    by_verdict: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_verdict.setdefault(comparison.verdict, []).append(comparison)
    refused = by_verdict.get("no verdict", [])
    if refused:
        reasons = ", ".join(map(partial(_refusal, axes=axes), refused))
        return f"{by} there is no verdict beside **{baseline}** ({kinds}): {reasons}."
    total = many(len(comparisons), "way")
    better = by_verdict.get("better", [])
    worse = by_verdict.get("worse", [])
    unsettled = by_verdict.get("cannot tell", [])
    if better:
        best = max(better, key=_gain)
        sentence = (
            f"{by}, {_name(best, axes)} is better than **{baseline}** ({kinds}): {_sides(best)}"
        )
        return f"{sentence}{_how_many(better, total)}."
    if worse:
        nearest = max(worse, key=_gain)
        sentence = f"{by}, no way is shown to be better than **{baseline}** ({kinds}): {_name(nearest, axes)}"
        sentence += f" is worse, with {_sides(nearest)}{_how_many(worse, total)}"
        if unsettled:
            widest = max(unsettled, key=_width)
            sentence += f"; of {_name(widest, axes)} it cannot be told: {_open(widest)}"
        return f"{sentence}."
    if unsettled:
        widest = max(unsettled, key=_width)
        sentence = f"{by}, it cannot be told which way is better than **{baseline}** ({kinds}):"
        return f"{sentence} for {_name(widest, axes)}, with {_sides(widest)}, {_open(widest)}."
    nearest = max(comparisons, key=_gain)
    subject = f"all {total} are"
    if len(comparisons) == 1:
        subject = f"{_name(nearest, axes)} is"
    margin = amount(nearest.margin, nearest.scorer)
    return f"{by}, {subject} equivalent to **{baseline}** within {margin} ({kinds}): {_sides(nearest)}."


def lines(
    ways: Sequence[Summary],
    comparisons: Sequence[Comparison],
    axes: Sequence[str],
    lost: Iterable[str] = (),
) -> list[Line]:
    """Returns every way by one measure with its interval, and its difference from the baseline where it is compared.

    Of the `lost` ways there is nothing but their names."""
    by_way: dict[tuple[tuple[str, str], ...], Comparison] = {}
    for comparison in comparisons:
        by_way[_key(comparison.way)] = comparison
    scored_lines = [_line(summary, by_way.get(_key(summary.way)), axes) for summary in ways]
    return scored_lines + [Line(name, "–", "–", "", "no verdict", "") for name in lost]


def _key(way: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(way.items()))


def _line(summary: Summary, comparison: Comparison | None, axes: Sequence[str]) -> Line:
    measure = summary.scorer
    figure = figure_words(summary.estimate.value, measure)
    ends = interval_words(summary.estimate, measure)
    if summary.failed:
        figure += f" of the completed, {many(summary.failed, 'turn')} failed"
    if summary.bounds is not None:
        # A turn that failed is no sample: had all of them been wrong, or right, this is how far the figure could go.
        low, high = (figure_words(bound, measure) for bound in summary.bounds)
        figure += f": {low} of all, {low} to {high} had they been wrong or right"
    name = way_name(summary.way, axes)
    if comparison is None:
        return Line(name, figure, ends, "", "baseline", "")
    difference = difference_words(comparison.difference, measure)
    return Line(name, figure, ends, difference, comparison.verdict, _cases(comparison))


def _cases(comparison: Comparison) -> str:
    if comparison.settled:
        return "settled"
    if comparison.cases is None or comparison.verdict == "no verdict":
        return ""
    return f"about {comparison.cases:,} for {amount(comparison.margin, comparison.scorer)}"


def _name(comparison: Comparison, axes: Sequence[str]) -> str:
    return f"**{way_name(comparison.way, axes)}**"


def _refusal(comparison: Comparison, axes: Sequence[str]) -> str:
    return f"{_name(comparison, axes)} ({comparison.words.removeprefix('no verdict, ')})"


def _sides(comparison: Comparison) -> str:
    measure = comparison.scorer
    figure = figure_words(comparison.after.value, measure)
    baseline = figure_words(comparison.before.value, measure)
    difference = difference_words(comparison.difference, measure)
    cases = f"{comparison.difference.n:,} cases"
    if comparison.missing:
        cases += f" ({comparison.missing})"
    return f"{figure} against {baseline}, a difference of {difference} over {cases}"


def _gain(comparison: Comparison) -> float:
    if comparison.scorer in LOWER:
        return -comparison.difference.value
    return comparison.difference.value


def _width(comparison: Comparison) -> float:
    return comparison.difference.high - comparison.difference.low


def _open(comparison: Comparison) -> str:
    """Says what the interval leaves possible, and how many cases would tell."""
    return "; ".join(filter(None, (comparison.leaves_possible, comparison.takes)))


def _how_many(comparisons: Sequence[Comparison], total: str) -> str:
    if len(comparisons) < 2:
        return ""
    return f" ({len(comparisons)} of {total} are {comparisons[0].verdict})"
