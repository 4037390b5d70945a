"""One agent card: how it stands here, its description, and the rest of it as its file has it."""

import yaml

from kit.compose.deck import Deck
from kit.core.card import AgentCard
from kit.ui.shared.tag import Tag
from kit.ui.shared.template import render

IN_WORDS = {"id", "description", "role", "version", "status", "flag"}
"""Fields that stand above the others."""


def card_html(card: AgentCard, deck: Deck, running: str | None) -> str:
    """Returns a card as HTML; `running` is the key of its bound model, None when it is unbound."""
    # The stand-in's ways to ask are hundreds of lines.
    fields = card.model_dump(
        mode="json", exclude_defaults=True, exclude={*IN_WORDS, "requests", "policy"}
    )
    fields["policy"] = deck.policy(card).model_dump(exclude_none=True)
    text = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return render(
        "card", card=card, state=_state(card, deck), notes=_notes(card, deck, running), text=text
    )


def _state(card: AgentCard, deck: Deck) -> list[Tag]:
    tags = [Tag(text=card.role), Tag(text=f"version {card.version}")]
    if card.flag:
        is_on = deck.on(card.flag)
        state = "on" if is_on else "off"
        tags.append(Tag(text=f"flag {card.flag}: {state}", tone="" if is_on else "warn"))
    tags.append(Tag(text=card.status, tone="good" if card.status == "active" else "warn"))
    return tags


def _notes(card: AgentCard, deck: Deck, running: str | None) -> list[str]:
    """Says what its file does not: whether it is bound here, on which model, and which of its tools are off."""
    notes: list[str] = []
    if running is None:
        notes.append("Not bound here: draft, or its flag is off.")
    elif card.run is None and running != card.model:
        notes.append(f"Here it runs on {running}.")
    bound_tools = deck.tools_on(card)
    off = [tool for tool in card.tools if tool not in bound_tools]
    if off:
        notes.append(f"Off here, by a flag: {', '.join(off)}.")
    return notes
