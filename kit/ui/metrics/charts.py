"""The charts of the page Metrics: turns and plans over time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import altair as alt

from kit.metrics.plan_alerts import LEAST_SUCCESS
from kit.metrics.plan_health import SuccessPoint
from kit.ui.metrics.over_time import TurnPoint
from kit.ui.shared.chart import data_of, draw_chart, palette


def draw_success(points: Sequence[SuccessPoint], title: str) -> None:
    """Draws the share of plans that succeeded over time, and where the alert begins. A stretch without
    plans is a gap."""
    colours = palette()
    rows: list[dict[str, Any]] = []
    words: list[str] = []
    for point in points:
        share = None
        if point.success.n:
            share = point.success.value
            moment = datetime.fromtimestamp(point.at).strftime("%d %b %H:%M")
            words.append(f"{moment}: {share:.0%} of {point.success.n}")
        rows.append({"at": 1000 * point.at, "share": share, "of": point.success.basis})
    x = alt.X("at:T", title=None, axis=alt.Axis(tickCount=6, grid=False))
    y = alt.Y(
        "share:Q",
        title=None,
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
    )
    chart = alt.Chart(data_of(rows), title=title).encode(x=x, y=y)
    line = chart.mark_line(color=colours.bar, strokeWidth=2)
    dots = chart.mark_point(filled=True, size=50, opacity=1, color=colours.bar)
    limit = alt.Chart(data_of([{"share": LEAST_SUCCESS}])).mark_rule(
        color=colours.error, strokeDash=[4, 4]
    )
    layers = alt.layer(limit.encode(y=y), line, dots.encode(tooltip=["of:N"]))
    draw_chart(layers, 180, f"{title}. {', '.join(words)}")


def draw_endings(points: Sequence[TurnPoint]) -> None:
    """Draws how many turns ended how, a line each."""
    names = {"whole": "answered", "partly": "answered in part", "unanswered": "not answered"}
    rows: list[dict[str, Any]] = []
    for point in points:
        counts = point.model_dump(include=set(names))
        for field, name in names.items():
            rows.append({"at": 1000 * point.at, "line": name, "value": counts[field]})
    _draw_lines(rows, list(names.values()), "Turns over time, by how they ended", "d")


def draw_times(points: Sequence[TurnPoint]) -> None:
    """Draws the seconds of whole turns, the median and the slowest in twenty."""
    rows: list[dict[str, Any]] = []
    for point in points:
        for name, value in (("p50", point.p50), ("p95", point.p95)):
            rows.append({"at": 1000 * point.at, "line": name, "value": value})
    _draw_lines(rows, ["p50", "p95"], "Seconds of a whole turn over time", ".2f")


def _draw_lines(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], title: str, digits: str
) -> None:
    """Draws a line for each name; they differ in dashes and shape as well as in colour."""
    colours = palette()
    shades = [colours.bar, colours.late, colours.error][: len(names)]
    legend = alt.Legend(orient="top", title=None)
    chart = alt.Chart(data_of(rows), title=title).encode(
        x=alt.X("at:T", title=None, axis=alt.Axis(tickCount=5, grid=False)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=4)),
        color=alt.Color("line:N").scale(domain=names, range=shades).legend(legend),
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip("value:Q", format=digits)],
    )
    # The dashes are of the lines alone: around the shapes of the legend they look torn.
    dashes = alt.StrokeDash("line:N").scale(domain=names).legend(None)
    shapes = alt.Shape("line:N").scale(domain=names).legend(legend)
    line = chart.mark_line(strokeWidth=2).encode(strokeDash=dashes)
    points = chart.mark_point(filled=True, size=45, opacity=1).encode(shape=shapes)
    layers = alt.layer(line, points).resolve_scale(strokeDash="independent")
    words: list[str] = []
    for name in names:
        values = [row["value"] for row in rows if row["line"] == name and row["value"] is not None]
        if values:
            words.append(f"{name}: {min(values):{digits}} to {max(values):{digits}}")
    draw_chart(layers, 190, f"{title}. {', '.join(words)}")
