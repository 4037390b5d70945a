"""One agent card in full: when it is called, its model, tools, limits and hand-off."""

from collections.abc import Iterable
from html import escape

from kit.compose.advice import DESCRIPTION_TOKENS
from kit.compose.deck import Deck
from kit.compose.prompts import tokens
from kit.core.card import AgentCard, HandoffField, Policy
from kit.core.model import fallback_of
from kit.ui.shared.wording import Tone, label, tag_html

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
    """Returns a card as HTML, everything from files escaped; `running` is the key of its bound
    model, None when it is unbound."""
    parts = [_part("model", "Model", _model(card, deck, running))]
    if card.sub_agents:
        parts.append(_part("asks", "May ask", _tags(map(label, card.sub_agents))))
    parts.append(_part("tools", "Tools", _tools(card, deck)))
    parts.append(_part("blocks", "Prompt", _blocks(card, deck)))
    parts.append(_part("limits", "Limits", _limits(deck.policy(card), card.policy)))
    parts.append(_part("handoff", "Hand-off", "".join(map(_paragraph, _handoff(card)))))
    parts.append(_part("eval", "Eval", _judge(card)))
    name = escape(card.id)
    return (
        f'<section class="turn card" data-card="{name}" aria-label="The card {name}">'
        f"<h3>{escape(label(card.id))} <span>{_state(card, deck)}</span></h3>"
        f"<blockquote>{escape(card.description.strip())}</blockquote>"
        f'<p class="size">{_size(card, deck)}</p><dl>{"".join(parts)}</dl></section>'
    )


def _part(name: str, title: str, html: str) -> str:
    return f'<div data-part="{name}"><dt>{title}</dt><dd>{html}</dd></div>'


def _paragraph(html: str) -> str:
    return f"<p>{html}</p>"


def _tags(words: Iterable[str], tone: Tone = "") -> str:
    return "".join(tag_html(word, tone) for word in words)


def _state(card: AgentCard, deck: Deck) -> str:
    html = _tags((card.role, f"version {card.version}"))
    if card.flag and deck.on(card.flag):
        html += tag_html(f"flag {card.flag}: on")
    elif card.flag:
        html += tag_html(f"flag {card.flag}: off", "warn")
    if card.status == "active":
        return html + tag_html(card.status, "good")
    return html + tag_html(card.status, "warn")


def _size(card: AgentCard, deck: Deck) -> str:
    size = tokens(card.description)
    low, high = DESCRIPTION_TOKENS
    words = f"about {size} tokens"
    routed: set[str] = set()
    for caller in deck.cards.values():
        routed.update(caller.sub_agents)
    if card.id not in routed:
        return f"{tag_html(words)} Nobody routes by this description."
    tone: Tone = "warn"
    if low <= size <= high:
        tone = "good"
    target = f"{low} to {high} are the target: the orchestrator routes by these words alone."
    return f"{tag_html(words, tone)} {target}"


def _judge(card: AgentCard) -> str:
    if not card.eval:
        return "no judge named"
    return escape(f"{card.eval.judge} by {card.eval.rubric}, at least {card.eval.threshold:.0%}")


def _model(card: AgentCard, deck: Deck, running: str | None) -> str:
    tuning: list[str] = []
    for name, value in card.tuning:
        if value is not None:
            tuning.append(f"{name.replace('_', ' ')} {value}")
    html = tag_html(card.model) + escape(", ".join(tuning))
    fallback = fallback_of(card, deck.models)
    if fallback:
        html += f" then {tag_html(fallback)}"
    if running is None:
        return html + "<p>Not bound here: draft, or its flag is off.</p>"
    if running == card.model:
        return html
    return html + f"<p>Here it runs on {tag_html(running, 'busy')}</p>"


def _tools(card: AgentCard, deck: Deck) -> str:
    bound = deck.tools_on(card)
    html = ""
    for tool in card.tools:
        if tool in bound:
            html += tag_html(tool)
        else:
            html += tag_html(f"{tool}: off", "warn")
    for tool, grant in card.tool_grants.items():
        html += f"<p>{escape(tool)} since {grant.since:%d %b %Y}</p>"
    return html or "none"


def _blocks(card: AgentCard, deck: Deck) -> str:
    required = deck.settings.required_blocks
    if card.id in deck.settings.exempt or not required:
        return _tags(card.prompt_blocks)
    tags = _tags(required, "busy") + _tags(card.prompt_blocks)
    return f"{tags}<p>Blue ones are required of every card.</p>"


def _limits(policy: Policy, card_policy: Policy) -> str:
    """Returns the limits in force, first those that the card itself sets."""
    card_limits: list[str] = []
    deck_limits: list[str] = []
    for name, value in policy:
        if value is None:
            continue
        amount = _amount(name, value)
        if getattr(card_policy, name) is None:
            deck_limits.append(f"{amount} {_LIMITS[name]}")
        else:
            card_limits.append(f"<b>{amount}</b> {_LIMITS[name]}")
    html = ""
    if card_limits:
        html += f"<span>{', '.join(card_limits)}</span>"
    if deck_limits:
        html += f"<p>From the deck: {', '.join(deck_limits)}</p>"
    return html


def _amount(name: str, value: float) -> str:
    if name.endswith("_ms"):
        return f"{value / 1000:g} s"
    if name == "cost":
        return f"${value:g}"
    return f"{value:,}"


def _handoff(card: AgentCard) -> list[str]:
    handoff = card.handoff
    query = "In: the query"
    if handoff.max_query_tokens:
        query += f", at most {handoff.max_query_tokens} tokens"
    if handoff.closed:
        query += "; nothing of the conversation, and no question comes out"
    else:
        query += ", prior context"
    lines = [query]
    for name, field in handoff.fields.items():
        lines.append(f"{tag_html(name)} {escape(_field(field))}")
    if handoff.output_schema:
        names = ", ".join(handoff.output_schema.get("properties", {}))
        lines.append(f"Out: {escape(names or 'a schema')}, checked")
    else:
        lines.append("Out: free text")
    if handoff.min_confidence is not None:
        lines.append(f"Below a confidence of {handoff.min_confidence:g} it counts as failed")
    return lines


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
