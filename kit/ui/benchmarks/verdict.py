"""Results of a grid in words: which way is better, by how much, how sure that is, and what would settle it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kit.bench.grid.comparison import LOWER, Comparison, Summary
from kit.bench.statistics.verdict import amount, bare, unit
from kit.core.display.count import many
from kit.metrics.estimate import Estimate

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
    more: str
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
        if comparisons:
            rest = headline(comparisons, baseline, kinds, axes)
        else:
            rest = ""
        without = ", ".join(f"**{way}** ({reason})" for way, reason in lost.items())
        return f"There is no verdict on {without}. {rest}".strip()
    if not comparisons and len(ways) == 1:
        line = lines(ways, (), axes)[0]
        sentence = f"By {words(ways[0].scorer)}, **{line.way}** is the only way here ({kinds})"
        return f"{sentence}: {line.value}, 95 % interval {line.interval}; there is nothing to compare it with."
    if refused := [comparison for comparison in comparisons if comparison.verdict == "no verdict"]:
        ways_refused = ", ".join(
            f"**{way_name(one.way, axes)}** ({one.words.removeprefix('no verdict, ')})"
            for one in refused
        )
        return f"By {words(refused[0].scorer)} there is no verdict beside **{baseline}** ({kinds}): {ways_refused}."
    if not comparisons:
        return (
            f"There is nothing to compare with **{baseline}** here: choose another baseline, "
            f"or a run with several ways."
        )
    by = f"By {words(comparisons[0].scorer)}"
    of = many(len(comparisons), "way")
    better = [comparison for comparison in comparisons if comparison.verdict == "better"]
    worse = [comparison for comparison in comparisons if comparison.verdict == "worse"]
    equivalent = [comparison for comparison in comparisons if comparison.verdict == "equivalent"]
    unsettled: list[Comparison] = []
    for comparison in comparisons:
        if comparison.verdict == "cannot tell":
            unsettled.append(comparison)
    if better:
        lead = max(better, key=_gain)
        sentence = f"{by}, **{way_name(lead.way, axes)}** is better than **{baseline}** ({kinds}): {_sides(lead)}"
        return f"{sentence}{_others(len(better), of, 'better')}."
    if worse:
        near = max(worse, key=_gain)
        sentence = f"{by}, no way is shown to be better than **{baseline}** ({kinds}): **{way_name(near.way, axes)}**"
        return f"{sentence} is worse, with {_sides(near)}{_others(len(worse), of, 'worse')}{_rest(unsettled, axes)}."
    if not unsettled:
        near = max(equivalent, key=_gain)
        if len(equivalent) == 1:
            every = f"**{way_name(near.way, axes)}** is"
        else:
            every = f"all {of} are"
        return (
            f"{by}, {every} equivalent to **{baseline}** within {amount(near.margin, near.scorer)} "
            f"({kinds}): {_sides(near)}."
        )
    widest = max(unsettled, key=lambda one: one.difference.high - one.difference.low)
    sentence = f"{by}, it cannot be told which way is better than **{baseline}** ({kinds}):"
    return (
        f"{sentence} for **{way_name(widest.way, axes)}**, with {_sides(widest)}, {_open(widest)}."
    )


def lines(
    ways: Sequence[Summary],
    comparisons: Sequence[Comparison],
    axes: Sequence[str],
    lost: Iterable[str] = (),
) -> list[Line]:
    """Returns every way by one measure with its interval, and its difference from the baseline where it is compared.

    Of the `lost` ways there is nothing but their names."""
    beside: dict[tuple[tuple[str, str], ...], Comparison] = {}
    for comparison in comparisons:
        beside[tuple(sorted(comparison.way.items()))] = comparison
    scored: list[Line] = []
    for way in ways:
        scored.append(_line(way, beside.get(tuple(sorted(way.way.items()))), axes))
    return scored + [Line(way, "–", "–", "", "no verdict", "") for way in lost]


def value(figure: float, measure: str, *, share: bool) -> str:
    """Returns a figure with its unit, as a person reads it."""
    return f"{bare(figure, measure, share=share)}{unit(measure, share=share)}"


def interval(estimate: Estimate, measure: str, *, share: bool) -> str:
    """Returns the ends of an estimate in words, with their unit."""
    if not estimate.has_interval:
        return "too few cases"
    return f"{bare(estimate.low, measure, share=share)} to {value(estimate.high, measure, share=share)}"


def _line(way: Summary, one: Comparison | None, axes: Sequence[str]) -> Line:
    share = way.estimate.is_share
    measure = way.scorer
    figure = value(way.estimate.value, measure, share=share)
    ends = interval(way.estimate, measure, share=share)
    if way.failed:
        figure += f" of the completed, {many(way.failed, 'turn')} failed"
    if way.bounds is not None:
        low, high = (value(end, measure, share=share) for end in way.bounds)
        figure += f": {low} of all, {low} to {high} had they been wrong or right"
    name = way_name(way.way, axes)
    if one is None:
        return Line(name, figure, ends, "", "baseline", "")
    if one.verdict == "no verdict":
        return Line(name, figure, ends, _difference(one), one.verdict, "")
    return Line(name, figure, ends, _difference(one), one.verdict, _cases(one))


def _cases(one: Comparison) -> str:
    if one.settled:
        return "settled"
    if one.cases is None:
        return ""
    return f"about {one.cases:,} for {amount(one.margin, one.scorer)}"


def _sides(one: Comparison) -> str:
    share = one.before.is_share
    after, before = (value(side.value, one.scorer, share=share) for side in (one.after, one.before))
    if one.missing:
        missing = f" ({one.missing})"
    else:
        missing = ""
    return f"{after} against {before}, a difference of {_difference(one)} over {one.difference.n:,} cases{missing}"


def _difference(one: Comparison) -> str:
    share = one.before.is_share
    of = one.difference
    if not of.has_interval:
        return _signed(of.value, one.scorer, share=share) + " (too few cases for an interval)"
    middle, low, high = (
        _signed(end, one.scorer, share=share) for end in (of.value, of.low, of.high)
    )
    return f"{middle}{' points' if share else unit(one.scorer, share=False)} [{low}, {high}]"


def _signed(figure: float, measure: str, *, share: bool) -> str:
    return ("\N{MINUS SIGN}" if figure < 0 else "+") + bare(abs(figure), measure, share=share)


def _gain(one: Comparison) -> float:
    return one.difference.value * (-1 if one.scorer in LOWER else 1)


def _open(one: Comparison) -> str:
    """What the interval leaves possible, and how many cases would tell."""
    return "; ".join(part for part in (one.leaves_possible, one.takes) if part)


def _rest(unsettled: Sequence[Comparison], axes: Sequence[str]) -> str:
    """What is said of the ways that nothing was shown of."""
    if not unsettled:
        return ""
    widest = max(unsettled, key=lambda one: one.difference.high - one.difference.low)
    return f"; of **{way_name(widest.way, axes)}** it cannot be told: {_open(widest)}"


def _others(count: int, of: str, word: str) -> str:
    if count < 2:
        return ""
    return f" ({count} of {of} are {word})"
