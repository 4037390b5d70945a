"""A trace as a waterfall chart, one bar a span: it shows what ran at the same time, what was slow and what failed.

altair takes a second to import, so the page imports this module only where it draws a trace.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import streamlit as st

from kit.core.display.count import many
from kit.core.trace import Bar, Trace, bars
from kit.ui.shared.wording import dollars, span_name, took

COLOURS = {"turn": "#6B7684", "agent": "#0F62C9", "model": "#7A4FD0", "tool": "#0E8A66"}
"""Span kind -> fill; red is kept for errors."""
ERROR = {"light": "#D92D20", "dark": "#FF7A70"}
MUTED = {"light": "#5B6675", "dark": "#A3AEBB"}
"""Theme -> the colour of words on its ground."""
ROW = 26
"""Pixels of a row with a bar."""
WIDEST_NAME = 190
"""Pixels a name may take."""
LONGEST_REASON = 48
"""Characters of an error that stand beside its bar; the tooltip has all of them."""
TOOLTIP = ["span:N", "agent:N", "kind:N", "status:N", "took:N", "tokens:N", "cost:N", "error:N"]


def draw_waterfall(trace: Trace, key: str, selected: str) -> None:
    """Draws a trace with the `selected` span marked; a click on a bar selects another one, by the
    part `span` of the address."""
    words = f"Timeline of {many(len(trace.spans), 'span')}"
    failed = [span_name(span) for span in trace.spans if span.status == "error"]
    if failed:
        words += f"; with errors: {', '.join(failed)}"
    words += "; the list above chooses the same ones by keyboard"
    theme = "dark" if st.context.theme.type == "dark" else "light"
    # "fit-x": the width is that of the page, names and legends included; the height is that of the rows.
    size = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = waterfall_chart(trace, selected=selected, theme=theme)
    chart = chart.properties(height=ROW * len(trace.spans), autosize=size)

    def choose() -> None:
        rows = st.session_state[key].selection.get("picked")
        if rows:
            st.query_params["span"] = rows[0]["id"]

    st.altair_chart(
        chart.configure_view(stroke=None),
        width="stretch",
        key=key,
        alt=words,
        on_select=choose,
        selection_mode="picked",
    )


def waterfall_rows(trace: Trace) -> list[dict[str, Any]]:
    """Returns the chart's data: a row a span in tree order, times in seconds."""
    return [_row(number, bar) for number, bar in enumerate(bars(trace))]


def waterfall_chart(
    trace: Trace, *, selected: str = "", theme: str = "light"
) -> alt.LayerChart | alt.FacetChart:
    """Returns the chart. A click on a bar picks its span's id; the `selected` span stands out."""
    rows = waterfall_rows(trace)
    names = [row["name"] for row in rows]
    longest = max(map(len, names), default=0)
    axis = alt.Axis(
        title=None,
        ticks=False,
        domain=False,
        grid=False,
        labelOverlap=False,
        labelLimit=WIDEST_NAME,
        labelAlign="left",
        labelPadding=min(6.6 * longest, WIDEST_NAME) + 4,
        # Several spans have one name, so a row is known by its number and the axis looks its name up.
        labelExpr=f"{json.dumps(names)}[datum.value]",
    )
    y = alt.Y("number:O", sort=None, axis=axis).scale(domain=list(range(len(rows))))
    end = max((row["ended"] for row in rows), default=0.0)
    # Behind the last bar there is room for its time.
    x = alt.X("started:Q", title="seconds", axis=alt.Axis(tickCount=6))
    x = x.scale(domain=[0, max(1.25 * end, 0.01)], nice=False)
    colour = alt.Color("kind:N").scale(domain=list(COLOURS), range=list(COLOURS.values()))
    legend = alt.Legend(orient="top", title=None, columns=2, columnPadding=12, labelFontSize=12)
    is_failed = alt.when("datum.status === 'error'").then(alt.value(ERROR[theme]))
    highlight = (
        alt.Chart(_data([row for row in rows if row["id"] == selected]))
        .mark_rect(color=MUTED[theme], opacity=0.16, aria=False)
        .encode(y=y)
    )
    spans = (
        alt.Chart(_data(rows), name="bars")
        .mark_bar(height=15, cornerRadius=2, strokeWidth=2, cursor="pointer")
        .encode(
            x=x,
            x2="ended:Q",
            y=y,
            color=colour.legend(legend),
            # A bar keeps the colour of its kind: what failed has a red edge.
            stroke=is_failed.otherwise(alt.value("transparent")),
            tooltip=TOOLTIP,
            description="description:N",
        )
        .add_params(alt.selection_point(name="picked", fields=["id"]))
    )
    times = (
        alt.Chart(_data(rows))
        # A text that reaches beyond the chart is cut: it would take its room from the bars, on a phone all of it.
        .mark_text(clip=True, fontSize=11, align="left", dx=6)
        .encode(
            x="ended:Q",
            y=y,
            text="beside:N",
            color=is_failed.otherwise(alt.value(MUTED[theme])),
        )
    )
    return alt.layer(highlight, spans, times)


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=[dict(row) for row in rows])


def _row(number: int, bar: Bar) -> dict[str, Any]:
    span = bar.span
    name = span_name(span)
    branch = ""
    if bar.depth > 1:
        # Vega trims spaces, so the depth is drawn.
        branch = "└" + "─" * (bar.depth - 2) + " "
    duration = took(span.seconds)
    beside = duration
    if span.status == "running":
        beside += " · not finished"
    elif span.status == "error" and span.error:
        reason = span.error.removeprefix("invocation: ").removeprefix("data: ")
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[: LONGEST_REASON - 1]}…"
        beside += f" · {reason}"
    return {
        "number": number,
        "id": span.id,
        "name": branch + name,
        "span": name,
        "agent": span.agent or "–",
        "kind": span.kind,
        "status": span.status,
        "started": round(span.started, 4),
        "ended": round(span.ended, 4),
        "took": duration,
        "tokens": span.usage.input_tokens + span.usage.output_tokens,
        "cost": dollars(span.usage.cost),
        "error": span.error or "–",
        "beside": beside,
        "description": f"{name}, {span.kind}, {span.status}, {duration}",
    }
