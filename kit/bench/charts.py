"""Figures of notebooks and docs, drawn with matplotlib; the title of each says what was found.

`python -m kit.bench.charts docs/figures` measures afresh and writes the figures of the docs.
"""

import asyncio
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.typing import RcKeyType
from pandas.io.formats.style import Styler

from kit.bench import overlap
from kit.bench.overlap import fan_seconds
from kit.core.trace import Span, Trace

WIDTH = 6.5
"""Inches: a column of text."""
INK, GREY, PALE = "#2B2F36", "#6F7782", "#DFE5EC"
BLUE, ORANGE, RED = "#0072B2", "#E69F00", "#B3261E"
"""Blue and orange differ in lightness too, so they survive colour blindness and a grey printer."""
KINDS = {"agent": PALE, "model": BLUE, "tool": ORANGE}
_LEGEND = {"agent": "agent at work", "model": "model call", "tool": "tool call"}
_STYLE: dict[RcKeyType, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": PALE,
    "figure.dpi": 130,
}


def waterfall(trace: Trace, title: str | None = None) -> Figure:
    """One lane an agent, in the order they began: a pale bar while it works, its model and tool calls on it.

    A failed agent is hatched and says why; one still running ends where the trace ends. `title` replaces the found one.
    """
    trace = _ended(trace)
    root, agents = trace.spans[0], [span for span in trace.spans if span.kind == "agent"]
    slowest = max(agents, key=lambda span: span.seconds, default=None) if len(agents) > 1 else None
    kinds = [kind for kind in KINDS if any(span.kind == kind for span in trace.spans)]
    with _canvas(0.95 + 0.27 * (len(agents) + 1)) as (figure, axes):
        for place, lane in enumerate([root, *agents]):
            _lane(axes, place, lane, trace.children(lane.id), bold=lane is slowest)
        axes.set_yticks(range(len(agents) + 1), ["orchestrator", *(agent.name.replace("_", " ") for agent in agents)])
        axes.set_ylim(len(agents) + 0.6, -0.6)
        axes.set_xlim(0, max(span.started + span.seconds for span in trace.spans) * 1.1)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel("seconds since the message", loc="left")
        axes.set_title(title or _found(trace, agents))
        patches = [Patch(color=KINDS[kind], label=_LEGEND[kind]) for kind in kinds]
        axes.legend(
            handles=patches, loc="upper right", bbox_to_anchor=(1, 0), ncols=3, frameon=False, fontsize=8, borderaxespad=2.4
        )
        return figure


def time_against_n(frame: pd.DataFrame, title: str | None = None) -> Figure:
    """Seconds against the number of sub-agents; `frame` has the columns of `kit.bench.overlap.Run`.

    Lines are exact (virtual time); points are measured: the median of the runs, with their whole range as whisker.
    """
    table: Any = frame.groupby(["clock", "way", "n"])["seconds"].agg(["median", "min", "max", "size"])
    with _canvas(3.5) as (figure, axes):
        for way, colour, words in (("one_by_one", GREY, "one after another"), ("mediated", BLUE, "side by side")):
            line, points = table.loc[("exact", way)]["median"], table.loc[("measured", way)]
            axes.plot(line.index, line, color=colour, linewidth=1.5, zorder=1)
            whiskers = [points["median"] - points["min"], points["max"] - points["median"]]
            axes.errorbar(points.index, points["median"], whiskers, fmt="o", color=colour, ms=5, capsize=3, zorder=2)
            axes.annotate(words, (line.index[-1], line.iloc[-1]), (9, 0), textcoords="offset points", color=colour, va="center")
        most = max(frame["n"])
        side, queue = (table.loc[("measured", way, most)]["median"] for way in ("mediated", "one_by_one"))
        axes.set_ylim(0, None)
        axes.set_xticks(sorted(set(frame["n"])))
        axes.grid(axis="y")
        axes.set_xlabel("sub-agents asked in one turn")
        axes.set_ylabel("seconds until all have answered")
        axes.set_title(title or f"{most} sub-agents side by side take {side:.2f} s, one after another {queue:.2f} s")
        _note(axes, "Lines: exact, in virtual time\n" + _points(table))
        return figure


