"""Values as a notebook shows them: small tables in the reader's own colours, in which every foreign text is text."""

from collections.abc import Sequence
from html import escape

_STYLE = """<style>
.kit-value{max-width:100%;overflow-x:auto;line-height:1.4}
.kit-value p{margin:.2em 0;white-space:pre-wrap;overflow-wrap:anywhere}
.kit-value table{border-collapse:collapse;table-layout:auto;margin:.3em 0;font-size:.9em}
.kit-value th,.kit-value td{text-align:left;vertical-align:top;padding:.15em .8em .15em 0;border-bottom:1px solid #8885;
 overflow-wrap:break-word;min-width:4em;max-width:30em;background:none;color:inherit}
.kit-value td:nth-child(2){min-width:10em}
.kit-value td:first-child{white-space:pre}
.kit-value summary{cursor:pointer}
.kit-value .bar{display:block;width:9em;height:.7em;margin-top:.35em;background:#8883}
.kit-value .bar i{display:block;height:100%;min-width:2px;background:#3b82c4}
.kit-value .bar i.error{background:repeating-linear-gradient(45deg,#c0392b 0 3px,#e8a79f 3px 6px)}
</style>"""
MOST_ROWS = 60
"""Rows of a table; of more, the first are shown and the rest counted."""
LONGEST = 4000
"""Characters of a paragraph."""
CELL = 120
"""Characters of a cell."""


class Html(str):
    """A text that is HTML already; any other is escaped."""


def notebook_html(*parts: Html) -> str:
    """Returns what `_repr_html_` gives: the parts, one below the other, legible on light and dark
    ground and on a phone."""
    return f'{_STYLE}<div class="kit-value">{"".join(parts)}</div>'


def text(words: str) -> Html:
    """Returns a paragraph with its line breaks, cut where it is very long."""
    return Html(f'<p dir="auto">{_cell(words, LONGEST)}</p>')


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Html:
    """Returns a table with a head; cells are texts, cut short, or Html."""
    body = "".join(_row("td", row) for row in rows[:MOST_ROWS])
    note = text(f"and {len(rows) - MOST_ROWS} more") if len(rows) > MOST_ROWS else ""
    return Html(f"<table><thead>{_row('th', head)}</thead><tbody>{body}</tbody></table>{note}")


def folded(summary: str, content: Html) -> Html:
    """Returns content that opens with a click."""
    return Html(f"<details><summary>{_cell(summary)}</summary>{content}</details>")


def bar(begin: float, end: float, *, error: bool = False) -> Html:
    """Returns a bar from one share of its width to another, 0 to 1; one that stands for an error is hatched."""
    start = _percent(begin)
    # What is very short, or begins at the very end, is still seen.
    style = f"margin-left:{min(start, 99.0)}%;width:{max(_percent(end) - start, 0.5):.1f}%"
    mark = " class=error" if error else ""
    return Html(f'<span class="bar"><i{mark} style="{style}"></i></span>')


def _percent(share: float) -> float:
    return round(100 * min(max(share, 0.0), 1.0), 1)


def _row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<{tag} dir="auto">{_cell(cell)}</{tag}>' for cell in cells) + "</tr>"


def _cell(value: object, longest: int = CELL) -> str:
    if isinstance(value, Html):
        return value
    words = str(value)
    # Cut before it is escaped: a cut in `&amp;` would be shown as it is.
    if len(words) > longest:
        words = words[:longest] + " …"
    return escape(words)
