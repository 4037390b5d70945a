"""The figures of a run, as SVG for the page and as files: shares, times, and cost against accuracy."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from kit.bench.charts.dots import dots
from kit.bench.charts.ecdf import ecdf
from kit.bench.charts.tradeoff import tradeoff
from kit.bench.grid.failures import way_name
from kit.bench.grid.report import rows_by_way
from kit.bench.run_page.content import RunContent, Spend
from kit.core.errors import DataError
from kit.core.value import Value

FORMATS = ("pdf", "svg")
_COLOURS = ("#0072B2", "#B8500B", "#6F7782", "#7A4FD0", "#0E8A66", "#B3261E", "#946200", "#C11574")
_MOST_LINES = 8
"""Ways that a figure of times can tell apart."""
_LONGEST = 36
"""Characters of a way's name that leave room for the figure."""


class PageFigure(Value):
    """A figure as the page holds it."""

    caption: str
    svg: str


def page_figures(content: RunContent, folder: Path | None = None) -> list[PageFigure]:
    """Returns the figures that the run has data for. With a folder each is written there too, as PDF
    and as SVG. Raises DataError where that cannot be done."""
    figures: list[PageFigure] = []
    for name, (caption, figure) in _figures(content).items():
        words = f"{caption} The figures are {' and '.join(content.run.kinds)}."
        figures.append(PageFigure(caption=words, svg=_svg(figure)))
        if folder is not None:
            _write(figure, folder, name)
    return figures


def _figures(content: RunContent) -> dict[str, tuple[str, Figure]]:
    figures: dict[str, tuple[str, Figure]] = {}
    for name, draw in (("shares", _shares), ("seconds", _seconds), ("tradeoff", _tradeoff)):
        drawing = draw(content)
        if drawing is not None:
            figures[name] = drawing
    return figures


def _shares(content: RunContent) -> tuple[str, Figure] | None:
    labels = _way_labels(content)
    rows: list[dict[str, Any]] = []
    for summary in content.summaries:
        if summary.estimate.is_share:
            columns = summary.estimate.columns()
            rows.append(
                {
                    "row": labels[way_name(summary.way.values())],
                    "line": _label(summary.scorer),
                    **columns,
                }
            )
    if not rows:
        return None
    measures = list(dict.fromkeys(row["line"] for row in rows))[: len(_COLOURS)]
    colours = dict(zip(measures, _COLOURS, strict=False))
    kinds = " and ".join(content.run.kinds)
    noun = measures[0] if len(measures) == 1 else "share"
    title = f"How often each way is right ({kinds})"
    figure = dots(pd.DataFrame(rows), colours, title, f"{noun}, with its 95 % interval")
    return "Shares with their 95 % intervals, by way and score.", figure


def _seconds(content: RunContent) -> tuple[str, Figure] | None:
    slowest_first = sorted(
        (spend for spend in content.spends if spend.seconds is not None), key=_seconds_of
    )
    slowest_first.reverse()
    if not slowest_first or len(slowest_first) > _MOST_LINES:
        return None
    labels = _way_labels(content)
    rows: list[dict[str, Any]] = []
    for way, of_way in rows_by_way(content.rows, content.axes).items():
        for row in of_way:
            rows.append({"way": labels[way], "seconds": row.get("seconds")})
    names = [labels[spend.way] for spend in slowest_first]
    colours = dict(zip(names, _COLOURS, strict=False))
    title = f"Half of the turns took {_seconds_of(slowest_first[-1]):.3g} s or less"
    if len(names) > 1:
        title += f" by the fastest way, {_seconds_of(slowest_first[0]):.3g} s by the slowest"
    columns = {"seconds": "to the last text"}
    figure = ecdf(pd.DataFrame(rows), columns, "way", colours, title, "seconds of a turn")
    return "Share of turns that were done after so many seconds, a line for each way.", figure


def _seconds_of(spend: Spend) -> float:
    return spend.seconds or 0.0


def _tradeoff(content: RunContent) -> tuple[str, Figure] | None:
    spends = {spend.way: spend for spend in content.spends}
    has_prices = all(spend.dollars for spend in content.spends)
    costs = {way: _cost(spend, has_prices=has_prices) for way, spend in spends.items()}
    labels = _way_labels(content)
    rows: list[dict[str, Any]] = []
    for summary in content.summaries:
        if summary.scorer != content.measure or not summary.estimate.is_share:
            continue
        cost = costs[way_name(summary.way.values())]
        if cost is None:
            return None
        columns = summary.estimate.columns()
        rows.append({"way": labels[way_name(summary.way.values())], "x": cost, **columns})
    if len(rows) < 2:
        return None
    unit = "dollars for 1,000 turns" if has_prices else "tokens of a turn, read and written"
    title = "What a way costs against how often it is right"
    figure = tradeoff(pd.DataFrame(rows), title, unit, _label(content.measure))
    return f"{content.measure} against {unit}, with 95 % intervals.", figure


def _cost(spend: Spend, *, has_prices: bool) -> float | None:
    if has_prices and spend.dollars is not None:
        return 1000 * spend.dollars / spend.turns
    if spend.tokens_in is None or spend.tokens_out is None:
        return None
    return spend.tokens_in + spend.tokens_out


def _way_labels(content: RunContent) -> dict[str, str]:
    """Way -> its name in a figure: a long one, such as a file's path, is cut, and none is two ways'."""
    labels: dict[str, str] = {}
    for number, spend in enumerate(content.spends, 1):
        label = spend.way
        if len(label) > _LONGEST:
            label = f"{number}: …{label[-_LONGEST:]}"
        labels[spend.way] = _label(label)
    return labels


def _label(text: str) -> str:
    """A text as it stands: matplotlib takes what is between dollar signs for a formula."""
    return text.replace("$", r"\$")


def _svg(figure: Figure) -> str:
    settings: Mapping[Any, Any] = {"svg.hashsalt": "run"}
    text = io.StringIO()
    with mpl.rc_context(settings):
        figure.savefig(
            text, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    # Inside HTML there is no place for the declarations before the element.
    return text.getvalue()[text.getvalue().index("<svg") :]


def _write(figure: Figure, folder: Path, name: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for form in FORMATS:
            figure.savefig(folder / f"{name}.{form}")
    except OSError as error:
        raise DataError(
            f"the figures cannot be written to {folder}: {error.strerror or error}"
        ) from error
