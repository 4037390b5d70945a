"""What sub-agents found, beside the text: cards and tables, drawn as the deck says. Payloads are text, never markup."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import streamlit as st

from kit.compose.page import ComponentCard, ComponentTable, Payload, Renderer
from kit.core.bodies.call import ToolStarted
from kit.core.bodies.speech import Component
from kit.core.display.count import many
from kit.ui.shared.turn_view import TurnView


def draw_components(view: TurnView, renderers: Mapping[str, Renderer]) -> None:
    """Draws what was found in a turn; `renderers` by component type, a plain card for a type that has none."""
    if html := components_html(view, renderers):
        st.html(html)


def components_of(view: TurnView) -> list[tuple[str, list[Payload]]]:
    """Returns each type and its payloads in the order they came, each thing once; of sub-agents
    that answered, and no others.

    Where one chose what to show by render_* calls, only that is returned.
    """
    steps = {step.span_id for step in view.steps if step.state in ("ok", "partial")}
    rendering: set[str] = set()
    for e in view.events:
        if isinstance(e.body, ToolStarted) and e.body.tool.startswith("render_"):
            rendering.add(e.span_id)
    components = [
        (e, e.body)
        for e in view.events
        if isinstance(e.body, Component) and steps & {e.span_id, e.parent_span_id}
    ]
    choosy: set[str] = set()
    for event, body in components:
        if event.span_id in rendering:
            choosy.add(body.agent)
    types: dict[str, dict[str, Payload]] = {}
    for number, (event, body) in enumerate(components):
        if event.span_id in rendering or body.agent not in choosy:
            types.setdefault(body.type, {})[str(body.payload.get("id", number))] = body.payload
    pairs: list[tuple[str, list[Payload]]] = []
    for kind, payloads in types.items():
        pairs.append((kind, list(payloads.values())))
    return pairs


def components_html(view: TurnView, renderers: Mapping[str, Renderer]) -> str:
    """Returns all of it as HTML, cards in one row and tables under it; empty when nothing was found.

    It is folded away where the answer names all of it: nobody reads the same list twice.
    """
    items: list[tuple[str, ComponentCard | ComponentTable]] = []
    for kind, payloads in components_of(view):
        for item in _items(renderers.get(kind, plain_cards), payloads):
            items.append((item.heading or kind.replace("_", " ").capitalize(), item))
    if not items:
        return ""
    cards: list[str] = []
    for heading, item in items:
        if isinstance(item, ComponentCard):
            cards.append(_card(heading, item))
    tables: list[str] = []
    for heading, item in items:
        if isinstance(item, ComponentTable):
            tables.append(_table(heading, item))
    text = f"{view.lead}\n{view.answer}"
    if cards:
        list_html = f'<ul tabindex="0" aria-label="What was found">{"".join(cards)}</ul>'
    else:
        list_html = ""
    if all(name in text for _, item in items for name in _names(item)):
        state = ""
    else:
        state = " open"
    counts = ((len(cards), "card"), (len(tables), "table"))
    summary = "What was found: " + " and ".join(
        many(count, noun) for count, noun in counts if count
    )
    details = f"<details{state}><summary>{summary}</summary>{list_html}{''.join(tables)}</details>"
    return f'<section class="found">{details}</section>'


def _names(item: ComponentCard | ComponentTable) -> list[str]:
    if isinstance(item, ComponentCard):
        return [item.title]
    names: list[str] = []
    for row in item.rows:
        for column in item.figures:
            if row[column]:
                names.append(row[column])
    return names


def _items(
    renderer: Renderer, payloads: Sequence[Payload]
) -> Sequence[ComponentCard | ComponentTable]:
    try:
        return renderer(payloads)
    except Exception:  # a payload of another shape than its type has: it is shown as what it is, and the page goes on
        return plain_cards(payloads)


def plain_cards(payloads: Sequence[Payload]) -> list[ComponentCard]:
    """Draws things of any type: a title and the first four fields that are text or numbers."""
    return [_plain_card(payload) for payload in payloads]


def _plain_card(payload: Payload) -> ComponentCard:
    fields: dict[str, str | int | float] = {}
    for name, value in payload.items():
        if isinstance(value, str | int | float):
            fields[name] = value
    title = next((str(fields[name]) for name in ("title", "name", "id") if name in fields), "")
    lines = tuple(
        f"{name.replace('_', ' ').capitalize()}: {value}"
        for name, value in list(fields.items())[:4]
    )
    return ComponentCard(title=title or "Found", lines=lines)


def _card(heading: str, card: ComponentCard) -> str:
    if card.mark:
        mark = f"<em>{escape(card.mark)}</em>"
    else:
        mark = ""
    lines = "".join(f"<span>{escape(line)}</span>" for line in card.lines if line)
    return (
        f'<li data-found="{escape(heading)}"><small>{escape(heading)} '
        f"{mark}</small><b>{escape(card.title)}</b>{lines}</li>"
    )


def _table(heading: str, table: ComponentTable) -> str:
    def cells(row: Iterable[str], tag: str, scope: str = "") -> str:
        right = ' class="figure"'
        return "".join(
            f"<{tag}{scope}{right if i in table.figures else ''}>{escape(c)}</{tag}>"
            for i, c in enumerate(row)
        )

    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    head = cells(table.columns, "th", ' scope="col"')
    inner = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    name = escape(heading)
    return f'<div class="rows" data-found="{name}" tabindex="0" role="group" aria-label="{name}">{inner}</div>'
