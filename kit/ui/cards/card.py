"""One agent card in full: when it is called, its model, tools, limits and hand-off."""

from kit.compose.advice import DESCRIPTION_TOKENS
from kit.compose.deck import Deck
from kit.compose.prompts import tokens
from kit.core.card import AgentCard, HandoffField
from kit.core.model import fallback_of
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import render

_LIMITS = {
    "time_budget_ms": "time",
    "model_time_ms": "one model call",
    "tokens_in": "tokens in",
    "tokens_out": "tokens out",
    "max_tool_calls": "tool calls",
    "max_recursion_depth": "deep in agents below",
    "cost": "cost",
}


def card_html(card: AgentCard, deck: Deck, running: str | None) -> str:
    """Returns a card as HTML; `running` is the key of its bound model, None when it is unbound."""
    size, target = _size(card, deck)
    required: tuple[str, ...] = ()
    if card.id not in deck.settings.exempt:
        required = deck.settings.required_blocks
    card_limits, deck_limits = _limits(card, deck)
    return render(
        "card",
        card=card,
        handoff=card.handoff,
        running=running,
        state=_state(card, deck),
        size=size,
        target=target,
        tuning=_tuning(card),
        fallback=fallback_of(card, deck.models),
        tools=_tools(card, deck),
        required=required,
        card_limits=card_limits,
        deck_limits=deck_limits,
        fields={name: _field(field) for name, field in card.handoff.fields.items()},
    )


def _state(card: AgentCard, deck: Deck) -> list[Tag]:
    tags = [Tag(text=card.role), Tag(text=f"version {card.version}")]
    if card.flag and deck.on(card.flag):
        tags.append(Tag(text=f"flag {card.flag}: on"))
    elif card.flag:
        tags.append(Tag(text=f"flag {card.flag}: off", tone="warn"))
    tone: Tone = "warn"
    if card.status == "active":
        tone = "good"
    tags.append(Tag(text=card.status, tone=tone))
    return tags


def _size(card: AgentCard, deck: Deck) -> tuple[Tag, str]:
    """Returns how long the description is, and what that means for those who route by it."""
    size = tokens(card.description)
    words = f"about {size} tokens"
    if not any(card.id in caller.sub_agents for caller in deck.cards.values()):
        return Tag(text=words), "Nobody routes by this description."
    low, high = DESCRIPTION_TOKENS
    tone: Tone = "warn"
    if low <= size <= high:
        tone = "good"
    target = f"{low} to {high} are the target: the orchestrator routes by these words alone."
    return Tag(text=words, tone=tone), target


def _tuning(card: AgentCard) -> str:
    words: list[str] = []
    for name, value in card.tuning:
        if value is not None:
            words.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(words)


def _tools(card: AgentCard, deck: Deck) -> list[Tag]:
    bound = deck.tools_on(card)
    tags: list[Tag] = []
    for tool in card.tools:
        if tool in bound:
            tags.append(Tag(text=tool))
        else:
            tags.append(Tag(text=f"{tool}: off", tone="warn"))
    return tags


def _limits(card: AgentCard, deck: Deck) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns the limits in force as amount and name: those that the card itself sets, and the deck's."""
    card_limits: list[tuple[str, str]] = []
    deck_limits: list[tuple[str, str]] = []
    for name, value in deck.policy(card):
        if value is None:
            continue
        limits = card_limits
        if getattr(card.policy, name) is None:
            limits = deck_limits
        limits.append((_amount(name, value), _LIMITS[name]))
    return card_limits, deck_limits


def _amount(name: str, value: float) -> str:
    if name.endswith("_ms"):
        return f"{value / 1000:g} s"
    if name == "cost":
        return f"${value:g}"
    return f"{value:,}"


def _field(field: HandoffField) -> str:
    words = [field.type]
    if field.required:
        words.append("required")
    else:
        words.append("optional")
    if field.source != "model":
        words.append(f"from {field.source}")
    if field.longest:
        words.append(f"at most {field.longest} characters")
    if field.enum:
        words.append(f"one of {', '.join(field.enum)}")
    if field.pii:
        words.append("redacted in traces")
    text = ", ".join(words)
    if field.description:
        text += f". {field.description}"
    return text
