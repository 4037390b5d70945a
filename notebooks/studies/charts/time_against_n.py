"""Seconds against the number of sub-agents."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kit.bench.charts.canvas import BLUE, GREY, canvas
from studies.charts.label import label


def time_against_n(frame: pd.DataFrame, title: str | None = None) -> Figure:
    """Seconds against the number of sub-agents; `frame` has the columns clock, way, n and seconds.

    Lines are exact (virtual time); points are measured: the median of the runs, with their whole range as whisker.
    """
    table: Any = frame.groupby(["clock", "way", "n"])["seconds"].agg(
        ["median", "min", "max", "size"]
    )
    with canvas(3.5) as (figure, axes):
        for way, colour, words in (
            ("one_by_one", GREY, "one after another"),
            ("mediated", BLUE, "side by side"),
        ):
            line, points = table.loc[("exact", way)]["median"], table.loc[("measured", way)]
            axes.plot(line.index, line, color=colour, linewidth=1.5, zorder=1)
            whiskers = [points["median"] - points["min"], points["max"] - points["median"]]
            axes.errorbar(
                points.index,
                points["median"],
                whiskers,
                fmt="o",
                color=colour,
                ms=5,
                capsize=3,
                zorder=2,
            )
            label(axes, words, line.index[-1], line.iloc[-1], colour)
        most = max(frame["n"])
        side, queue = (
            table.loc[("measured", way, most)]["median"] for way in ("mediated", "one_by_one")
        )
        axes.set_ylim(0, None)
        axes.set_xticks(sorted(set(frame["n"])))
        axes.grid(axis="y")
        axes.set_xlabel("sub-agents asked in one turn")
        axes.set_ylabel("seconds until all have answered")
        axes.set_title(
            title
            or f"{most} sub-agents side by side take {side:.2f} s, one after another {queue:.2f} s"
        )
        _note(axes, "Lines: exact, in virtual time\n" + _points(table))
        return figure


def _points(table: Any) -> str:
    side, queue = (
        int(table.loc[("measured", way)]["size"].max()) for way in ("mediated", "one_by_one")
    )
    apart = "" if side == queue else f"\n(one after another: {queue})"
    return f"Points: measured, median and range of {side} runs{apart}"


def _note(axes: Axes, text: str) -> None:
    """Small print in the upper left corner."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    axes.text(
        0.03,
        0.98,
        text,
        transform=axes.transAxes,
        va="top",
        fontsize=8,
        color=GREY,
        linespacing=1.5,
        bbox=box,
    )