def table(frame: pd.DataFrame) -> Styler:
    """A frame for reading: no index, text to the left, numbers to the right with two decimals."""
    words = frame.select_dtypes(exclude="number").columns
    styles: list[Any] = [{"selector": f".col{place}", "props": "text-align: left"} for place in map(frame.columns.get_loc, words)]
    style = frame.style.hide().set_table_styles([*styles, {"selector": "td", "props": "white-space: nowrap"}])
    style.format(precision=2)
    return style


@contextmanager
def _canvas(height: float) -> Generator[tuple[Figure, Axes]]:
    """An empty figure in the style of the kit; ticks and legend are made late, so all drawing happens inside."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        plt.close(figure)  # pyplot would show it a second time in a notebook
        axes.set_axisbelow(True)
        yield figure, axes


def _points(table: Any) -> str:
    side, queue = (int(table.loc[("measured", way)]["size"].max()) for way in ("mediated", "one_by_one"))
    apart = "" if side == queue else f"\n(one after another: {queue})"
    return f"Points: measured, median and range of {side} runs{apart}"


def _note(axes: Axes, text: str) -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    axes.text(0.03, 0.98, text, transform=axes.transAxes, va="top", fontsize=8, color=GREY, linespacing=1.5, bbox=box)


def _ended(trace: Trace) -> Trace:
    end = max(span.started + span.seconds for span in trace.spans)
    spans = tuple(span.model_copy(update={"ended": end if span.ended is None else span.ended}) for span in trace.spans)
    return trace.model_copy(update={"spans": spans})


def _lane(axes: Axes, place: int, lane: Span, work: Sequence[Span], bold: bool) -> None:
    """A span and the calls made in it; calls that overlap share the height."""
    failed = lane.status == "error"
    hatch, edge, ink = ("////", RED, RED) if failed else (None, "none", INK)
    axes.barh(place, lane.seconds, 0.72, lane.started, color=KINDS["agent"], hatch=hatch, edgecolor=edge, linewidth=0)
    calls = [span for span in work if span.kind != "agent"]
    rows = _rows(calls)
    height = 0.4 / (1 + max(rows, default=0))
    for call, row in zip(calls, rows, strict=True):
        colour = RED if call.error else KINDS[call.kind]
        axes.barh(place - 0.2 + height * (row + 0.5), call.seconds, height * 0.94, call.started, color=colour)
    words = f"{lane.seconds:.2f} s" + (f", {_reason(lane)}" if failed else "")
    style: dict[str, Any] = {"fontsize": 8, "color": ink, "fontweight": "bold" if bold else "normal"}
    axes.annotate(words, (lane.started + lane.seconds, place), (4, 0), textcoords="offset points", va="center", **style)


def _rows(calls: Sequence[Span]) -> list[int]:
    """For each call the first row in which nothing else runs at that time."""
    free_at: list[float] = []
    found: list[int] = []
    for call in calls:
        row = next((i for i, free in enumerate(free_at) if free <= call.started), len(free_at))
        free_at[row : row + 1] = [call.started + call.seconds]
        found.append(row)
    return found


def _reason(span: Span) -> str:
    """The reason in `axis: reason: detail`; the detail is for those who open the trace."""
    words = (span.error or "failed").split(": ")
    return words[min(1, len(words) - 1)].replace("_", " ")


def _found(trace: Trace, agents: Sequence[Span]) -> str:
    if not agents:
        return "Nobody was asked"
    seconds = fan_seconds(trace)
    if len(agents) == 1:
        return f"One sub-agent, {seconds:.2f} s"
    return f"{len(agents)} sub-agents in {seconds:.2f} s; their times add up to {sum(a.seconds for a in agents):.2f} s"


async def _figures() -> dict[str, Figure]:
    runs = [
        *await overlap.exact(),
        *await overlap.exact(pattern=overlap.one_by_one),
        *await overlap.measured(),
        *await overlap.measured(pattern=overlap.one_by_one, sizes=(1, 2, 4, 8), runs=1),
    ]
    trace = await overlap.trace_one(overlap.MIXED, think=0.1)
    return {"fan_out": time_against_n(pd.DataFrame(runs)), "waterfall": waterfall(trace)}


def main(folder: str = "docs/figures") -> None:
    """Measures, and writes the figures of the docs into `folder`."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, figure in asyncio.run(_figures()).items():
        figure.savefig(target / f"{name}.png", dpi=200)
        print(target / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:2])
