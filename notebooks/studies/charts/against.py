"""One measure against another: a point for each way, with an interval in both directions."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from kit.bench.charts.canvas import MARKERS, canvas


def against(
    frame: pd.DataFrame,
    colours: Mapping[str, str],
    title: str,
    xlabel: str,
    ylabel: str,
    *,
    height: float = 3.2,
) -> Figure:
    """A point a row, named beside it; both axes from 0.

    `frame` has the columns name, x, x_low, x_high, y, y_low, y_high. Whiskers may be lopsided: a
    range of assumptions is one too.
    """
    with canvas(height) as (figure, axes):
        rows: Any = frame.to_dict("records")
        right, top = max(row["x_high"] for row in rows), max(row["y_high"] for row in rows)
        for row, marker in zip(rows, MARKERS, strict=False):
            wide = [[row["x"] - row["x_low"]], [row["x_high"] - row["x"]]]
            tall = [[row["y"] - row["y_low"]], [row["y_high"] - row["y"]]]
            colour = colours[row["name"]]
            axes.errorbar(
                row["x"],
                row["y"],
                tall,
                wide,
                fmt=marker,
                color=colour,
                ms=5,
                elinewidth=1.4,
                capsize=3,
                zorder=3,
            )
            axes.annotate(
                row["name"],
                (row["x"], row["y_high"]),
                (0, 5),
                textcoords="offset points",
                color=colour,
                ha="center",
            )
        axes.set_xlim(0, 1.15 * right)
        axes.set_ylim(0, 1.15 * top)
        if right > 1000:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        if top > 1000:
            axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.grid()
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_title(title)
        return figure
