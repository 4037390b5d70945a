"""Lines with their intervals as bands, one panel for each setting."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kit.bench.charts.canvas import DASHES, MARKERS, headline, panels
from studies.charts.label import label


def bands(
    frame: pd.DataFrame,
    x: str,
    colours: Mapping[str, str],
    title: str,
    xlabel: str,
    ylabel: str = "",
    *,
    percent: bool = True,
    doses: bool = True,
    height: float = 2.7,
) -> Figure:
    """One panel for each value of `panel`, one line for each of `line`, named where it ends in the
    last panel.

    `frame` has the columns panel, line, y, low, high (see Estimate.columns) and `x`, and n, the
    items of a point, if it is to be said. `percent`: y is a share, and all panels have one axis
    from 0 to 1; else each has its own, from 0. `doses`: x is a share too; else a few numbers, each
    with a tick.
    """
    rows: Any = frame
    names = list(dict.fromkeys(rows["panel"]))
    with panels(height, len(names), sharey=percent) as (figure, row):
        for axes, name in zip(row, names, strict=True):
            part = rows[rows["panel"] == name]
            ends = {
                line: _line(axes, part[part["line"] == line], x, colour, place)
                for place, (line, colour) in enumerate(colours.items())
            }
            if "n" in part and x != "n":
                name = f"{name} (n = {_range(part['n'])})".removeprefix(" ")
            axes.set_title(name, fontweight="normal", fontsize=9)
            axes.grid(axis="y")
            axes.margins(x=0.02)
            if doses:
                axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            else:
                axes.set_xticks(sorted(set(part[x])))
            axes.set_ylim(0, 1.03 if percent else _top(part))
            if percent:
                axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            elif axes.get_ylim()[1] > 1000:
                axes.yaxis.set_major_formatter("{x:,.0f}")
            if axes is row[-1]:
                last = {line: end for line, end in ends.items() if end}
                for line, height in _apart(last, axes.get_ylim()[1]).items():
                    label(axes, line, *last[line], colours[line], height)
        row[0].set_ylabel(ylabel)
        figure.supxlabel(xlabel, fontsize=9)
        headline(figure, title)
        return figure


def _line(axes: Axes, part: Any, x: str, colour: str, place: int) -> tuple[float, float] | None:
    if part.empty:
        return None
    at = part[x]
    axes.fill_between(at, part["low"], part["high"], color=colour, alpha=0.18, linewidth=0)
    style: Any = {
        "color": colour,
        "marker": MARKERS[place],
        "linestyle": DASHES[place],
        "linewidth": 2.4 - 0.2 * place,
    }
    axes.plot(at, part["y"], ms=4, clip_on=False, zorder=3, **style)
    return float(at.iloc[-1]), float(part["y"].iloc[-1])


def _apart(ends: dict[str, tuple[float, float]], top: float) -> dict[str, float]:
    """Heights of the names of lines, with room for a word between each two."""
    heights: dict[str, float] = {}
    last = -top
    for line, (_, y) in sorted(ends.items(), key=lambda pair: pair[1][1]):
        last = heights[line] = max(y, last + 0.09 * top)
    return heights


def _range(counts: Any) -> str:
    least, most = int(counts.min()), int(counts.max())
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _top(part: Any) -> float:
    return 1.15 * float(part["high"].max())
