"""The charts of the pages: one look for all of them, in light and dark, drawn by altair.

altair takes a second to import, so a page imports this module, and those that build on it, only
where it draws a chart.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import streamlit as st

from kit.core.value import Value

COLOURS = {"turn": "#6B7684", "agent": "#0F62C9", "model": "#7A4FD0", "tool": "#0E8A66"}
"""Span kind -> fill; red is kept for errors."""
Layers = alt.LayerChart | alt.FacetChart
"""What altair makes of layers."""
ROW = 26
"""Pixels of a row with a bar."""


class Palette(Value):
    """The colours of one theme."""

    text: str
    muted: str
    line: str
    bar: str
    late: str
    error: str


LIGHT = Palette(
    text="#17202B",
    muted="#5B6675",
    line="#7B8794",
    bar=COLOURS["agent"],
    late=COLOURS["model"],
    error="#D92D20",
)
DARK = Palette(
    text="#E6EBF1",
    muted="#A3AEBB",
    line="#6C7A8A",
    bar="#6EA8FE",
    late="#B69CF5",
    error="#FF7A70",
)


def palette() -> Palette:
    """Returns the colours of the visitor's theme."""
    if st.context.theme.type == "dark":
        return DARK
    return LIGHT


def data_of(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Returns rows as the data of a chart or of one of its layers."""
    return alt.InlineData(values=[dict(row) for row in rows])


def row_axis(*, limit: int = 150, **settings: Any) -> alt.Axis:
    """Returns the axis of a chart with one name a row: every name is there, however many there are."""
    return alt.Axis(
        title=None,
        ticks=False,
        domain=False,
        grid=False,
        labelOverlap=False,
        labelLimit=limit,
        **settings,
    )


def draw_chart(chart: Layers, height: int, alternative: str) -> None:
    """Draws a chart as wide as the page allows. `alternative` says in words what it shows."""
    st.altair_chart(_finish(chart, height), width="stretch", alt=alternative)


def draw_selection_chart(
    chart: Layers, height: int, alternative: str, key: str, part: str, field: str
) -> None:
    """Draws a chart whose marks can be clicked: the `field` of the clicked row goes into the `part`
    of the page's address. The chart has a selection with the name `picked` (`picked_by`)."""

    def choose() -> None:
        rows = st.session_state[key].selection.get("picked")
        if rows:
            st.query_params[part] = rows[0][field]

    st.altair_chart(
        _finish(chart, height),
        width="stretch",
        key=key,
        alt=alternative,
        on_select=choose,
        selection_mode="picked",
    )


def picked_by(field: str) -> alt.Parameter:
    """Returns the selection that a click on a mark makes."""
    return alt.selection_point(name="picked", fields=[field])


def _finish(chart: Layers, height: int) -> Layers:
    # "fit-x": the width is that of the page, names and legends included; the height is that of the rows.
    return (
        chart.properties(
            height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
        )
        .configure_view(stroke=None)
        .configure_title(anchor="start", fontSize=13)
    )
