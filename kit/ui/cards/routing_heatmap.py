"""A routing report as a heat map, card against card, and under it the questions that reached another card."""

from typing import NamedTuple

from kit.bench.routing_report import NOBODY, RoutingReport
from kit.metrics.estimate import Estimate
from kit.ui.shared.template import render
from kit.ui.shared.wording import label

_EXAMPLES = 5
"""Questions that are shown of each loss."""


class Cell(NamedTuple):
    """How many questions of one card reached another one, and how strongly that is tinted, in percent."""

    questions: int
    kind: str
    strength: int


def matrix(report: RoutingReport) -> dict[tuple[str, str], int]:
    """Returns how many questions each pair has: (card a question was for, card that was asked). The
    diagonal was routed right."""
    counts: dict[tuple[str, str], int] = {}
    for card, share in report.accuracy.items():
        counts[card, card] = share.right or 0
    for loss in report.confusions:
        counts[loss.card, loss.to] = len(loss.queries)
    return counts


def routes_html(report: RoutingReport) -> str:
    """Returns the report as HTML: a matrix whose cells are tinted by their share of the row, and the
    questions that each card loses, the greatest loss first."""
    counts = matrix(report)
    rows = list(report.accuracy)
    if any(card == NOBODY for card, _ in counts):
        rows.append(NOBODY)
    foreign = {target for _, target in counts} - set(report.accuracy)
    columns = [*report.accuracy, *sorted(foreign)]
    lines: list[tuple[str, list[Cell], Estimate | None]] = []
    for card in rows:
        row = [counts.get((card, column), 0) for column in columns]
        share = report.accuracy.get(card)
        total = sum(row)
        if share:
            total = share.n
        cells: list[Cell] = []
        for column, count in zip(columns, row, strict=True):
            cells.append(_cell(count, count / max(total, 1), right=card == column))
        lines.append((_name(card), cells, share))
    losses = [(_name(loss.card), _name(loss.to), loss.queries) for loss in report.confusions]
    names = list(map(_name, columns))
    return render("routes", columns=names, rows=lines, losses=losses, examples=_EXAMPLES)


def _cell(count: int, share: float, *, right: bool) -> Cell:
    # A few lost questions are what a reader looks for: they are tinted more strongly than many right ones.
    if right:
        return Cell(count, "right", round(12 + 30 * share))
    return Cell(count, "wrong", round(min(20 + 200 * share, 60)))


def _name(card: str) -> str:
    if card == NOBODY:
        return "Nobody"
    return label(card)
