"""Souls in prompts: a tenant's persona joins the prefix that its users share, a user's the suffix (decisions 19)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kit.compose.deck import Deck
from kit.compose.parts import Block
from kit.core.context import Session

if TYPE_CHECKING:
    from kit.stores.documents.document import Soul
    from kit.stores.documents.protocol import SoulStore

PERSONA = "tenant:persona"
"""The id of the block, which no file can have."""


async def with_souls(session: Session, souls: "SoulStore") -> Session:
    """Returns a session with what the souls of its tenant and its user say; their language, the user's first, is its locale."""
    tenant, user = await souls.of(session.principal)
    languages = [soul.persona.language for soul in (user, tenant) if soul is not None and soul.persona.language]
    fields = {"tenant_persona": words_of(tenant), "persona": words_of(user), "locale": (*languages, session.locale)[0]}
    return session.model_copy(update=fields)


def words_of(soul: "Soul | None") -> str:
    """Returns what a model is told of a soul: persona, tone, language, then each policy in a line."""
    return "\n".join(_lines(soul)) if soul is not None else ""


def with_persona(deck: Deck, text: str) -> Deck:
    """Returns a deck whose agents that speak to people have this text after the required blocks."""
    if not text:
        return deck
    block = Block(id=PERSONA, category="format", owner="platform", text=text)
    required = (*deck.settings.required_blocks, PERSONA)
    return replace(
        deck,
        blocks={**deck.blocks, PERSONA: block},
        settings=deck.settings.model_copy(update={"required_blocks": required}),
    )


def _lines(soul: "Soul") -> Iterator[str]:
    persona = soul.persona
    if persona.name:
        yield f"You are called {persona.name}."
    if persona.system_prompt:
        yield persona.system_prompt
    if persona.tone:
        yield f"Tone: {persona.tone}"
    if persona.language:
        yield f"Answer in this language: {persona.language}"
    for name, policy in soul.policies.items():
        yield f"Policy {name}: {policy}"
