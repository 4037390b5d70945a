"""What souls say, in the words a model is told: a tenant's and a user's (decisions 19)."""

from collections.abc import Iterator

from kit.core.context import Session
from kit.stores.documents.document import Soul
from kit.stores.documents.protocol import SoulStore


async def with_souls(session: Session, souls: SoulStore) -> Session:
    """Returns a session with what the souls of its tenant and its user say; their language, the user's first, is its locale."""
    tenant, user = await souls.of(session.principal)
    languages = [soul.persona.language for soul in (user, tenant) if soul is not None and soul.persona.language]
    fields = {"tenant_persona": words_of(tenant), "persona": words_of(user), "locale": (*languages, session.locale)[0]}
    return session.model_copy(update=fields)


def words_of(soul: Soul | None) -> str:
    """Returns what a model is told of a soul: persona, tone, language, then each policy in a line."""
    return "\n".join(_lines(soul)) if soul is not None else ""


def _lines(soul: Soul) -> Iterator[str]:
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
