"""Results of a grid in words: which way is better, by how much, how sure that is, and what would settle it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kit.bench.grid.comparison import LOWER, Comparison, Summary
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
_UNITS = {
    "seconds": " s",
    "ttft": " s",
    "routing_seconds": " s",
    "cost": " $",
    "hop_ms": " ms",
    "peer_seconds": " s",
    "peer_cost": " $",
}


class Line(NamedTuple):
    """A row of the table: one way by one measure."""

    way: str
    value: str
    interval: str
    difference: str
    """Beside the baseline; empty for the baseline itself."""
    verdict: str
    more: str
    """How many more cases would settle it."""


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
        rest = headline(comparisons, baseline, kinds, axes) if comparisons else ""
        without = ", ".join(f"**{way}** ({reason})" for way, reason in lost.items())
        return f"There is no verdict on {without}. {rest}".strip()
    if not comparisons and len(ways) == 1:
        line = lines(ways, (), axes)[0]
        sentence = f"By {words(ways[0].scorer)}, **{line.way}** is the only way here ({kinds})"
        return f"{sentence}: {line.value}, 95 % interval {line.interval}; there is nothing to compare it with."
    if refused := [one for one in comparisons if one.obstacle]:
        ways_refused = ", ".join(
            f"**{way_name(one.way, axes)}** ({one.obstacle})" for one in refused
        )
        return f"By {words(refused[0].scorer)} there is no verdict beside **{baseline}** ({kinds}): {ways_refused}."
    if not comparisons:
        return (
            f"There is nothing to compare with **{baseline}** here: choose another baseline, "
            f"or a run with several ways."
        )
    better, worse = (
        [one for one in comparisons if one.verdict == verdict] for verdict in ("better", "worse")
    )
    open_ = sorted((one for one in comparisons if one.more), key=lambda one: one.more or 0)
    by, of = (
        f"By {words(comparisons[0].scorer)}",
        f"{len(comparisons)} way{'s' if len(comparisons) > 1 else ''}",
    )
    if better:
        lead = max(better, key=_gain)
        sentence = f"{by}, **{way_name(lead.way, axes)}** is better than **{baseline}** ({kinds}): {_sides(lead)}"
        return f"{sentence}; settled, no more cases are needed{_others(len(better), of, 'better')}."
    if worse:
        near = max(worse, key=_gain)
        sentence = f"{by}, no way is better than **{baseline}** ({kinds}): **{way_name(near.way, axes)}** is worse"
        return f"{sentence}, with {_sides(near)}; {_settling(open_, axes)}{_others(len(worse), of, 'worse')}."
    if open_:
        near = open_[0]
        sentence = f"{by}, no way can be told apart from **{baseline}** yet ({kinds}): nearest to a verdict is"
        sentence += f" **{way_name(near.way, axes)}**, with {_sides(near)}"
        return f"{sentence}; about {near.more:,} more cases like these would settle it."
    return (
        f"{by}, no way differs from **{baseline}** ({kinds}): {_sides(comparisons[0])}; no "
        f"number of cases would show more."
    )


def lines(
    ways: Sequence[Summary],
    comparisons: Sequence[Comparison],
    axes: Sequence[str],
    lost: Iterable[str] = (),
) -> list[Line]:
    """Returns every way by one measure with its interval, and its difference from the baseline where it is compared.

    Of the `lost` ways there is nothing but their names."""
    beside = {tuple(sorted(one.way.items())): one for one in comparisons}
    scored = [_line(way, beside.get(tuple(sorted(way.way.items()))), axes) for way in ways]
    return scored + [Line(way, "–", "–", "", "no verdict", "") for way in lost]


def value(figure: float, measure: str, *, share: bool) -> str:
    """Returns a figure with its unit, as a person reads it."""
    return f"{_bare(figure, measure, share=share)}{_unit(measure, share=share)}"


def interval(estimate: Estimate, measure: str, *, share: bool) -> str:
    """Returns the ends of an estimate in words, with their unit."""
    return f"{_bare(estimate.low, measure, share=share)} to {value(estimate.high, measure, share=share)}"


def _bare(figure: float, measure: str, *, share: bool) -> str:
    if share:
        return f"{100 * figure:.1f}"
    if measure == "cost":
        return f"{figure:,.4f}"
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:,.2f}"


def _unit(measure: str, *, share: bool) -> str:
    return " %" if share else _UNITS.get(measure, "")


def _line(way: Summary, one: Comparison | None, axes: Sequence[str]) -> Line:
    share, measure = way.estimate.is_share, way.scorer
    figure, ends = (
        value(way.estimate.value, measure, share=share),
        interval(way.estimate, measure, share=share),
    )
    if way.failed:
        figure += f" of the completed, {many(way.failed, 'turn')} failed"
    if way.bounds is not None:
        low, high = (value(end, measure, share=share) for end in way.bounds)
        figure += f": {low} of all, {low} to {high} had they been wrong or right"
    name = way_name(way.way, axes)
    if one is None:
        return Line(name, figure, ends, "", "baseline", "")
    if one.obstacle:
        return Line(name, figure, ends, _difference(one), one.verdict, "")
    more = "settled" if one.more == 0 else f"about {one.more:,}" if one.more else "no number"
    return Line(name, figure, ends, _difference(one), one.verdict, more)


def _sides(one: Comparison) -> str:
    share = one.before.is_share
    after, before = (value(side.value, one.scorer, share=share) for side in (one.after, one.before))
    return f"{after} against {before}, a difference of {_difference(one)} over {one.difference.n:,} cases"


def _difference(one: Comparison) -> str:
    share, of = one.before.is_share, one.difference
    middle, low, high = (
        _signed(end, one.scorer, share=share) for end in (of.value, of.low, of.high)
    )
    return f"{middle}{' points' if share else _unit(one.scorer, share=False)} [{low}, {high}]"


def _signed(figure: float, measure: str, *, share: bool) -> str:
    return ("\N{MINUS SIGN}" if figure < 0 else "+") + _bare(abs(figure), measure, share=share)


def _gain(one: Comparison) -> float:
    return one.difference.value * (-1 if one.scorer in LOWER else 1)


def _settling(open_: Sequence[Comparison], axes: Sequence[str]) -> str:
    if not open_:
        return "settled, no more cases are needed"
    return (
        f"about {open_[0].more:,} more cases like these would settle {way_name(open_[0].way, axes)}"
    )


def _others(count: int, of: str, word: str) -> str:
    return f" ({count} of {of} {'is' if count == 1 else 'are'} {word})" if count > 1 else ""
