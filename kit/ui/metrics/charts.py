"""The charts of the page Metrics: turns and plans over time, a line for each figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from kit.metrics.plan_alerts import LEAST_SUCCESS
from kit.metrics.plan_health import SuccessPoint
from kit.ui.metrics.over_time import TurnPoint

COLOURS = ("#2F7DE1", "#C8701A", "#7A8694")
"""Of the lines in order: blue, orange and grey are told apart by everybody, on light and dark ground."""


def draw_success(points: Sequence[SuccessPoint]) -> None:
    """Draws the share of plans that succeeded over time, and where the alert begins. A stretch without
    plans is a gap."""
    shares: list[float | None] = []
    for point in points:
        shares.append(point.success.value if point.success.n else None)
    lines = {"done": shares, "alert": [LEAST_SUCCESS] * len(points)}
    title = f"Plans done as planned; alert below {LEAST_SUCCESS:.0%}"
    _draw_lines([point.at for point in points], lines, title, ".0%")


def draw_endings(points: Sequence[TurnPoint]) -> None:
    """Draws how many turns ended how, a line each."""
    lines = {
        "answered": [point.whole for point in points],
        "answered in part": [point.partly for point in points],
        "not answered": [point.unanswered for point in points],
    }
    times = [point.at for point in points]
    _draw_lines(times, lines, "Turns over time, by how they ended", "d")


def draw_times(points: Sequence[TurnPoint]) -> None:
    """Draws the seconds of whole turns, the median and the slowest in twenty."""
    lines = {"p50": [point.p50 for point in points], "p95": [point.p95 for point in points]}
    times = [point.at for point in points]
    _draw_lines(times, lines, "Seconds of a whole turn over time", ".2f")


def _draw_lines(
    times: Sequence[float],
    lines: Mapping[str, Sequence[float | None]],
    title: str,
    digits: str,
) -> None:
    """Draws lines over `times`, in seconds since the epoch; `digits` is how their values are written."""
    # It takes a second to import: the rest of the page does not wait for it.
    import altair as alt

    rows: list[dict[str, Any]] = []
    words: list[str] = []
    for name, line in lines.items():
        values = [value for value in line if value is not None]
        if values:
            words.append(f"{name}: {min(values):{digits}} to {max(values):{digits}}")
        for at, value in zip(times, line, strict=True):
            rows.append({"at": 1000 * at, "line": name, "value": value})
    colour = alt.Color("line:N").scale(domain=list(lines), range=list(COLOURS[: len(lines)]))
    # Streamlit's own chart of lines holds marks without a name, which a screen reader stumbles over.
    chart = (
        alt.Chart(alt.InlineData(values=rows), title=title, height=280)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=45))
        .encode(
            x=alt.X("at:T", title=None),
            y=alt.Y("value:Q", title=None),
            color=colour.legend(orient="top", title=None),
            tooltip=[alt.Tooltip("line:N"), alt.Tooltip("value:Q", format=digits)],
        )
    )
    st.altair_chart(chart, alt=f"{title}. {', '.join(words)}")
