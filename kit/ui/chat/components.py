"""What sub-agents found, beside the text: cards and tables, drawn as the deck says. Payloads are text, never markup."""

from collections.abc import Mapping, Sequence

import streamlit as st

from kit.compose.page import ComponentCard, ComponentTable, Payload, Renderer
from kit.core.bodies.call import ToolStarted
from kit.core.bodies.speech import Component
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import label


def draw_components(view: TurnView, renderers: Mapping[str, Renderer]) -> None:
    """Draws what was found in a turn; `renderers` by component type, a plain card for a type that has none."""
    if html := components_html(view, renderers):
        st.html(html)


def components_of(view: TurnView) -> list[tuple[str, list[Payload]]]:
    """Returns each type and its payloads in the order they came, each thing once; of sub-agents
    that answered, and no others.

    Where one chose what to show by render_* calls, only that is returned.
    """
    answered_spans: set[str | None] = set()
    for step in view.steps:
        if step.state in ("ok", "partial"):
            answered_spans.add(step.span_id)
    rendering: set[str] = set()
    components: list[tuple[bool, Component]] = []
    choosy_agents: set[str] = set()
    for event in view.events:
        body = event.body
        if isinstance(body, ToolStarted) and body.tool.startswith("render_"):
            rendering.add(event.span_id)
        # A component comes from a sub-agent's own span or from one of its tools.
        is_answered = event.span_id in answered_spans or event.parent_span_id in answered_spans
        if isinstance(body, Component) and is_answered:
            is_rendered = event.span_id in rendering
            components.append((is_rendered, body))
            if is_rendered:
                choosy_agents.add(body.agent)
    types: dict[str, dict[str, Payload]] = {}
    for number, (is_rendered, body) in enumerate(components):
        if is_rendered or body.agent not in choosy_agents:
            identity = str(body.payload.get("id", number))
            types.setdefault(body.type, {})[identity] = body.payload
    return [(kind, list(payloads.values())) for kind, payloads in types.items()]


def components_html(view: TurnView, renderers: Mapping[str, Renderer]) -> str:
    """Returns all of it as HTML, cards in one row and tables under it; empty when nothing was found.

    It is folded away where the answer names all of it: nobody reads the same list twice.
    """
    text = f"{view.lead}\n{view.answer}"
    cards: list[tuple[str, ComponentCard]] = []
    tables: list[tuple[str, ComponentTable]] = []
    folded = True
    for kind, payloads in components_of(view):
        for item in _items(renderers.get(kind, plain_cards), payloads):
            heading = item.heading or label(kind)
            if isinstance(item, ComponentCard):
                cards.append((heading, item))
            else:
                tables.append((heading, item))
            folded = folded and all(name in text for name in _names(item))
    return render("components", cards=cards, tables=tables, folded=folded)


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
    except Exception:
        # A payload of another shape than its type has is shown as what it is, and the page goes on.
        return plain_cards(payloads)


def plain_cards(payloads: Sequence[Payload]) -> list[ComponentCard]:
    """Draws things of any type: a title and the first four fields that are text or numbers."""
    return list(map(_plain_card, payloads))


def _plain_card(payload: Payload) -> ComponentCard:
    fields: dict[str, str | int | float] = {}
    for name, value in payload.items():
        if isinstance(value, str | int | float):
            fields[name] = value
    title = fields.get("title") or fields.get("name") or fields.get("id") or "Found"
    lines: list[str] = []
    for name, value in list(fields.items())[:4]:
        lines.append(f"{label(name)}: {value}")
    return ComponentCard(title=str(title), lines=tuple(lines))
