"""Stacked bars: the shares that make up a whole, one bar a step."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from kit.bench.charts.canvas import INK, canvas
from studies.charts.label import label

HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "++++")
"""Beside its colour each part has a hatch by its place: they tell parts apart in grey."""


def stack(
    counts: pd.DataFrame, colours: Mapping[str, str], title: str, xlabel: str, ylabel: str
) -> Figure:
    """One bar a row, cut into the shares of its columns and named beside the last one; n stands above each bar.

    `counts`: rows are steps (their index is what is written below them), columns are parts in the order of `colours`.
    """
    total = counts.sum(axis=1)
    with canvas(2.6) as (figure, axes):
        bottom = pd.Series(0.0, index=counts.index)
        places = range(len(counts))
        for (part, colour), hatch in zip(colours.items(), HATCHES, strict=False):
            height = counts[part] / total.where(total > 0, 1)
            axes.bar(
                places,
                height,
                0.7,
                bottom,
                color=colour,
                edgecolor="white",
                hatch=hatch,
                linewidth=0.8,
            )
            if height.iloc[-1] > 0:
                label(axes, part, len(counts) - 0.68, bottom.iloc[-1] + height.iloc[-1] / 2, INK)
            bottom += height
        for place, n in zip(places, total, strict=True):
            axes.annotate(
                f"n = {n}", (place, 1), (0, 3), textcoords="offset points", ha="center", fontsize=8
            )
        axes.set_xticks(places, list(counts.index))
        axes.set_ylim(0, 1.1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_title(title)
        return figure
