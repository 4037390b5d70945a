"""A trace as a waterfall chart, one bar a span: it shows what ran at the same time, what was slow and what failed."""

import json
from typing import Any

import altair as alt

from kit.core.display.count import many
from kit.core.trace import Bar, Span, Trace, bars
from kit.ui.shared.chart import (
    COLOURS,
    ROW,
    Layers,
    data_of,
    draw_selection_chart,
    palette,
    picked_by,
    row_axis,
)
from kit.ui.shared.wording import dollars, span_name, took

WIDEST_NAME = 190
"""Pixels a name may take."""
LONGEST_REASON = 48
"""Characters of an error that stand beside its bar; the tooltip has all of them."""


def draw_waterfall(trace: Trace, key: str, selected: str) -> None:
    """Draws a trace with the `selected` span marked; a click on a bar selects another one, by the
    part `span` of the address."""
    height = ROW * len(trace.spans)
    words = f"Timeline of {many(len(trace.spans), 'span')}"
    failed: list[str] = []
    for span in trace.spans:
        if span.status == "error":
            failed.append(span_name(span))
    if failed:
        words += f"; with errors: {', '.join(failed)}"
    words += "; the list above chooses the same ones by keyboard"
    chart = waterfall_chart(trace, selected=selected)
    draw_selection_chart(chart, height, words, key, "span", "id")


def waterfall_rows(trace: Trace) -> list[dict[str, Any]]:
    """Returns the chart's data: a row a span in tree order, times in seconds."""
    rows: list[dict[str, Any]] = []
    end = _end(trace)
    for number, bar in enumerate(bars(trace)):
        rows.append(_row(number, bar, end))
    return rows


def _end(trace: Trace) -> float:
    return max((bar.span.ended for bar in bars(trace)), default=0.0)


def waterfall_chart(trace: Trace, *, selected: str = "") -> Layers:
    """Returns the chart. A click on a bar picks its span's id; the `selected` span stands out."""
    rows = waterfall_rows(trace)
    colours = palette()
    names = [row["name"] for row in rows]
    longest = max(map(len, names), default=0)
    label_width = min(6.6 * longest, WIDEST_NAME) + 4
    axis = row_axis(
        limit=WIDEST_NAME,
        labelAlign="left",
        labelPadding=label_width,
        # Several spans have one name, so a row is known by its number and the axis looks its name up.
        labelExpr=f"{json.dumps(names)}[datum.value]",
    )
    y = alt.Y("number:O", sort=None, axis=axis).scale(domain=list(range(len(rows))))
    highlight = (
        alt.Chart(data_of([row for row in rows if row["id"] == selected]))
        .mark_rect(color=colours.muted, opacity=0.16, aria=False)
        .encode(y=y)
    )
    x = alt.X("started:Q", title="seconds", axis=alt.Axis(tickCount=6))
    x = x.scale(domain=[0, max(_end(trace), 0.01)], nice=False)
    is_failed = alt.when("datum.status === 'error'").then(alt.value(colours.error))
    colour = alt.Color("kind:N").scale(domain=list(COLOURS), range=list(COLOURS.values()))
    spans = (
        alt.Chart(data_of(rows), name="bars")
        .mark_bar(height=15, cornerRadius=2, strokeWidth=2, cursor="pointer")
        .encode(
            x=x,
            x2="ended:Q",
            y=y,
            color=colour.legend(
                orient="top", title=None, columns=2, columnPadding=12, labelFontSize=12
            ),
            # A bar keeps the colour of its kind: what failed has a red edge.
            stroke=is_failed.otherwise(alt.value("transparent")),
            tooltip=TOOLTIP,
            description="description:N",
        )
        .add_params(picked_by("id"))
    )
    times = (
        alt.Chart(data_of(rows))
        # A text that reaches beyond the chart is cut: it would take its room from the bars, on a phone all of it.
        .mark_text(
            clip=True,
            fontSize=11,
            align=alt.ExprRef("datum.align"),
            dx=alt.ExprRef("datum.distance"),
        )
        .encode(
            x="edge:Q",
            y=y,
            text="beside:N",
            color=alt.when("datum.within")
            .then(alt.value("white"))
            .when("datum.status === 'error'")
            .then(alt.value(colours.error))
            .otherwise(alt.value(colours.muted)),
        )
    )
    return alt.layer(highlight, spans, times)


TOOLTIP = [
    "span:N",
    "agent:N",
    "kind:N",
    "status:N",
    "took:N",
    "tokens:N",
    "cost:N",
    "error:N",
]


def _row(number: int, bar: Bar, end: float) -> dict[str, Any]:
    span = bar.span
    name = span_name(span)
    branch = ""
    if bar.depth > 1:
        # Vega trims spaces, so the depth is drawn.
        branch = "└" + "─" * (bar.depth - 2) + " "
    duration = took(span.seconds)
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
        "beside": duration + _reason(span),
        "description": f"{name}, {span.kind}, {span.status}, {duration}",
        **_label_position(span, end),
    }


def _label_position(span: Span, end: float) -> dict[str, Any]:
    """Returns where a bar has room for its time: after it, else before it, else within it."""
    if span.ended <= 0.72 * end:
        return {"edge": span.ended, "align": "left", "distance": 6, "within": False}
    if span.started >= 0.3 * end:
        return {"edge": span.started, "align": "right", "distance": -6, "within": False}
    return {"edge": span.started, "align": "left", "distance": 6, "within": True}


def _reason(span: Span) -> str:
    if span.status == "running":
        return " · not finished"
    if span.status != "error" or not span.error:
        return ""
    reason = span.error.removeprefix("invocation: ").removeprefix("data: ")
    if len(reason) > LONGEST_REASON:
        reason = f"{reason[: LONGEST_REASON - 1]}…"
    return f" · {reason}"
