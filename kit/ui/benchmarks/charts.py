"""The charts of a grid's results: shares with their intervals, times, and cost against accuracy."""

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

import altair as alt

from kit.bench.grid.comparison import Summary
from kit.bench.statistics.verdict import figure_words
from kit.ui.benchmarks.verdict import way_name, words
from kit.ui.shared.chart import ROW, data_of, draw_chart, palette, row_axis

LINES = ("#7A4FD0", "#D92D20", "#0E8A66", "#8A94A0", "#B54708", "#D29B00", "#2E86DE", "#C11574")
"""Colours of lines, the slowest first. Each can be read on white and on black."""
NEAR = 0.012
"""Dots nearer than this share of both axes are drawn as one, with all their names."""
LAST_TEXT = "to the last text"
FIRST_TEXT = "to the first text"

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
    dots = _dots(ways, axes)
    measures = list(dict.fromkeys(dot.measure for dot in dots))[:2]
    dots = [dot for dot in dots if dot.measure in measures]
    if not dots:
        return
    title = f"Shares with 95 % intervals, {kinds}"
    colours = palette()
    colour = alt.Color("measure:N").scale(domain=measures, range=[colours.bar, colours.error])
    chart = alt.Chart(_data(dots), title=title).encode(
        y=alt.Y("way:O", sort=None, axis=row_axis(labelPadding=8)),
        yOffset=alt.YOffset("measure:N", sort=measures),
        color=colour.legend(orient="top", title=None, labelLimit=300, columns=1),
        tooltip=_tooltip("way", "measure"),
    )
    lowest = int(10 * min(dot.low for dot in dots)) / 10
    x = alt.X(type="quantitative", axis=alt.Axis(format=".0%", tickCount=6, title=kinds))
    x = x.scale(domain=[lowest, 1.01], nice=False)
    interval = chart.mark_rule(strokeWidth=2, opacity=0.6).encode(x=x.field("low"), x2="high:Q")
    point = chart.mark_point(filled=True, size=70, opacity=1).encode(x=x.field("share"))
    figures: list[str] = []
    for dot in dots:
        interval_words = f"{dot.share:.1%} [{dot.low:.1%}, {dot.high:.1%}]"
        figures.append(f"{dot.way}, {dot.measure}: {interval_words}")
    height = ROW * len({dot.way for dot in dots})
    draw_chart(alt.layer(interval, point), height, f"{title}. {'; '.join(figures)}.")


def draw_times(rows: Sequence[Row], axes: Sequence[str], kinds: str) -> None:
    """Draws which share of a way's turns were done after so many seconds; nothing where no turn was timed."""
    times = _times(rows, axes)
    if not times:
        return
    medians = {way: median(parts[LAST_TEXT]) for way, parts in times.items()}
    order = sorted(medians, key=medians.__getitem__, reverse=True)
    title = (
        f"Half of all turns are done after {medians[order[-1]]:.1f} to {medians[order[0]]:.1f} s"
    )
    title += f", {kinds}"
    if len(order) > len(LINES):
        half = len(LINES) // 2
        title += f"; the {half} slowest and {half} fastest of {len(order)}"
        order = [*order[:half], *order[-half:]]
    points: list[dict[str, Any]] = []
    for way in order:
        for part, seconds in times[way].items():
            points += _line(way, part, seconds)
    colour = alt.Color("way:N").scale(domain=order, range=list(LINES[-len(order) :]))
    half_of_all = alt.Chart(data_of([{"done": 0.5}]), title=title).encode(y="done:Q")
    steps = alt.Chart(data_of(points)).encode(
        x=alt.X("seconds:Q", title=f"seconds, {kinds}").scale(nice=False),
        y=alt.Y("done:Q", title="turns done by then", axis=alt.Axis(format="%")),
        color=colour.legend(orient="bottom", title=None, columns=2, labelLimit=320),
        # The first text and the last one are two lines of a way.
        strokeDash=alt.StrokeDash("part:N", sort=[FIRST_TEXT, LAST_TEXT]).legend(
            orient="top", title=None
        ),
        tooltip=["way:N", "part:N"],
    )
    layers = alt.layer(
        half_of_all.mark_rule(strokeDash=[3, 3], color=palette().line),
        steps.mark_line(interpolate="step-after", strokeWidth=1.8),
    )
    figures = "; ".join(f"{way}: {medians[way]:.2f} s" for way in order)
    draw_chart(layers, 12 * ROW, f"{title}. Medians: {figures}.")


