"""Draws one turn as a waterfall: a lane for each agent, with its model and tool calls on it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kit.bench.charts.canvas import BLUE, INK, ORANGE, PALE, RED, canvas
from kit.core.trace import Span, Trace

KINDS = {"agent": PALE, "model": BLUE, "tool": ORANGE}
_LEGEND = {"agent": "agent at work", "model": "model call", "tool": "tool call"}


class Bar(NamedTuple):
    """One span of a waterfall; times in seconds since the turn began."""

    span: Span
    row: int
    """Among the model and tool calls of one agent: the first row in which no other call runs at that time."""


def bars(trace: Trace) -> list[Bar]:
    """Every span of a trace once, parents before children."""
    # Span -> for each row of its calls, when the last call in it ends.
    ends_by_parent: dict[str | None, list[float]] = defaultdict(list)
    layout: list[Bar] = []
    for _, span in trace.rows():
        row = 0
        if span.kind in ("model", "tool"):
            ends = ends_by_parent[span.parent_id]
            while row < len(ends) and ends[row] > span.started:
                row += 1
            # Past the end this appends: a row of its own.
            ends[row : row + 1] = [span.ended]
        layout.append(Bar(span, row))
    return layout


def waterfall(trace: Trace, title: str | None = None) -> Figure:
    """One lane an agent, in the order they began: a pale bar while it works, its model and tool
    calls on it.

    A failed agent is hatched and says why; one still running ends with what it is part of. `title`
    takes the place of the sentence about how long the sub-agents took.
    """
    layout = bars(trace)
    agents = sorted(
        (bar for bar in layout if bar.span.kind == "agent"), key=lambda bar: bar.span.started
    )
    slowest = max(agents, key=lambda bar: bar.span.seconds) if len(agents) > 1 else None
    with canvas(0.95 + 0.27 * (len(agents) + 1)) as (figure, axes):
        for place, lane in enumerate([layout[0], *agents]):
            calls = [
                bar
                for bar in layout
                if bar.span.parent_id == lane.span.id and bar.span.kind != "agent"
            ]
            _lane(axes, place, lane, calls, bold=lane is slowest)
        axes.set_yticks(
            range(len(agents) + 1),
            ["orchestrator", *(bar.span.name.replace("_", " ") for bar in agents)],
        )
        axes.set_ylim(len(agents) + 0.6, -0.6)
        axes.set_xlim(0, max(bar.span.ended for bar in layout) * 1.1)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel("seconds since the message", loc="left")
        axes.set_title(title or _headline(agents))
        _legend(axes, trace)
        return figure


def fan_seconds(trace: Trace) -> float:
    """From the first sub-agent's start to the last one's end; 0.0 when none was asked."""
    return _span_of([bar for bar in bars(trace) if bar.span.kind == "agent"])


def _legend(axes: Axes, trace: Trace) -> None:
    patches = [
        Patch(color=KINDS[kind], label=_LEGEND[kind])
        for kind in KINDS
        if any(s.kind == kind for s in trace.spans)
    ]
    if any(span.error for span in trace.spans):
        patches.append(Patch(color=RED, label="failed"))
    axes.legend(
        handles=patches,
        loc="upper right",
        bbox_to_anchor=(1, 0),
        ncols=4,
        frameon=False,
        fontsize=8,
        borderaxespad=2.4,
        handlelength=1.3,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def _lane(axes: Axes, place: int, lane: Bar, calls: Sequence[Bar], bold: bool) -> None:
    """A span and the calls made in it; calls that overlap share the height."""
    failed = lane.span.status == "error"
    hatch, edge, ink = ("////", RED, RED) if failed else (None, "none", INK)
    axes.barh(
        place,
        lane.span.seconds,
        0.72,
        lane.span.started,
        color=KINDS["agent"],
        hatch=hatch,
        edgecolor=edge,
        linewidth=0,
    )
    height = 0.4 / (1 + max((call.row for call in calls), default=0))
    for call in calls:
        colour = RED if call.span.error else KINDS[call.span.kind]
        axes.barh(
            place - 0.2 + height * (call.row + 0.5),
            call.span.seconds,
            height * 0.94,
            call.span.started,
            color=colour,
        )
    words = f"{lane.span.seconds:.2f} s" + (f", {_reason(lane.span)}" if failed else "")
    style: dict[str, Any] = {
        "fontsize": 8,
        "color": ink,
        "fontweight": "bold" if bold else "normal",
    }
    axes.annotate(
        words, (lane.span.ended, place), (4, 0), textcoords="offset points", va="center", **style
    )


def _reason(span: Span) -> str:
    """The reason in `axis: reason: detail`; the detail is for those who open the trace."""
    words = (span.error or "failed").split(": ")
    return words[min(1, len(words) - 1)].replace("_", " ")


def _headline(agents: Sequence[Bar]) -> str:
    if not agents:
        return "Nobody was asked"
    if len(agents) == 1:
        return f"One sub-agent, {agents[0].span.seconds:.2f} s"
    whole = sum(bar.span.seconds for bar in agents)
    return (
        f"{len(agents)} sub-agents in {_span_of(agents):.2f} s; their times add up to {whole:.2f} s"
    )


def _span_of(agents: Sequence[Bar]) -> float:
    return max((bar.span.ended for bar in agents), default=0.0) - min(
        (bar.span.started for bar in agents), default=0.0
    )
