"""Estimates beside each other: a dot with its interval as whisker, one row a thing."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kit.bench.charts.canvas import INK, MARKERS, canvas


def dots(
    frame: pd.DataFrame, colours: Mapping[str, str], title: str, xlabel: str, *, low: float = 0.0
) -> Figure:
    """One row for each value of `row`, in their order, one dot for each of `line`; shares, drawn
    from `low` to 1.

    `frame` has the columns row, line, y, low, high (see Estimate.columns), and n, the items of a
    dot, if it is to be said.
    """
    rows: Any = frame
    names = list(dict.fromkeys(rows["row"]))
    labels: list[str] = []
    for name in names:
        labels.append(_count(name, rows, "row"))
    step = 0.24
    with canvas(0.9 + 0.3 * len(names) + 0.06 * len(names) * (len(colours) - 1)) as (figure, axes):
        for index, (line, colour) in enumerate(colours.items()):
            part = rows[rows["line"] == line]
            heights: list[float] = []
            for name in part["row"]:
                heights.append(names.index(name) + step * (index - (len(colours) - 1) / 2))
            whiskers = [part["y"] - part["low"], part["high"] - part["y"]]
            axes.errorbar(
                part["y"],
                heights,
                xerr=whiskers,
                fmt=MARKERS[index % len(MARKERS)],
                color=colour,
                ms=5,
                elinewidth=1.4,
                label=_count(line, rows, "line") if labels == names else line,
                clip_on=False,
                zorder=3,
            )
        axes.set_yticks(range(len(names)), labels)
        # Upside down: the first row stands on top.
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(low, 1.01)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel(xlabel, loc="left")
        axes.set_title(title)
        if len(colours) > 1:
            axes.legend(
                loc="upper right",
                bbox_to_anchor=(1, 0),
                ncols=len(colours),
                frameon=False,
                fontsize=8,
                borderaxespad=2.2,
                labelcolor=INK,
            )
        return figure


def _count(name: str, rows: Any, column: str) -> str:
    """The name of a row or of a line, and of how many items each of its dots is; the name alone
    where they differ in that."""
    if "n" in rows:
        counts: set[int] = set()
        for n in rows[rows[column] == name]["n"]:
            counts.add(int(n))
    else:
        counts = set[int]()
    if len(counts) == 1:
        return f"{name} (n = {counts.pop():,})"
    return name
