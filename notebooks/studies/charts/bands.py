"""Lines with their intervals as bands, one panel for each setting."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kit.bench.charts.canvas import headline, panels
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
    """One panel for each value of `panel`, one line for each of `line`, named where it ends in the last panel.

    `frame` has the columns panel, line, y, low, high (see Estimate.columns) and `x`. `percent`: y is a share, and all panels
    have one axis from 0 to 1; else each has its own, from 0. `doses`: x is a share too; else a few numbers, each with a tick.
    """
    rows: Any = frame
    names = list(dict.fromkeys(rows["panel"]))
    with panels(height, len(names), sharey=percent) as (figure, row):
        for axes, name in zip(row, names, strict=True):
            part = rows[rows["panel"] == name]
            ends = {line: _line(axes, part[part["line"] == line], x, colour) for line, colour in colours.items()}
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
                for line, (end, y) in _apart({k: v for k, v in ends.items() if v}, axes.get_ylim()[1]).items():
                    label(axes, line, end, y, colours[line])
        row[0].set_ylabel(ylabel)
        figure.supxlabel(xlabel, fontsize=9)
        headline(figure, title)
        return figure


def _line(axes: Axes, part: Any, x: str, colour: str) -> tuple[float, float] | None:
    if part.empty:
        return None
    at = part[x]
    axes.fill_between(at, part["low"], part["high"], color=colour, alpha=0.18, linewidth=0)
    axes.plot(at, part["y"], color=colour, marker="o", ms=3.5, linewidth=1.6, clip_on=False, zorder=3)
    return float(at.iloc[-1]), float(part["y"].iloc[-1])


def _apart(ends: dict[str, tuple[float, float]], top: float) -> dict[str, tuple[float, float]]:
    """The ends of lines with room for a word between each two."""
    places: dict[str, tuple[float, float]] = {}
    last = -1.0
    for line, (x, y) in sorted(ends.items(), key=lambda pair: pair[1][1]):
        last = max(y, last + 0.09 * top) if places else y
        places[line] = (x, last)
    return places


def _top(part: Any) -> float:
    return 1.15 * float(part["high"].max())
