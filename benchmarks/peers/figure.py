"""The figure of the README: CPU of a turn in every framework, for a small turn and a large one."""

import textwrap
from pathlib import Path

from matplotlib.figure import Figure

from kit.bench.charts.canvas import BLUE, GREY, INK, canvas
from report import KIT, Summary, label

TURNS = {
    "ms, N=2": ("two sub-agents", "o"),
    "ms, N=8, tools": ("eight sub-agents, a tool each", "D"),
}
"""Cell -> what it is, and its marker, which tells the two apart without colour."""


def save(summary: Summary, path: Path) -> None:
    """Writes the figure, on white, so that it can be read on a dark page too."""
    draw(summary).savefig(path, dpi=200, facecolor="white", bbox_inches="tight")


def draw(summary: Summary) -> Figure:
    """A row for each framework, the quickest first, on a logarithmic scale; the kit in blue."""
    small = next(iter(TURNS))
    adapters = sorted(
        summary.figures, key=lambda adapter: summary.figure(adapter, small) or float("inf")
    )
    with canvas(1.5 + 0.32 * len(adapters)) as (figure, axes):
        for cell, (turn, marker) in TURNS.items():
            axes.plot([], [], marker, color=GREY, label=turn)
            for place, adapter in enumerate(adapters):
                if (value := summary.figure(adapter, cell)) is None:
                    continue
                colour = BLUE if adapter == KIT else GREY
                axes.plot(value, place, marker, color=colour, ms=6, zorder=3)
                text = f"{value:.{1 if value >= 10 else 2}f}"
                axes.annotate(
                    text,
                    (value, place),
                    (0, 6),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                    color=INK,
                )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        names = [
            label(summary, a) + ("" if summary.figure(a, small) else ": failed") for a in adapters
        ]
        axes.set_yticks(range(len(adapters)), names)
        for adapter, tick in zip(adapters, axes.get_yticklabels(), strict=True):
            tick.set(
                color=BLUE if adapter == KIT else INK,
                fontweight="bold" if adapter == KIT else "normal",
            )
        axes.set_ylim(len(adapters) - 0.4, -0.7)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.set_title("What a turn costs beside its models")
        axes.set_xlabel("CPU, milliseconds a turn, stub models; logarithmic", loc="left")
        axes.legend(loc="upper right", fontsize=8, frameon=False)
        figure.text(0.01, -0.01, _footnote(summary), fontsize=6, color=GREY, va="top")
        return figure


def _footnote(summary: Summary) -> str:
    versions = ", ".join(
        f"{package} {version}" for package, version in sorted(summary.versions.items())
    )
    text = f"{summary.date}, medians of {summary.rounds} rounds. Only {label(summary, KIT)} keeps a trace. {versions}."
    return textwrap.fill(text, 150)
