"""A trace as a waterfall: one bar a span, so that what ran side by side, what was slow and what failed is seen at once."""

import json
from typing import Any

import altair as alt

from kit.core.trace import Span, Trace

COLOURS = {"turn": "#6B7684", "agent": "#0F62C9", "model": "#7A4FD0", "tool": "#0E8A66"}
"""Span kind -> fill; red is kept for errors."""
ERROR = "#D92D20"
_INK = "#6B7684"
_ROW = 26
_INDENT = "\u2007\u2007"
"""Figure spaces: Vega trims ordinary ones."""


def rows(trace: Trace) -> list[dict[str, Any]]:
    """The chart's data: a row a span in tree order, times in seconds. A running span ends where the trace ends."""
    end = max((span.ended if span.ended is not None else span.started for span in trace.spans), default=0.0)
    return [_row(place, depth, span, end) for place, (depth, span) in enumerate(trace.rows())]


def waterfall(trace: Trace, width: int | str = "container") -> alt.LayerChart:
    """Draws a trace; `width` in pixels, or as wide as its place. Errors are outlined in red and named beside their bar."""
    data = rows(trace)
    end = max((row["ended"] for row in data), default=0.0)
    chart = alt.Chart(alt.Data(values=data)).encode(y=_names(data))
    scale = alt.Scale(domain=[0, max(end * 1.18, 0.01)], nice=False)
    span_x: Any = alt.X("started:Q").title("seconds").scale(scale).axis(tickCount=6, grid=True)
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("span", "agent", "kind", "status", "took", "tokens", "cost", "error")]
    bars = chart.mark_bar(height=15, cornerRadius=2, strokeWidth=2).encode(
        x=span_x,
        x2="ended:Q",
        color=alt.Color("kind:N").scale(domain=list(COLOURS), range=list(COLOURS.values())).legend(orient="top", title=None),
        stroke=alt.condition(alt.datum.status == "error", alt.value(ERROR), alt.value("transparent")),
        tooltip=tooltip,
        description="said:N",
    )
    side = chart.mark_text(align="left", dx=6, fontSize=11).encode(
        x="ended:Q",
        text="beside:N",
        color=alt.condition(alt.datum.status == "error", alt.value(ERROR), alt.value(_INK)),
    )
    return alt.layer(bars, side).properties(width=width, height=alt.Step(_ROW))  # type: ignore[reportArgumentType]


def _names(data: list[dict[str, Any]]) -> alt.Y:
    labels = json.dumps([row["name"] for row in data])
    longest = max((len(row["name"]) for row in data), default=0)
    axis = alt.Axis(
        labelExpr=f"{labels}[datum.value]",
        labelAlign="left",
        labelPadding=min(6.2 * longest, 190) + 4,
        labelLimit=190,
        labelOverlap=False,
        ticks=False,
        domain=False,
        title=None,
    )
    return alt.Y("place:O").sort(None).axis(axis)


def _row(place: int, depth: int, span: Span, end: float) -> dict[str, Any]:
    ended = span.ended if span.ended is not None else max(end, span.started)
    took = f"{(ended - span.started):.2f} s" if ended - span.started >= 0.1 else f"{(ended - span.started) * 1000:.0f} ms"
    reason = (span.error or "").removeprefix("invocation: ").removeprefix("data: ")
    name = str(span.attributes.get("purpose", span.name)) if span.kind == "model" else span.name
    problem = f" · {reason[:47] + '…' if len(reason) > 48 else reason}" if reason and span.status == "error" else ""
    return {
        "place": place,
        "id": span.id,
        "name": _INDENT * max(0, depth - 1) + name,
        "span": name,
        "agent": span.agent or "–",
        "kind": span.kind,
        "status": span.status,
        "started": round(span.started, 4),
        "ended": round(ended, 4),
        "took": took,
        "tokens": span.usage.input_tokens + span.usage.output_tokens,
        "cost": "–" if span.usage.cost is None else f"${span.usage.cost:.4f}",
        "error": span.error or "–",
        "beside": took + problem,
        "said": f"{name}, {span.kind}, {span.status}, {took}",
    }
