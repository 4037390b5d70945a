"""Charts of the metrics as Vega-Lite specifications with their data inside: altair and pandas take
seconds to import."""

from collections.abc import Mapping, Sequence
from typing import Any

from kit.ui.shared.waterfall import COLOURS

_ROW = 26
_LIGHT = {"ink": "#5B6675", "bar": COLOURS["agent"], "late": "#7A4FD0"}
_DARK = {"ink": "#A3AEBB", "bar": "#6EA8FE", "late": "#B69CF5"}

Spec = dict[str, Any]


def bars_spec(
    values: Mapping[str, float], title: str, *, dark: bool = False, share: bool = False
) -> Spec:
    """Returns a chart with a bar for each name, in the order given, its value beside it; shares are 0 to 1."""
    if dark:
        ink = _DARK
    else:
        ink = _LIGHT
    if share:
        most = 1.0
    else:
        most = max((*values.values(), 1))
    rows: list[dict[str, str | float]] = []
    for name, value in values.items():
        rows.append(
            {"name": name, "value": value, "said": f"{value:.0%}" if share else f"{value:,}"}
        )
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, most * 1.12], "nice": False},
    }
    bar: Spec = {
        "mark": {"type": "bar", "height": 15, "cornerRadiusEnd": 3, "color": ink["bar"]},
        "encoding": {"x": x, "description": {"field": "said", "type": "nominal"}},
    }
    return _chart(rows, [bar, _said(x, 6, ink)], title)


def latency_spec(
    values: Sequence[tuple[str, float, float]], title: str, *, dark: bool = False
) -> Spec:
    """Returns a chart with a line from p50 to p95 for each (name, p50, p95) in seconds."""
    if dark:
        ink = _DARK
    else:
        ink = _LIGHT
    rows: list[dict[str, str | float]] = []
    for name, p50, p95 in values:
        rows.append({"name": name, "p50": p50, "p95": p95, "said": f"{p95:.2f} s"})
    most = max((p95 for _, _, p95 in values), default=1.0)
    scale: Spec = {"domain": [0, most * 1.15], "nice": False}

    def x(field: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": "seconds",
            "scale": scale,
            "axis": {"tickCount": 5},
        }

    line: Spec = {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5, "color": ink["ink"]},
        "encoding": {"x": x("p50"), "x2": {"field": "p95"}},
    }
    colour = {
        "scale": {"domain": ["p50", "p95"], "range": [ink["bar"], ink["late"]]},
        "legend": {"orient": "top", "title": None},
    }
    dots: list[
        dict[
            str,
            dict[str, str | bool | int]
            | dict[
                str, dict[str, Any] | dict[str, str | dict[str, list[str]] | dict[str, str | None]]
            ],
        ]
    ] = []
    for name in ("p50", "p95"):
        dots.append(
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": x(name), "color": {"datum": name, "type": "nominal", **colour}},
            }
        )
    return _chart(rows, [line, *dots, _said(x("p95"), 9, ink)], title)


def _said(x: Spec, dx: int, ink: Mapping[str, str]) -> Spec:
    """Returns the layer of figures in words, `dx` pixels to the right of `x`."""
    return {
        "mark": {"type": "text", "align": "left", "dx": dx, "fontSize": 12, "color": ink["ink"]},
        "encoding": {"x": x, "text": {"field": "said", "type": "nominal"}},
    }


_NAMES: Spec = {
    "title": None,
    "ticks": False,
    "domain": False,
    "labelLimit": 150,
    "labelOverlap": False,
    "labelFlush": False,
    "labelPadding": 8,
    "grid": False,
}


def _chart(rows: Sequence[Spec], layers: Sequence[Spec], title: str) -> Spec:
    y: Spec = {"field": "name", "type": "ordinal", "sort": None, "axis": _NAMES}
    return {
        "title": {"text": title, "anchor": "start", "fontSize": 13},
        "layer": [{"data": {"values": rows}, "encoding": {"y": y}, "layer": layers}],
        "height": _ROW * max(len(rows), 1),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {"view": {"stroke": None}},
    }
