"""What a way costs against how often it is right: a dot each, and which of them no other one beats on both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from kit.bench.charts.canvas import BLUE, GREY, INK, canvas, headline

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
    rows: Any = frame.sort_values(["x", "y"])
    points: list[_Dot] = []
    for row in rows.to_dict("records"):
        # Without an interval of its own a cost is all of it.
        fields: Any = {"x_low": row["x"], "x_high": row["x"], **row}
        dot = _Dot(*map(fields.get, _Dot._fields))
        _merge(dot, points, NEAR * (rows["x"].max() or 1.0))
    best = front([(point.x, point.y) for point in points])
    with canvas(3.3) as (figure, axes):
        style: Any = {"ms": 11, "elinewidth": 1.2, "clip_on": False, "zorder": 3}
        anchor: Any = {"ha": "center", "va": "center_baseline", "zorder": 4}
        for index, point in enumerate(points):
            whiskers = [[point.y - point.low], [point.high - point.y]]
            across = [[point.x - point.x_low], [point.x_high - point.x]]
            colour = BLUE if index in best else GREY
            shape = "o" if index in best else "s"
            axes.errorbar(point.x, point.y, whiskers, across, shape, color=colour, **style)
            position = (point.x, point.y)
            number = axes.annotate(str(index + 1), position, color="white", **anchor)
            number.set(fontsize=7.5, fontweight="bold")
        longest = max([point.x_high for point in points], default=1.0)
        lowest = min([point.low for point in points], default=0.0)
        axes.set_xlim(0, 1.06 * longest or 1.0)
        axes.set_ylim(max(0.0, lowest - 0.04), 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_formatter("{x:,.0f}" if axes.get_xlim()[1] > 20 else "{x:g}")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.grid(axis="both")
        axes.set_xlabel(xlabel, loc="left")
        axes.set_ylabel(ylabel)
        _names(axes, points, best)
        headline(figure, title)
        return figure


def front(points: Sequence[tuple[float, float]]) -> set[int]:
    """Places of the points that no other one beats: none has as small an x and as large a y, and one of them better."""
    numbers: set[int] = set()
    for index, (x, y) in enumerate(points):
        if not any(a <= x and b >= y and (a, b) != (x, y) for a, b in points):
            numbers.add(index)
    return numbers


def _merge(dot: _Dot, distinct: list[_Dot], near: float) -> None:
    """Adds a dot, or its name to the one that it falls on."""
    for index, point in enumerate(distinct):
        if abs(point.x - dot.x) < near and abs(point.y - dot.y) < NEAR / 2:
            distinct[index] = point._replace(way=f"{point.way},\n    {dot.way}")
            return
    distinct.append(dot)


def _names(axes: Axes, points: Sequence[_Dot], best: set[int]) -> None:
    """Beside the figure; the dots have their numbers already."""
    beside: Any = {"frameon": False, "fontsize": 8, "handlelength": 0, "handletextpad": 0}
    handles: list[Line2D] = []
    for number, point in enumerate(points, 1):
        handles.append(Line2D([], [], linestyle="none", label=f"{number}  {point.way}"))
    title = "blue and round: none is\nboth cheaper and better"
    legend = axes.legend(
        handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), title=title, **beside
    )
    legend.get_title().set(fontsize=8, color=GREY)
    for index, text in enumerate(legend.get_texts()):
        text.set_color(BLUE if index in best else INK)
