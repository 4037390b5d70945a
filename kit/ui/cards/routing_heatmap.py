"""A routing report as a heat map, card against card, and under it the questions that reached another card."""

from html import escape

from kit.bench.routing_report import NOBODY, Confusion, RoutingReport
from kit.ui.shared.wording import label

_EXAMPLES = 5


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
    """Returns the whole report as HTML."""
    return f'<div class="routes">{heat_html(report)}<div>{lost_html(report)}</div></div>'


def heat_html(report: RoutingReport) -> str:
    """Returns the matrix as an HTML table whose cells are tinted by their share of the row."""
    counts = matrix(report)
    rows = list(report.accuracy)
    if any(card == NOBODY for card, _ in counts):
        rows.append(NOBODY)
    foreign = {target for _, target in counts} - set(report.accuracy)
    columns = [*report.accuracy, *sorted(foreign)]
    head = "".join(f'<th scope="col"><span>{escape(_name(card))}</span></th>' for card in columns)
    body = "".join(_row(card, columns, counts, report) for card in rows)
    return (
        '<div class="heat" tabindex="0" role="group" aria-label="Whom questions were for, '
        'against who was asked"><table>'
        "<caption>A row for each card: where its questions went. On the diagonal they were routed right; "
        "≥ is the lower end of the 95 % interval.</caption>"
        f'<thead><tr><th scope="col">Meant for</th>{head}<th scope="col" '
        f'class="sum"><span>Right</span></th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(
    card: str, columns: list[str], counts: dict[tuple[str, str], int], report: RoutingReport
) -> str:
    row = [counts.get((card, column), 0) for column in columns]
    share = report.accuracy.get(card)
    total = sum(row)
    rate = "–"
    if share:
        total = share.n
        rate = f"<b>{share.value:.0%}</b> <span>≥ {share.low:.0%}</span>"
    cells = ""
    for column, count in zip(columns, row, strict=True):
        cells += _cell(count, total, right=card == column)
    return f'<tr><th scope="row">{escape(_name(card))}</th>{cells}<td class="sum">{rate}</td></tr>'


def _cell(count: int, total: int, *, right: bool) -> str:
    if not count:
        return "<td></td>"
    share = count / max(total, 1)
    if right:
        kind = "right"
        strength = 12 + 30 * share
    else:
        # A few lost questions are what a reader looks for: they are tinted more strongly than many right ones.
        kind = "wrong"
        strength = min(20 + 200 * share, 60)
    return f'<td class="{kind}" style="--strength:{round(strength)}%">{count}</td>'


def lost_html(report: RoutingReport) -> str:
    """Returns as HTML how many questions each card loses to which other card, the greatest loss first."""
    if not report.confusions:
        return '<p class="lost">Every question went where it belongs.</p>'
    return f'<ul class="lost">{"".join(map(_loss, report.confusions))}</ul>'


def _loss(loss: Confusion) -> str:
    queries = list(dict.fromkeys(loss.queries))
    examples = queries[:_EXAMPLES]
    if len(queries) > _EXAMPLES:
        examples.append(f"and {len(queries) - _EXAMPLES} more")
    items = "".join(f"<li>{escape(text)}</li>" for text in examples)
    head = f"<b>{escape(_name(loss.card))}</b> loses {len(loss.queries)} to <b>{escape(_name(loss.to))}</b>"
    return f"<li>{head}<ul>{items}</ul></li>"


def _name(card: str) -> str:
    if card == NOBODY:
        return "Nobody"
    return label(card)
