"""A trace as a waterfall chart, one bar a span: it shows what ran at the same time, what was slow and what failed."""

import json
from typing import Any

from kit.core.trace import Bar, Span, Trace, bars
from kit.ui.shared.wording import dollars

COLOURS = {"turn": "#6B7684", "agent": "#0F62C9", "model": "#7A4FD0", "tool": "#0E8A66"}
"""Span kind -> fill; red is kept for errors."""
_ON_LIGHT = {"ink": "#5B6675", "error": "#D92D20"}
_ON_DARK = {"ink": "#A3AEBB", "error": "#FF7A70"}
_ROW = 26
_WIDEST = 190
"""Pixels a name may take."""


def waterfall_spec(trace: Trace, *, dark: bool = False, chosen: str = "") -> dict[str, Any]:
    """Returns a Vega-Lite specification, as wide as its place: a page needs no altair, which takes
    seconds to import.

    Errors are outlined in red and named beside their bar. Every span has its label, however many
    there are. A click on a bar sets the parameter `picked` to the span's id; the `chosen` one
    stands out.
    """
    data = rows(trace)
    if dark:
        ink = _ON_DARK
    else:
        ink = _ON_LIGHT
    highlight = {
        "transform": [{"filter": f"datum.id === {json.dumps(chosen)}"}],
        "mark": {"type": "rect", "color": ink["ink"], "opacity": 0.16},
    }
    # The data stands inside: at the top, Streamlit would send it through pandas, seconds more on the first chart.
    chart = {
        "data": {"values": data},
        "encoding": {"y": _names(data)},
        "layer": [
            *([highlight] if chosen else []),
            *_bars(max((row["ended"] for row in data), default=0.0), ink),
        ],
    }
    return {
        "layer": [chart],
        "params": [
            {"name": "picked", "select": {"type": "point", "fields": ["id"]}, "views": ["bars"]}
        ],
        "height": _ROW * len(data),
        "autosize": {"type": "fit-x", "contains": "padding"},
    }


def _bars(end: float, ink: dict[str, str]) -> list[dict[str, Any]]:
    failed = {"test": "datum.status === 'error'", "value": ink["error"]}
    scale = {"domain": [0, max(end, 0.01)], "nice": False}
    bars = {
        "name": "bars",
        "mark": {
            "type": "bar",
            "height": 15,
            "cornerRadius": 2,
            "strokeWidth": 2,
            "cursor": "pointer",
        },
        "encoding": {
            "x": {
                "field": "started",
                "type": "quantitative",
                "title": "seconds",
                "axis": {"tickCount": 6},
                "scale": scale,
            },
            "x2": {"field": "ended"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
                "legend": {
                    "orient": "top",
                    "title": None,
                    "columns": 4,
                    "columnPadding": 12,
                    "labelFontSize": 12,
                },
            },
            "stroke": {"condition": failed, "value": "transparent"},
            "tooltip": [{"field": name, "type": "nominal"} for name in _TOOLTIP],
            "description": {"field": "said", "type": "nominal"},
        },
    }
    text = {
        "text": {"field": "beside", "type": "nominal"},
        "color": {"condition": failed, "value": ink["ink"]},
    }
    late = f"datum.ended > {0.72 * end}"
    early = f"datum.started < {0.3 * end}"
    after = _beside(text, f"!({late})", "ended", "left", 6)
    before = _beside(text, f"{late} && !({early})", "started", "right", -6)
    within = _beside(
        {**text, "color": {"value": "white"}}, f"{late} && {early}", "started", "left", 6
    )
    return [bars, after, before, within]


def _beside(encoding: dict[str, Any], where: str, edge: str, align: str, dx: int) -> dict[str, Any]:
    """Returns the layer of times at one edge of the bars; which edge has room depends on where a bar lies."""
    return {
        "transform": [{"filter": where}],
        "mark": {"type": "text", "align": align, "dx": dx, "fontSize": 11},
        "encoding": {"x": {"field": edge, "type": "quantitative"}, **encoding},
    }


def rows(trace: Trace) -> list[dict[str, Any]]:
    """Returns the chart's data: a row a span in tree order, times in seconds."""
    return [_row(place, bar) for place, bar in enumerate(bars(trace))]


def span_name(span: Span) -> str:
    """Returns the name of a span in charts, lists and headings."""
    if span.kind == "model":
        return str(span.attributes.get("purpose", span.name))
    return span.name


def took(seconds: float) -> str:
    """Returns seconds as a person reads them, short ones in milliseconds."""
    if seconds >= 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.0f} ms"


_TOOLTIP = ("span", "agent", "kind", "status", "took", "tokens", "cost", "error")


def _row(place: int, bar: Bar) -> dict[str, Any]:
    span = bar.span
    name = span_name(span)
    return {
        "place": place,
        "id": span.id,
        "name": ("└" + "─" * (bar.depth - 2) + " " if bar.depth > 1 else "")
        + name,  # Vega trims spaces
        "span": name,
        "agent": span.agent or "–",
        "kind": span.kind,
        "status": span.status,
        "started": round(span.started, 4),
        "ended": round(span.ended, 4),
        "took": took(span.seconds),
        "tokens": span.usage.input_tokens + span.usage.output_tokens,
        "cost": dollars(span.usage.cost),
        "error": span.error or "–",
        "beside": took(span.seconds) + _because(span),
        "said": f"{name}, {span.kind}, {span.status}, {took(span.seconds)}",
    }


def _because(span: Span) -> str:
    if span.status == "error" and span.error:
        reason = span.error.removeprefix("invocation: ").removeprefix("data: ")
        return f" · {reason if len(reason) <= 48 else reason[:47] + '…'}"
    if span.status == "running":
        return " · not finished"
    return ""


def _names(data: list[dict[str, Any]]) -> dict[str, Any]:
    longest = max((len(row["name"]) for row in data), default=0)
    axis = {
        "labelExpr": f"{json.dumps([row['name'] for row in data])}[datum.value]",
        "labelAlign": "left",
        "labelPadding": min(6.6 * longest, _WIDEST) + 4,
        "labelLimit": _WIDEST,
        "labelOverlap": False,
        "ticks": False,
        "domain": False,
        "title": None,
    }
    order = {"domain": [row["place"] for row in data]}
    return {"field": "place", "type": "ordinal", "sort": None, "scale": order, "axis": axis}
