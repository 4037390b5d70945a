"""A routing report as a heat map, card against card, and under it the questions that reached another card."""

from html import escape

from kit.bench.routing_report import NOBODY, Confusion, RoutingReport
from kit.ui.shared.wording import label

_EXAMPLES = 5


def matrix(report: RoutingReport) -> dict[tuple[str, str], int]:
    """Returns how many questions each pair has: (card a question was for, card that was asked). The
    diagonal was routed right."""
    right = {(card, card): share.right or 0 for card, share in report.accuracy.items()}
    return right | {(loss.card, loss.to): len(loss.queries) for loss in report.confusions}


def routes_html(report: RoutingReport) -> str:
    """Returns the whole report as HTML."""
    return f'<div class="routes">{heat_html(report)}<div>{lost_html(report)}</div></div>'


def heat_html(report: RoutingReport) -> str:
    """Returns the matrix as an HTML table whose cells are tinted by their share of the row."""
    cells = matrix(report)
    rows = [*report.accuracy, *([NOBODY] if any(card == NOBODY for card, _ in cells) else [])]
    columns = [*report.accuracy, *sorted({to for _, to in cells} - set(report.accuracy))]
    head = "".join(f'<th scope="col"><span>{escape(_name(to))}</span></th>' for to in columns)
    body = "".join(_row(card, columns, cells, report) for card in rows)
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
    card: str, columns: list[str], cells: dict[tuple[str, str], int], report: RoutingReport
) -> str:
    share = report.accuracy.get(card)
    if share:
        total = share.n
    else:
        total = sum(cells.get((card, to), 0) for to in columns)
    tds = "".join(_cell(cells.get((card, to), 0), total, right=card == to) for to in columns)
    if share:
        rate = f"<b>{share.value:.0%}</b> <span>≥ {share.low:.0%}</span>"
    else:
        rate = "–"
    return f'<tr><th scope="row">{escape(_name(card))}</th>{tds}<td class="sum">{rate}</td></tr>'


def _cell(count: int, total: int, *, right: bool) -> str:
    if not count:
        return "<td></td>"
    strength = round(
        100
        * (
            0.12 + 0.3 * count / max(total, 1)
            if right
            else min(0.2 + 2 * count / max(total, 1), 0.6)
        )
    )
    return (
        f'<td class="{"right" if right else "wrong"}" style="--strength:{strength}%">{count}</td>'
    )


def lost_html(report: RoutingReport) -> str:
    """Returns as HTML how many questions each card loses to which other card, the greatest loss first."""
    if not report.confusions:
        return '<p class="lost">Every question went where it belongs.</p>'
    return '<ul class="lost">' + "".join(map(_loss, report.confusions)) + "</ul>"


def _loss(loss: Confusion) -> str:
    texts = list(dict.fromkeys(loss.queries))
    if len(texts) > _EXAMPLES:
        left_out = [f"and {len(texts) - _EXAMPLES} more"]
    else:
        left_out = []
    examples = "".join(f"<li>{escape(text)}</li>" for text in texts[:_EXAMPLES] + left_out)
    head = f"<b>{escape(_name(loss.card))}</b> loses {len(loss.queries)} to <b>{escape(_name(loss.to))}</b>"
    return f"<li>{head}<ul>{examples}</ul></li>"


def _name(card: str) -> str:
    if card == NOBODY:
        return "Nobody"
    return label(card)
