"""A table as HTML, in a box that scrolls in a narrow window and is within reach of the keyboard."""

from collections.abc import Iterable
from html import escape


def table_html(
    label: str,
    rows: Iterable[str],
    head: Iterable[str] = (),
    *,
    kind: str = "rows",
    caption: str = "",
) -> str:
    """Returns a table of `rows`, which are HTML. `label` says to a screen reader what it holds;
    `head` are names of columns."""
    titles = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    top = (f"<caption>{caption}</caption>" if caption else "") + (
        f"<thead><tr>{titles}</tr></thead>" if titles else ""
    )
    table = f"<table>{top}<tbody>{''.join(rows)}</tbody></table>"
    return (
        f'<div class="{kind}" tabindex="0" role="group" aria-label="{escape(label)}">{table}</div>'
    )


def row_html(name: str, *cells: str, attributes: str = "") -> str:
    """Returns a row: its name, which is a text, and its cells, which are HTML."""
    return f'<tr{attributes}><th scope="row">{escape(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
