"""What the kit's Opik client sent of one turn, as a tree of spans: drawn from its requests, not by Opik."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from matplotlib.figure import Figure

from kit.bench.charts.canvas import BLUE, GREY, INK, ORANGE, PALE, canvas

_KINDS = {"general": PALE, "llm": BLUE, "tool": ORANGE}
_HATCHES = {"general": "", "llm": "", "tool": "////"}


def sent_trace(trace: Mapping[str, Any], spans: Iterable[Mapping[str, Any]]) -> Figure:
    """One row for the trace and one for each span below its parent: name, type and tokens as sent, and when it ran.

    `trace` and `spans` are what arrived at a stub of the server, as JSON.
    """
    rows = [(0, trace), *_tree(list(spans), None, 1)]
    began = _moment(trace["start_time"])
    with canvas(0.9 + 0.2 * len(rows)) as (figure, axes):
        for place, (_, row) in enumerate(rows):
            kind, start = row.get("type", "trace"), _moment(row["start_time"]) - began
            wide = _moment(row["end_time"]) - _moment(row["start_time"])
            axes.barh(
                place,
                wide,
                0.6,
                start,
                color=_KINDS.get(kind, GREY),
                hatch=_HATCHES.get(kind, ""),
                edgecolor="white",
            )
            tokens = (row.get("usage") or {}).get("total_tokens")
            words = f"{kind}, {tokens:,} tokens" if tokens else kind
            axes.annotate(
                words,
                (start + wide, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color=INK,
            )
        axes.set_yticks(
            range(len(rows)),
            ["   " * depth + row["name"] for depth, row in rows],
            fontsize=8,
            ha="left",
        )
        axes.tick_params(axis="y", length=0, pad=150)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.spines["left"].set_visible(False)
        figure.supxlabel(
            "seconds since the message; drawn by the kit from the requests of its client, not by Opik",
            fontsize=9,
        )
        axes.set_title(f"Sent to Opik for one turn: a trace and {len(rows) - 1} spans")
        return figure


def _tree(
    spans: list[Mapping[str, Any]], parent: str | None, depth: int
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    children = [span for span in spans if span.get("parent_span_id") == parent]
    for span in sorted(children, key=lambda span: span["start_time"]):
        yield depth, span
        yield from _tree(spans, span["id"], depth + 1)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