def draw_costs(
    ways: Sequence[Summary], rows: Sequence[Row], axes: Sequence[str], kinds: str
) -> None:
    """Draws what each way costs against the first measure that is a share; nothing where none is."""
    dots = _dots(ways, axes)
    if not dots:
        return
    measure = dots[0].measure
    has_prices = all(row["cost"] is not None for row in rows)
    unit = "tokens of a turn, read and written; no price is known"
    if has_prices:
        unit = "dollars for 1,000 turns"
    costs = _costs(rows, axes, has_prices)
    dots = [dot._replace(cost=costs[dot.way]) for dot in dots if dot.measure == measure]
    title = f"Cost against accuracy with its 95 % interval, {kinds}"
    colours = palette()
    points: list[dict[str, Any]] = []
    distinct_dots = _merge(dots)
    for number, dot in enumerate(distinct_dots, 1):
        fill = colours.bar
        if any(_beats(rival, dot) for rival in distinct_dots):
            fill = colours.line
        label = f"{number}  {dot.way}"
        points.append({**dot._asdict(), "number": number, "label": label, "fill": fill})
    colour = alt.Color("label:N", sort=None).scale(
        domain=[point["label"] for point in points], range=[point["fill"] for point in points]
    )
    chart = alt.Chart(data_of(points), title=title).encode(
        x=alt.X("cost:Q", title=f"{unit} ({kinds})").scale(zero=True),
        color=colour.legend(
            orient="bottom",
            columns=2,
            labelLimit=320,
            titleLimit=320,
            title="blue: none is both cheaper and better",
        ),
        tooltip=_tooltip("way", "cost"),
    )
    lowest = max(0.0, min(dot.low for dot in dots) - 0.04)
    y = alt.Y(type="quantitative", title=measure, axis=alt.Axis(format=".0%"))
    y = y.scale(domain=[lowest, 1.02], nice=False)
    number_mark = chart.mark_text(fontSize=11, fontWeight="bold").encode(
        y=y.field("share"), text="number:N", color=alt.value("white")
    )
    layers = alt.layer(
        chart.mark_rule(strokeWidth=2).encode(y=y.field("low"), y2="high:Q"),
        chart.mark_point(filled=True, size=320, opacity=1).encode(y=y.field("share")),
        number_mark,
    )
    figures: list[str] = []
    for dot in dots:
        figures.append(f"{dot.way}: {figure_words(dot.share, measure)} at {dot.cost:,.2f}")
    draw_chart(layers, 12 * ROW, f"{title}. {measure} at {unit}: {'; '.join(figures)}.")


def _data(dots: Sequence[_Dot]) -> alt.InlineData:
    return data_of([dot._asdict() for dot in dots])


def _tooltip(*fields: str) -> list[alt.Tooltip]:
    """Returns what a mark says where a reader rests on it: these fields, the share and its interval."""
    tooltips = [alt.Tooltip(field, type="nominal") for field in fields]
    for field in ("share", "low", "high"):
        tooltips.append(alt.Tooltip(field, type="quantitative", format=".1%"))
    return tooltips


def _dots(ways: Sequence[Summary], axes: Sequence[str]) -> list[_Dot]:
    dots: list[_Dot] = []
    for way in ways:
        share = way.estimate
        if share.is_share:
            name = way_name(way.way, axes)
            dots.append(_Dot(name, words(way.scorer), share.value, share.low, share.high))
    return dots


def _times(rows: Sequence[Row], axes: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Returns way -> part of a turn -> seconds. Ways that took the same time turn by turn get one
    line with all their names: they would lie on one another."""
    by_way: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.get("seconds") is None:
            continue
        parts = by_way.setdefault(way_name(row, axes), {LAST_TEXT: []})
        parts[LAST_TEXT].append(row["seconds"])
        if row["ttft"] is not None:
            parts.setdefault(FIRST_TEXT, []).append(row["ttft"])
    alike: list[tuple[list[str], dict[str, list[float]]]] = []
    for way, parts in by_way.items():
        for names, other_parts in alike:
            if other_parts == parts:
                names.append(way)
                break
        else:
            alike.append(([way], parts))
    return {", ".join(names): parts for names, parts in alike}


def _line(way: str, part: str, seconds: Sequence[float]) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for rank, second in enumerate(sorted(seconds), 1):
        points.append({"way": way, "part": part, "seconds": second, "done": rank / len(seconds)})
    return points


def _costs(rows: Sequence[Row], axes: Sequence[str], has_prices: bool) -> dict[str, float]:
    """Returns way -> the mean of what its turns cost: dollars for a thousand like it, else tokens."""
    costs: dict[str, list[float]] = {}
    for row in rows:
        cost = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
        if has_prices:
            cost = 1000 * row["cost"]
        costs.setdefault(way_name(row, axes), []).append(cost)
    return {way: mean(each) for way, each in costs.items()}


def _merge(dots: Sequence[_Dot]) -> list[_Dot]:
    """Returns the dots from the cheapest on; those that would lie on one another are one."""
    widest = max(dot.cost for dot in dots) or 1.0
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
