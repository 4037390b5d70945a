"""One agent card in full: when it is called, its model, tools, limits and hand-off."""

from collections.abc import Iterable, Iterator
from html import escape

from kit.compose.advice import DESCRIPTION_TOKENS
from kit.compose.deck import Deck
from kit.compose.prompts import tokens
from kit.core.card import AgentCard, HandoffField, Policy
from kit.core.model import fallback_of
from kit.ui.shared.wording import label, tag_html

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
    parts = _parts(card, deck, running)
    lines = "".join(
        f'<div data-part="{name}"><dt>{title}</dt><dd>{html}</dd></div>'
        for name, title, html in parts
    )
    size = f'<p class="size">{_size(card, deck)}</p>'
    return (
        f'<section class="turn card" data-card="{escape(card.id)}" aria-label="The card {escape(card.id)}">'
        f"<h3>{escape(label(card.id))} <span>{_state(card, deck)}</span></h3>"
        f"<blockquote>{escape(card.description.strip())}</blockquote>{size}<dl>{lines}</dl></section>"
    )


def _state(card: AgentCard, deck: Deck) -> str:
    if card.flag:
        on = deck.on(card.flag)
    else:
        on = False
    if card.flag:
        flag = tag_html(f"flag {card.flag}: {'on' if on else 'off'}", "" if on else "warn")
    else:
        flag = ""
    status = tag_html(card.status, "good" if card.status == "active" else "warn")
    return _tags((card.role, f"version {card.version}")) + flag + status


def _size(card: AgentCard, deck: Deck) -> str:
    size, (low, high) = tokens(card.description), DESCRIPTION_TOKENS
    if not any(card.id in caller.sub_agents for caller in deck.cards.values()):
        return f"{tag_html(f'about {size} tokens')} Nobody routes by this description."
    if low <= size <= high:
        tone = "good"
    else:
        tone = "warn"
    return (
        f"{tag_html(f'about {size} tokens', tone)} {low} to {high} are the target: the "
        f"orchestrator routes by these words alone."
    )


def _parts(card: AgentCard, deck: Deck, running: str | None) -> Iterator[tuple[str, str, str]]:
    yield "model", "Model", _model(card, deck, running)
    if card.sub_agents:
        yield "asks", "May ask", _tags(label(name) for name in card.sub_agents)
    yield "tools", "Tools", _tools(card, deck) or "none"
    yield "blocks", "Prompt", _blocks(card, deck)
    yield "limits", "Limits", _limits(deck.policy(card), card.policy)
    yield "handoff", "Hand-off", "".join(f"<p>{line}</p>" for line in _handoff(card))
    judge = (
        card.eval and f"{card.eval.judge} by {card.eval.rubric}, at least {card.eval.threshold:.0%}"
    )
    yield "eval", "Eval", escape(judge or "no judge named")


def _model(card: AgentCard, deck: Deck, running: str | None) -> str:
    tuned: list[str] = []
    for name, value in card.tuning:
        if value is not None:
            tuned.append(f"{name.replace('_', ' ')} {value}")
    html = tag_html(card.model) + escape(", ".join(tuned))
    if fallback := fallback_of(card, deck.models):
        html += f" then {tag_html(fallback)}"
    if running is None:
        return html + "<p>Not bound here: draft, or its flag is off.</p>"
    if running == card.model:
        return html
    return html + f"<p>Here it runs on {tag_html(running, 'busy')}</p>"


def _tools(card: AgentCard, deck: Deck) -> str:
    on = deck.tools_on(card)
    tags = "".join(
        tag_html(tool) if tool in on else tag_html(f"{tool}: off", "warn") for tool in card.tools
    )
    return tags + "".join(
        f"<p>{escape(tool)} since {grant.since:%d %b %Y}</p>"
        for tool, grant in card.tool_grants.items()
    )


def _blocks(card: AgentCard, deck: Deck) -> str:
    if card.id in deck.settings.exempt:
        required = ()
    else:
        required = deck.settings.required_blocks
    return (
        _tags(required, "busy")
        + _tags(card.prompt_blocks)
        + ("<p>Blue ones are required of every card.</p>" if required else "")
    )


def _limits(policy: Policy, card_policy: Policy) -> str:
    limits: list[tuple[str, str, bool]] = []
    for name, value in policy:
        if value is not None:
            limits.append((name, _amount(name, value), getattr(card_policy, name) is None))
    own_limits = ", ".join(
        f"<b>{amount}</b> {_LIMITS[name]}" for name, amount, inherited in limits if not inherited
    )
    inherited_limits = ", ".join(
        f"{amount} {_LIMITS[name]}" for name, amount, inherited in limits if inherited
    )
    return (f"<span>{own_limits}</span>" if own_limits else "") + (
        f"<p>From the deck: {inherited_limits}</p>" if inherited_limits else ""
    )


def _amount(name: str, value: float) -> str:
    if name.endswith("_ms"):
        return f"{value / 1000:g} s"
    if name == "cost":
        return f"${value:g}"
    return f"{value:,}"


def _handoff(card: AgentCard) -> Iterator[str]:
    handoff = card.handoff
    if handoff.max_query_tokens:
        limit = f", at most {handoff.max_query_tokens} tokens"
    else:
        limit = ""
    yield f"In: the query{limit}" + (
        "; nothing of the conversation, and no question comes out"
        if handoff.closed
        else ", prior context"
    )
    for name, field in handoff.fields.items():
        yield f"{tag_html(name)} {escape(_field(field))}"
    names = ", ".join((handoff.output_schema or {}).get("properties", {})) or "a schema"
    yield f"Out: {escape(names)}, checked" if handoff.output_schema else "Out: free text"
    if handoff.min_confidence is not None:
        yield f"Below a confidence of {handoff.min_confidence:g} it counts as failed"


def _field(field: HandoffField) -> str:
    words = [field.type, "required" if field.required else "optional"]
    words += ["from " + field.source] if field.source != "model" else []
    words += [f"at most {field.longest} characters"] if field.longest else []
    words += ["one of " + ", ".join(field.enum)] if field.enum else []
    words += ["redacted in traces"] if field.pii else []
    return ", ".join(words) + (f". {field.description}" if field.description else "")


def _tags(words: Iterable[str], tone: str = "") -> str:
    return "".join(tag_html(word, tone) for word in words)
