"""A card's prompt: a prefix that a whole cohort shares byte for byte, and a short suffix for one request."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from kit.compose.parts import Block, Parts
from kit.core.card import AgentCard
from kit.core.context import DynamicContext
from kit.core.model import ModelSpec

P = TypeVar("P", bound=Parts)
PERSONA = "tenant:persona"
"""The id of the block that holds it, which no file can have."""
WISH = "This user wishes"
"""What stands before a user's persona."""
PROMPT_MOST = 0.50
"""Largest share of a model's context window that a prompt may take."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt for one request. Everything personal is in the suffix."""

    prefix: str
    suffix: str
    cohort: str

    @property
    def text(self) -> str:
        if self.prefix:
            return f"{self.prefix}\n\n{self.suffix}"
        return self.suffix


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """The part of a prompt that does not depend on the request."""

    agent: str
    blocks: tuple[Block, ...]
    """Those present under the deck's flags, in order."""
    prefix: str
    cohort: str
    """Names the prompt's cohort: equal for two requests exactly when card, blocks, tools and what
    flags change of them are."""
    closed: bool = False
    """Of the request only the date is told: what else a closed hand-off carries, its fields hold."""

    speaks: bool = True
    """Its answer is words for a person: one that answers by a schema is told of no persona."""

    def assemble(self, dynamic: DynamicContext) -> Prompt:
        """Returns the prompt with the request's own context as its suffix."""
        return Prompt(self.prefix, self.suffix(dynamic), self.cohort)

    def suffix(self, dynamic: DynamicContext) -> str:
        """Returns what the prompt ends with: the request's own context."""
        date = dynamic.date
        user = dynamic.user_id
        locale = dynamic.locale
        location = dynamic.location or ""
        persona = dynamic.persona
        # A persona or a location comes from a user, who may write line breaks into it: in one line
        # each it cannot pass for another line of the prompt.
        if not f"{date}{user}{locale}{location}{persona}".isprintable():
            date, user, locale, location, persona = (
                " ".join(value.split()) for value in (date, user, locale, location, persona)
            )
        lines = f"Date: {date}"
        if self.closed:
            return lines
        lines += f"\nUser: {user}\nLocale: {locale}"
        if location:
            lines += f"\nLocation: {location}"
        if persona and self.speaks:
            lines += f"\n{WISH}: {persona}"
        if dynamic.in_play:
            tools = ", ".join(map("ask_{}".format, dynamic.in_play))
            lines += f"\nCalled in the previous turn: {tools}"
        if dynamic.unanswered:
            tools = ", ".join(map("ask_{}".format, dynamic.unanswered))
            lines += f"\nStill without an answer: {tools}"
        return lines


def suffix_lines(suffix: str) -> dict[str, str]:
    """Returns what the suffix of a prompt tells of its request, by the words before each colon;
    what follows it is left out."""
    values: dict[str, str] = {}
    for line in suffix.strip().splitlines():
        head, _, value = line.partition(": ")
        if head not in ("Date", "User", "Locale", "Location", WISH):
            break
        values[head] = value
    return values


def with_persona(deck: P, text: str) -> P:
    """Returns a deck whose agents that speak to people have a tenant's persona after the required
    blocks (decisions 19)."""
    if not text:
        return deck
    block = Block(id=PERSONA, category="format", owner="platform", text=text)
    settings = deck.settings.model_copy(
        update={"required_blocks": (*deck.settings.required_blocks, PERSONA)}
    )
    return replace(deck, blocks={**deck.blocks, PERSONA: block}, settings=settings)


def plan_prompt(card: AgentCard, deck: Parts) -> PromptPlan:
    """Puts a card's prompt together: required blocks, the card's own in order, the schema of its
    answer, the routing lines.

    Blocks hanging on a flag that is off are left out, and those of the category `format` where a
    schema says how to answer. Raises UnknownId for a block that is not registered.
    """
    names = card.prompt_blocks
    if card.id not in deck.settings.exempt:
        names = (*deck.settings.required_blocks, *names)
    schema = card.handoff.output_schema
    blocks: list[Block] = []
    for name in names:
        block = deck.blocks[name]
        # The schema says how to answer: a block that says it too would only contradict it.
        if deck.on(block.flag) and (schema is None or block.category != "format"):
            blocks.append(block)
    texts = [block.text.strip() for block in blocks]
    if schema is not None:
        texts.append(f"Answer with JSON of this schema and with nothing else: {json.dumps(schema)}")
    # Last, because they change with the cap and the default: what stands before them is cached.
    if card.sub_agents and card.id == deck.settings.orchestrator:
        texts.append(_routing_lines(card, deck))
    prefix = "\n\n".join(texts)
    return PromptPlan(
        agent=card.id,
        blocks=tuple(blocks),
        prefix=prefix,
        cohort=_cohort(card, deck, blocks, prefix),
        closed=card.handoff.closed,
        speaks=schema is None,
    )


def tokens(text: str) -> int:
    """An estimate, four characters a token; for budgets, never for billing."""
    return -(-len(text) // 4)


def prompt_size(card: AgentCard, deck: Parts) -> int | None:
    """Estimated tokens of a card's prefix and its sub-agents' descriptions; None while one of them is missing."""
    blocks = {*deck.settings.required_blocks, *card.prompt_blocks}
    if not blocks <= deck.blocks.keys() or not deck.cards.keys() >= {*card.sub_agents}:
        return None
    size = tokens(plan_prompt(card, deck).prefix)
    for sub_agent in deck.active_sub_agents(card):
        size += tokens(sub_agent.description)
    return size


def window_fault(card: AgentCard, deck: Parts, spec: ModelSpec) -> str | None:
    """Returns why a card's prompt is too long for a model, with the fix; None where it fits."""
    size = prompt_size(card, deck)
    if not size or size <= PROMPT_MOST * spec.context_window:
        return None
    share = f"prompt of about {size} tokens takes {size / spec.context_window:.0%} of the window of {spec.key!r}"
    return f"{share}; shorten it below {PROMPT_MOST:.0%}"


def _routing_lines(card: AgentCard, deck: Parts) -> str:
    cap = deck.settings.cap
    default = deck.settings.default_sub_agent
    nothing_fits = "none"
    if default in [sub_agent.id for sub_agent in deck.active_sub_agents(card)]:
        nothing_fits = f"ask_{default}"
    return (
        f"Call at most {cap} tools in one turn; when the message has more parts, choose the {cap} most relevant.\n"
        f"When no tool fits: {nothing_fits}"
    )


def _cohort(card: AgentCard, deck: Parts, blocks: Iterable[Block], prefix: str) -> str:
    parts = [card.model_dump_json()]
    parts += [f"{block.id}@{block.version}" for block in blocks]
    for tool in deck.tools_on(card):
        parts.append(f"{tool}: {sorted(deck.tool_config(card, tool).items())}")
    parts += [sub_agent.tool_name for sub_agent in deck.active_sub_agents(card)]
    parts.append(prefix)
    # A prompt may hold half of a surrogate pair, which strict UTF-8 refuses.
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
