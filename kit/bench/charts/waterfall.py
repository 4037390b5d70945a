"""One turn as a waterfall: who worked when, and at what."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kit.bench.charts.canvas import BLUE, INK, ORANGE, PALE, RED, canvas
from kit.core.trace import Span, Trace

KINDS = {"agent": PALE, "model": BLUE, "tool": ORANGE}
_LEGEND = {"agent": "agent at work", "model": "model call", "tool": "tool call"}


def waterfall(trace: Trace, title: str | None = None) -> Figure:
    """One lane an agent, in the order they began: a pale bar while it works, its model and tool calls on it.

    A failed agent is hatched and says why; one still running ends where the trace ends. `title` replaces the found one.
    """
    trace = _ended(trace)
    root, agents = trace.spans[0], [span for span in trace.spans if span.kind == "agent"]
    slowest = max(agents, key=lambda span: span.seconds, default=None) if len(agents) > 1 else None
    kinds = [kind for kind in KINDS if any(span.kind == kind for span in trace.spans)]
    with canvas(0.95 + 0.27 * (len(agents) + 1)) as (figure, axes):
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
        return figure


def fan_seconds(trace: Trace) -> float:
    """From the first sub-agent's start to the last one's end; 0.0 when none was asked."""
    spans = [span for span in trace.spans if span.kind == "agent"]
    if not spans:
        return 0.0
    return max(span.ended or span.started for span in spans) - min(span.started for span in spans)


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
