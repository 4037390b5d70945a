"""The charts of a grid's results: shares with their intervals, times, and cost against accuracy."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import altair as alt

from kit.bench.grid.comparison import Summary
from kit.ui.benchmarks.verdict import value, way_name, words
from kit.ui.shared.chart import ROW, data_of, draw_chart, palette, row_axis

LINES = ("#7A4FD0", "#D92D20", "#0E8A66", "#8A94A0", "#B54708", "#D29B00", "#2E86DE", "#C11574")
"""Colours of lines, the slowest first. Each can be read on white and on black."""
NEAR = 0.012
"""Dots nearer than this share of both axes are drawn as one, with all their names."""

Row = Mapping[str, Any]


class _Dot(NamedTuple):
    """A way by one measure, with the ends of its interval; `cost` is what it costs."""

    way: str
    measure: str
    share: float
    low: float
    high: float
    cost: float = 0.0


def draw_shares(ways: Sequence[Summary], axes: Sequence[str], kinds: str) -> None:
    """Draws each way's share with its interval, of the first two measures that are shares; nothing where none is."""
    shares = [way for way in ways if way.estimate.is_share]
    measures = list(dict.fromkeys(words(way.scorer) for way in shares))[:2]
    dots = [dot for dot in _dots(shares, axes) if dot.measure in measures]
    if not dots:
        return
    title = f"Shares with 95 % intervals, {kinds}"
    colours = palette()
    lowest = int(10 * min(dot.low for dot in dots)) / 10
    colour = (
        alt.Color("measure:N")
        .scale(domain=measures, range=[colours.bar, colours.error])
        .legend(orient="top", title=None, labelLimit=300, columns=1)
    )
    chart = alt.Chart(data_of([dot._asdict() for dot in dots]), title=title).encode(
        y=alt.Y("way:O", sort=None, axis=row_axis(labelPadding=8)),
        yOffset=alt.YOffset("measure:N", sort=measures),
        color=colour,
        tooltip=_tooltip("way", "measure") + _percentages("share", "low", "high"),
    )
    x = alt.X(axis=alt.Axis(format=".0%", tickCount=6, title=kinds))
    x = x.scale(domain=[lowest, 1.01], nice=False).type("quantitative")
    interval = chart.mark_rule(strokeWidth=2, opacity=0.6).encode(x=x.field("low"), x2="high:Q")
    dot = chart.mark_point(filled=True, size=70, opacity=1).encode(x=x.field("share"))
    figures = "; ".join(
        f"{dot.way}, {dot.measure}: {dot.share:.1%} [{dot.low:.1%}, {dot.high:.1%}]" for dot in dots
    )
    names = {dot.way for dot in dots}
    draw_chart(alt.layer(interval, dot), ROW * len(names), f"{title}. {figures}.")


def draw_times(rows: Sequence[Row], axes: Sequence[str], kinds: str) -> None:
    """Draws which share of a way's turns were done after so many seconds; nothing where no turn was timed."""
    timed_rows = [row for row in rows if row.get("seconds") is not None]
    times = _join_alike(timed_rows, axes)
    if not times:
        return
    order = sorted(times, key=lambda way: -median(times[way]["to the last text"]))
    half = len(LINES) // 2
    visible = order
    extract = ""
    if len(order) > len(LINES):
        visible = [*order[:half], *order[-half:]]
        extract = f"; the {half} slowest and {half} fastest of {len(order)}"
    slowest = median(times[order[0]]["to the last text"])
    fastest = median(times[order[-1]]["to the last text"])
    title = f"Half of all turns are done after {fastest:.1f} to {slowest:.1f} s, {kinds}{extract}"
    medians = "; ".join(f"{way}: {median(times[way]['to the last text']):.2f} s" for way in visible)
    lines = [_line(way, part, seconds) for way in visible for part, seconds in times[way].items()]
    points = [point for line in lines for point in line]
    parts = sorted({point["part"] for point in points})
    colour = (
        alt.Color("way:N")
        .scale(domain=visible, range=list(LINES[-len(visible) :]))
        .legend(orient="bottom", title=None, columns=2, labelLimit=320)
    )
    half_of_all = (
        alt.Chart(data_of([{"done": 0.5}]), title=title)
        .mark_rule(strokeDash=[3, 3], color=palette().line)
        .encode(y="done:Q")
    )
    steps = (
        alt.Chart(data_of(points))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=alt.X("seconds:Q", title=f"seconds, {kinds}").scale(nice=False),
            y=alt.Y("done:Q", title="turns done by then", axis=alt.Axis(format="%")),
            color=colour,
            # The first text and the last one are two lines of a way.
            strokeDash=alt.StrokeDash("part:N", sort=parts).legend(orient="top", title=None),
            tooltip=_tooltip("way", "part"),
        )
    )
    draw_chart(alt.layer(half_of_all, steps), 12 * ROW, f"{title}. Medians: {medians}.")


