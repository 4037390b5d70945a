"""What is bought against what it costs: a dot for each way, with an interval in either direction."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kit.bench.charts.canvas import canvas


def trade(frame: pd.DataFrame, colours: Mapping[str, str], title: str, xlabel: str, ylabel: str, *, low: float = 0.0) -> Figure:
    """One dot for each value of `line`, named beside it; up is better, left is cheaper.

    `frame` has the columns line, x, x_low, x_high, y, low, high; y is a share, drawn from `low` to 1.
    """
    rows: Any = frame.set_index("line")
    width = float(rows["x_high"].max() - rows["x_low"].min())
    with canvas(3.0) as (figure, axes):
        for line, colour in colours.items():
            dot = rows.loc[line]
            across, up = ([[dot[name] - dot[under]], [dot[over] - dot[name]]] for name, under, over in _ENDS)
            axes.errorbar(dot["x"], dot["y"], up, across, fmt="o", color=colour, ms=6, elinewidth=1.4, clip_on=False, zorder=3)
            side, away = ("left", 8) if _room(rows, line, width) else ("right", -8)
            axes.annotate(line, (dot["x"], dot["y"]), (away, -12), textcoords="offset points", color=colour, ha=side)
        axes.set_xlim(float(rows["x_low"].min()) - 0.12 * width, float(rows["x_high"].max()) + 0.12 * width)
        axes.set_ylim(low, 1.01)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.grid(axis="both")
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_title(title)
        return figure


_ENDS = (("x", "x_low", "x_high"), ("y", "low", "high"))


def _room(rows: Any, line: str, width: float) -> bool:
    """Whether a name can stand to the right of its dot: no other dot is close by on that side."""
    dot, others = rows.loc[line], rows.drop(line)
    ahead = others[(others["x"] >= dot["x"]) & (others["x"] - dot["x"] < 0.25 * width)]
    return bool(((ahead["y"] - dot["y"]).abs() > 0.08).all())
