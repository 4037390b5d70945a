"""What souls say, in the words a model is told: a tenant's and a user's (decisions 19)."""

from collections.abc import Iterator

from sqlalchemy import select

from kit.core.context import Principal, Session
from kit.core.documents.check import document_of
from kit.core.documents.document import Soul
from kit.stores.documents.tables import SOULS
from kit.stores.engines.database import Database


def read_souls(database: Database, principal: Principal) -> tuple[Soul | None, Soul | None]:
    """Returns the soul of a principal's tenant, and that of the user."""
    query = select(SOULS.c.user_id, SOULS.c.document).where(
        SOULS.c.tenant_id == principal.tenant_id, SOULS.c.user_id.in_(["", principal.user_id])
    )
    souls: dict[str, Soul] = {}
    for user_id, text in database.read(query):
        souls[user_id] = document_of(Soul, text)
    tenant = souls.get("")
    user = souls.get(principal.user_id) if principal.user_id else None
    return tenant, user


def with_souls(session: Session, tenant: Soul | None, user: Soul | None) -> Session:
    """Returns a session with what the souls of its tenant and its user say, where it has no persona of its own.

    Their language, the user's first, is its locale.
    """
    languages: list[str] = []
    for soul in (user, tenant):
        if soul is not None and soul.persona.language:
            languages.append(soul.persona.language)
    return session.replace(
        tenant_persona=session.tenant_persona or words_of(tenant),
        persona=session.persona or words_of(user),
        locale=(*languages, session.locale)[0],
    )


def words_of(soul: Soul | None) -> str:
    """Returns what a model is told of a soul: persona, tone, language, then each policy in a line."""
    if soul is not None:
        return "\n".join(_lines(soul))
    return ""


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
