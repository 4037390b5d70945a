"""What a way costs against how often it is right: a dot each, and which of them no other one beats on both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from kit.bench.charts.canvas import BLUE, GREY, INK, canvas

NEAR = 0.012
"""Dots nearer than this share of both axes are one, with all their names."""


class _Dot(NamedTuple):
    way: str
    x: float
    y: float
    low: float
    high: float
    x_low: float
    x_high: float


def tradeoff(frame: pd.DataFrame, title: str, xlabel: str, ylabel: str) -> Figure:
    """One numbered dot for each row of `frame`: way, x (what it costs), y, low, high (a share with
    its interval).

    With x_low and x_high the cost has its interval too. The names stand beside the figure, the
    cheapest first. Blue and round: no other way is both cheaper and right more often. Ways that
    fall on one dot share it.
    """
    rows: Any = frame.assign(
        **{end: frame["x"] for end in ("x_low", "x_high") if end not in frame}
    ).sort_values(["x", "y"])
    points = _merge([_Dot(*map(row.get, _Dot._fields)) for row in rows.to_dict("records")])
    best = front([(point.x, point.y) for point in points])
    with canvas(3.3) as (figure, axes):
        for index, point in enumerate(points):
            if index in best:
                colour = BLUE
            else:
                colour = GREY
            whiskers = [[point.y - point.low], [point.high - point.y]]
            across = [[point.x - point.x_low], [point.x_high - point.x]]
            style: Any = {
                "fmt": "o" if index in best else "s",
                "ms": 11,
                "elinewidth": 1.2,
                "clip_on": False,
                "zorder": 3,
            }
            axes.errorbar(point.x, point.y, whiskers, across, color=colour, **style)
            anchor: Any = {
                "ha": "center",
                "va": "center_baseline",
                "fontsize": 7.5,
                "fontweight": "bold",
                "zorder": 4,
            }
            axes.annotate(str(index + 1), (point.x, point.y), color="white", **anchor)
        axes.set_xlim(0, 1.06 * max((point.x_high for point in points), default=1.0) or 1.0)
        axes.set_ylim(max(0.0, min((point.low for point in points), default=0.0) - 0.04), 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_formatter("{x:,.0f}" if axes.get_xlim()[1] > 20 else "{x:g}")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.grid(axis="both")
        axes.set_xlabel(xlabel, loc="left")
        axes.set_ylabel(ylabel)
        _names(axes, [point.way for point in points], best)
        figure.suptitle(title, x=0.01, ha="left", color=INK)
        return figure


def front(points: Sequence[tuple[float, float]]) -> set[int]:
    """Places of the points that no other one beats: none has as small an x and as large a y, and one of them better."""
    numbers: set[int] = set()
    for index, (x, y) in enumerate(points):
        if not any(a <= x and b >= y and (a, b) != (x, y) for a, b in points):
            numbers.add(index)
    return numbers


def _merge(dots: Sequence[_Dot]) -> list[_Dot]:
    wide = max((dot.x for dot in dots), default=1.0) or 1.0
    distinct: list[_Dot] = []
    for dot in dots:
        twin = next(
            (
                p
                for p, o in enumerate(distinct)
                if abs(o.x - dot.x) < NEAR * wide and abs(o.y - dot.y) < NEAR / 2
            ),
            None,
        )
        if twin is None:
            distinct.append(dot)
        else:
            distinct[twin] = distinct[twin]._replace(way=f"{distinct[twin].way},\n    {dot.way}")
    return distinct


def _names(axes: Axes, ways: Sequence[str], best: set[int]) -> None:
    """Beside the figure; the dots have their numbers already."""
    beside: Any = {"frameon": False, "fontsize": 8, "handlelength": 0, "handletextpad": 0}
    handles: list[Line2D] = []
    for index, label in enumerate(ways):
        handles.append(Line2D([], [], linestyle="none", label=f"{index + 1}  {label}"))
    title = "blue and round: none is\nboth cheaper and better"
    legend = axes.legend(
        handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), title=title, **beside
    )
    legend.get_title().set(fontsize=8, color=GREY)
    for index, text in enumerate(legend.get_texts()):
        text.set_color(BLUE if index in best else INK)
