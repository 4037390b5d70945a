"""One agent card: how it stands here, its description, the rest of it as its file has it, and the deck's limits."""

from collections.abc import Mapping

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
    fields = card.model_dump(mode="json", exclude_defaults=True, exclude={*IN_WORDS, "requests"})
    limits = _deck_limits(card, deck)
    return render(
        "card",
        card=card,
        state=_state(card, deck),
        notes=_notes(card, deck, running),
        fields=_yaml(fields),
        deck_limits=_yaml(limits) if limits else "",
    )


def _yaml(fields: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(fields), sort_keys=False, allow_unicode=True, width=100)


def _deck_limits(card: AgentCard, deck: Deck) -> dict[str, float]:
    """Returns the limits in force that the card does not set itself."""
    limits: dict[str, float] = {}
    for name, value in deck.policy(card):
        if value is not None and getattr(card.policy, name) is None:
            limits[name] = value
    return limits


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
