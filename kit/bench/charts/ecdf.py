"""Empirical distributions: the share of turns that took at most so long, one step line each."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kit.bench.charts.canvas import DASHES, GREY, headline, panels


def ecdf(
    frame: pd.DataFrame,
    columns: Mapping[str, str],
    by: str,
    colours: Mapping[str, str],
    title: str,
    xlabel: str,
) -> Figure:
    """One panel for each of `columns` (column -> its words), one line for each value of `by` in
    `colours`.

    The names stand beside the last panel in the order of `colours`; give the slowest first. The
    dotted rule is the median.
    """
    rows: Any = frame
    with panels(2.9, len(columns)) as (figure, row):
        for axes, (column, words) in zip(row, columns.items(), strict=True):
            axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
            for index, (name, colour) in enumerate(colours.items()):
                values = rows[rows[by] == name][column].dropna()
                if values.empty:
                    continue
                label = f"{name} (n = {len(values):,})"
                # The lower line shows at the edges.
                width = 2.8 - 1.6 * index / len(colours)
                style: Any = {
                    "color": colour,
                    "linestyle": DASHES[index % len(DASHES)],
                    "linewidth": width,
                    "label": label,
                }
                axes.ecdf(values, **style)
            axes.set_title(words, fontweight="normal", fontsize=9)
            axes.set_xlim(0, None)
            axes.set_ylim(0, 1.02)
            axes.grid(axis="y")
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        row[-1].legend(
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            fontsize=8,
            handlelength=2.6,
        )
        row[0].set_ylabel("turns done by then")
        figure.supxlabel(xlabel, fontsize=9)
        headline(figure, title)
        return figure
