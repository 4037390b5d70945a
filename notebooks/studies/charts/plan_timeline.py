"""When a plan was written and its steps were worked on: a lane for the planner and one for each step."""

from collections.abc import Iterable, Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kit.bench.charts.canvas import BLUE, GREY, INK, RUST, headline, panels
from studies.plan_replans import Span

_COLOURS = {"planning": GREY, "complete": BLUE, "failed": RUST}
_HATCHES = {"planning": "....", "complete": "", "failed": "////"}


def plan_timeline(runs: Mapping[str, Iterable[Span]], title: str) -> Figure:
    """A panel for each run, on one scale of time; what failed is hatched, and a line stands where
    the rest was written anew."""
    spans = {name: list(part) for name, part in runs.items()}
    lanes = sorted(
        {span.lane for part in spans.values() for span in part}
    )  # "planner" comes before "step 1"
    last = max(span.end for part in spans.values() for span in part)
    with panels(1.5 + 0.24 * len(lanes), len(spans)) as (figure, row):
        for axes, (name, part) in zip(row, spans.items(), strict=True):
            for span in part:
                style: Any = {
                    "color": _COLOURS[span.kind],
                    "hatch": _HATCHES[span.kind],
                    "edgecolor": "white",
                }
                axes.barh(
                    lanes.index(span.lane),
                    span.end - span.start,
                    0.62,
                    span.start,
                    linewidth=0.6,
                    **style,
                )
                if span.kind == "failed":
                    axes.axvline(
                        span.end, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0
                    )
            axes.set_title(name, fontweight="normal", fontsize=9)
            axes.set_xlim(0, last * 1.02)
            axes.set_ylim(len(lanes) - 0.5, -0.5)
            axes.set_yticks(range(len(lanes)), lanes)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="x")
        patches = [
            Patch(facecolor=_COLOURS[kind], hatch=_HATCHES[kind], edgecolor="white", label=kind)
            for kind in _COLOURS
        ]
        figure.legend(
            handles=patches, loc="outside lower right", ncols=3, frameon=False, fontsize=8
        )
        figure.supxlabel("virtual seconds since the plan began", fontsize=9, x=0.3)
        headline(figure, title)
        return figure
