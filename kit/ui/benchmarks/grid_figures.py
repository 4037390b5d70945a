"""Figures of a grid as PNG images for a page, drawn by kit.bench.charts, each with its description in words."""

import base64
import threading
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib

matplotlib.use("Agg")  # drawn off the main thread: no window may be opened

import pandas as pd

from kit.bench.charts import BLUE, GREY, ORANGE, RED, RUST, dots, ecdf, tradeoff
from kit.bench.grid.comparison import Summary
from kit.ui.benchmarks.verdict import value, way_name, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#5B4B8A", RED, "#2F7D5B", GREY, RUST, ORANGE, BLUE, "#17202B")
"""Colours of lines, the slowest first; they differ in lightness too."""
_DRAWING = threading.Lock()
"""pyplot has one state for the whole process."""


class GridFigure(NamedTuple):
    """A figure as a PNG image, and its description in words."""

    png: bytes
    alt: str

    def html(self, *, dark: bool) -> str:
        """Returns the image in a box that scrolls in a narrow window; `dark` inverts its lightness
        and keeps its hues."""
        source = base64.b64encode(self.png).decode()
        if dark:
            kind = ' class="dark"'
        else:
            kind = ""
        picture = f'<img{kind} alt="{escape(self.alt)}" src="data:image/png;base64,{source}">'
        return f'<div class="plate" tabindex="0" role="group" aria-label="Figure">{picture}</div>'


def draw_figures(
    ways: Sequence[Summary], rows: Sequence[Mapping[str, Any]], axes: Sequence[str], kinds: str
) -> list[GridFigure]:
    """Draws accuracy with its intervals, latency, and cost against accuracy, as far as the rows hold them."""
    turns: list[dict[str, Any | str]] = []
    for row in rows:
        turns.append({**row, "way": way_name(row, axes)})
    shares: list[Summary] = []
    for way in ways:
        if way.estimate.is_share:
            shares.append(way)
    with _DRAWING:
        figures = [
            _accuracy(shares, axes, kinds),
            _latency(turns, kinds),
            _tradeoff(shares, turns, axes, kinds),
        ]
    grid_figures: list[GridFigure] = []
    for figure in figures:
        if figure is not None:
            grid_figures.append(figure)
    return grid_figures


def _accuracy(shares: Sequence[Summary], axes: Sequence[str], kinds: str) -> GridFigure | None:
    measures = list(dict.fromkeys(words(share.scorer) for share in shares))[:2]
    rows: list[dict[str, Any]] = []
    for dot in (_dot(share, axes) for share in shares):
        if dot["line"] in measures:
            rows.append(dot)
    if not rows:
        return None
    title = f"Shares with 95 % intervals, {kinds}"
    low = int(10 * min(row["low"] for row in rows)) / 10
    colours = dict(zip(measures, (BLUE, ORANGE), strict=False))
    figure = dots(
        pd.DataFrame(rows),
        colours,
        title,
        f"{kinds}: {measures[0]}" if len(measures) == 1 else kinds,
        low=low,
    )
    figures = "; ".join(
        f"{row['row']}, {row['line']}: {row['y']:.1%} [{row['low']:.1%}, {row['high']:.1%}]"
        for row in rows
    )
    return GridFigure(_png(figure), f"{title}. {figures}.")


def _dot(way: Summary, axes: Sequence[str]) -> dict[str, Any]:
    of = way.estimate
    return {
        "row": way_name(way.way, axes),
        "line": words(way.scorer),
        "y": of.value,
        "low": of.low,
        "high": of.high,
    }


def _latency(turns: Sequence[Mapping[str, Any]], kinds: str) -> GridFigure | None:
    timings = _join_alike([row for row in turns if row.get("seconds") is not None])
    times: dict[str, list[float]] = {}
    for row in timings:
        times.setdefault(row["way"], []).append(row["seconds"])
    if not times:
        return None
    order = sorted(times, key=lambda way: -median(times[way]))
    half = len(COLOURS) // 2
    if len(order) <= len(COLOURS):
        visible = order
    else:
        visible = [*order[:half], *order[-half:]]
    slow = median(times[order[0]])
    fast = median(times[order[-1]])
    if len(visible) < len(order):
        extract = f"; the {half} slowest and {half} fastest of {len(order)}"
    else:
        extract = ""
    title = f"Half of all turns are done after {fast:.1f} to {slow:.1f} s, {kinds}{extract}"
    colours = dict(zip(visible, COLOURS[-len(visible) :], strict=True))
    columns = {"ttft": "to the first text", "seconds": "to the last"}
    columns = {
        name: caption
        for name, caption in columns.items()
        if all(any(_has(timings, way, name)) for way in visible)
    }
    figure = ecdf(pd.DataFrame(timings), columns, "way", colours, title, f"seconds, {kinds}")
    medians = "; ".join(f"{' '.join(way.split())}: {median(times[way]):.2f} s" for way in visible)
    return GridFigure(_png(figure), f"{title}. Medians: {medians}.")


def _join_alike(turns: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Gives ways that took the same time turn by turn one line with all their names: they would lie on one another."""
    times: dict[str, list[float | None]] = {}
    for row in turns:
        times.setdefault(row["way"], []).extend((row["seconds"], row["ttft"]))
    alike: dict[tuple[float | None, ...], list[str]] = {}
    for way, figures in times.items():
        alike.setdefault(tuple(figures), []).append(way)
    names: dict[str, str] = {}
    for ways in alike.values():
        for way in ways:
            names[way] = ",\n".join(ways)
    mappings: list[Mapping[str, Any]] = []
    for row in turns:
        mappings.append({**row, "way": names[row["way"]]})
    return mappings


def _has(turns: Sequence[Mapping[str, Any]], way: str, name: str) -> list[bool]:
    rows: list[bool] = []
    for row in turns:
        if row["way"] == way:
            rows.append(row[name] is not None)
    return rows


def _tradeoff(
    shares: Sequence[Summary], turns: Sequence[Mapping[str, Any]], axes: Sequence[str], kinds: str
) -> GridFigure | None:
    if not shares:
        return None
    measure = shares[0].scorer
    has_prices = all(row["cost"] is not None for row in turns)
    costs: dict[str, list[float]] = {}
    for row in turns:
        if has_prices:
            each = 1000 * row["cost"]
        else:
            each = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
        costs.setdefault(row["way"], []).append(each)
    dotted: list[dict[str, Any | float]] = []
    for dot in (_dot(share, axes) for share in shares if share.scorer == measure):
        dotted.append(
            {"way": dot["row"], **dot, "x": sum(costs[dot["row"]]) / len(costs[dot["row"]])}
        )
    if has_prices:
        axis = "dollars for 1,000 turns"
    else:
        axis = "tokens of a turn, read and written; no price is known"
    title = f"Cost against accuracy with its 95 % interval, {kinds}"
    figure = tradeoff(pd.DataFrame(dotted), title, f"{axis} ({kinds})", words(measure))
    figures = "; ".join(
        f"{dot['way']}: {value(dot['y'], measure, share=True)} at {dot['x']:,.2f}" for dot in dotted
    )
    return GridFigure(_png(figure), f"{title}. {words(measure)} at {axis}: {figures}.")


def _png(figure: "Figure") -> bytes:
    into = BytesIO()
    figure.savefig(into, format="png", dpi=200, transparent=True)
    return into.getvalue()