def draw_costs(
    ways: Sequence[Summary], rows: Sequence[Row], axes: Sequence[str], kinds: str
) -> None:
    """Draws what each way costs against the first measure that is a share; nothing where none is."""
    shares = [way for way in ways if way.estimate.is_share]
    if not shares:
        return
    measure = shares[0].scorer
    has_prices = all(row["cost"] is not None for row in rows)
    costs = {way: sum(each) / len(each) for way, each in _costs(rows, axes, has_prices).items()}
    dots = [
        dot._replace(cost=costs[dot.way])
        for dot in _dots(shares, axes)
        if dot.measure == words(measure)
    ]
    unit = "tokens of a turn, read and written; no price is known"
    if has_prices:
        unit = "dollars for 1,000 turns"
    title = f"Cost against accuracy with its 95 % interval, {kinds}"
    points = _merge(dots)
    colours = palette()
    best = [point for point in points if not any(_beats(rival, point) for rival in points)]
    numbered = [
        {**point._asdict(), "number": number, "label": f"{number}  {point.way}"}
        for number, point in enumerate(points, 1)
    ]
    fills = [colours.bar if point in best else colours.line for point in points]
    colour = (
        alt.Color("label:N", sort=None)
        .scale(domain=[row["label"] for row in numbered], range=fills)
        .legend(
            orient="bottom",
            columns=2,
            labelLimit=320,
            titleLimit=320,
            title="blue: none is both cheaper and better",
        )
    )
    lowest = max(0.0, min(dot.low for dot in dots) - 0.04)
    y = alt.Y(title=words(measure), axis=alt.Axis(format=".0%")).type("quantitative")
    y = y.scale(domain=[lowest, 1.02], nice=False)
    chart = alt.Chart(data_of(numbered), title=title).encode(
        x=alt.X("cost:Q", title=f"{unit} ({kinds})").scale(zero=True), color=colour
    )
    interval = chart.mark_rule(strokeWidth=2).encode(y=y.field("low"), y2="high:Q")
    dot = chart.mark_point(filled=True, size=320, opacity=1).encode(
        y=y.field("share"), tooltip=_tooltip("way", "cost") + _percentages("share", "low", "high")
    )
    number = chart.mark_text(fontSize=11, fontWeight="bold").encode(
        y=y.field("share"), text="number:N", color=alt.value("white")
    )
    figures = "; ".join(
        f"{dot.way}: {value(dot.share, measure, share=True)} at {dot.cost:,.2f}" for dot in dots
    )
    draw_chart(
        alt.layer(interval, dot, number),
        12 * ROW,
        f"{title}. {words(measure)} at {unit}: {figures}.",
    )


def _tooltip(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(field, type="nominal") for field in fields]


def _percentages(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(field, type="quantitative", format=".1%") for field in fields]


def _dots(shares: Sequence[Summary], axes: Sequence[str]) -> list[_Dot]:
    dots: list[_Dot] = []
    for way in shares:
        share = way.estimate
        name = way_name(way.way, axes)
        dots.append(_Dot(name, words(way.scorer), share.value, share.low, share.high))
    return dots


def _join_alike(rows: Sequence[Row], axes: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Returns way -> part of a turn -> seconds. Ways that took the same time turn by turn get one
    line with all their names: they would lie on one another."""
    by_way: dict[str, list[tuple[float | None, float]]] = {}
    for row in rows:
        by_way.setdefault(way_name(row, axes), []).append((row["ttft"], row["seconds"]))
    alike: dict[tuple[tuple[float | None, float], ...], list[str]] = {}
    for way, timings in by_way.items():
        alike.setdefault(tuple(timings), []).append(way)
    times: dict[str, dict[str, list[float]]] = {}
    for timings, names in alike.items():
        first_texts = [first for first, _ in timings if first is not None]
        parts = {"to the last text": [seconds for _, seconds in timings]}
        if first_texts:
            parts["to the first text"] = first_texts
        times[", ".join(names)] = parts
    return times


def _line(way: str, part: str, seconds: Sequence[float]) -> list[dict[str, Any]]:
    count = len(seconds)
    return [
        {"way": way, "part": part, "seconds": second, "done": rank / count}
        for rank, second in enumerate(sorted(seconds), 1)
    ]


def _costs(rows: Sequence[Row], axes: Sequence[str], has_prices: bool) -> dict[str, list[float]]:
    """Returns way -> what each of its turns cost: dollars for a thousand like it, else tokens."""
    costs: dict[str, list[float]] = {}
    for row in rows:
        cost = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
        if has_prices:
            cost = 1000 * row["cost"]
        costs.setdefault(way_name(row, axes), []).append(cost)
    return costs


def _merge(dots: Sequence[_Dot]) -> list[_Dot]:
    """Returns the dots from the cheapest on; those that would lie on one another are one."""
    widest = max((dot.cost for dot in dots), default=0.0) or 1.0
    distinct_dots: list[_Dot] = []
    for dot in sorted(dots, key=lambda dot: (dot.cost, dot.share)):
        for number, rival in enumerate(distinct_dots):
            near = abs(rival.cost - dot.cost) < NEAR * widest
            if near and abs(rival.share - dot.share) < NEAR / 2:
                distinct_dots[number] = rival._replace(way=f"{rival.way}, {dot.way}")
                break
        else:
            distinct_dots.append(dot)
    return distinct_dots


def _beats(rival: _Dot, dot: _Dot) -> bool:
    """Whether a dot costs no more than another and is right no less often, and is better in one of both."""
    no_worse = rival.cost <= dot.cost and rival.share >= dot.share
    return no_worse and (rival.cost, rival.share) != (dot.cost, dot.share)
