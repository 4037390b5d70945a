"""Removes a user from the store: every row of theirs."""

from sqlalchemy import column, delete, select, table

from kit.core.context import Principal
from kit.core.errors import StoreBusy
from kit.stores.engines.connection import StoreConnection
from kit.stores.engines.functions import json_field
from kit.stores.statements import of_reader
from kit.stores.tables import FEEDBACK, MESSAGES, NOTES, SESSIONS, TURNS

DOCUMENTS = ("agent_memory", "agent_souls", "agent_plans", "agent_events")
"""Tables that a store has once documents were opened in it."""


def forget(db: StoreConnection, principal: Principal) -> dict[str, int]:
    """Deletes a principal's rows and returns how many of each table. Raises StoreBusy while a turn of theirs runs."""
    turns = select(TURNS.c.id).where(of_reader(principal))
    if db.execute(turns.where(TURNS.c.status == "running")).first():
        raise StoreBusy(f"a turn of {principal.user_id} is running; try again when it has ended")
    is_their_session = (SESSIONS.c.tenant_id == principal.tenant_id) & (
        SESSIONS.c.user_id == principal.user_id
    )
    sessions = select(SESSIONS.c.id).where(is_their_session)
    tenant_id = principal.tenant_id
    messages = MESSAGES.c.turn_id.in_(turns)
    messages |= (MESSAGES.c.tenant_id == tenant_id) & MESSAGES.c.session_id.in_(sessions)
    notes = (NOTES.c.tenant_id == tenant_id) & NOTES.c.session_id.in_(sessions)
    # In the order in which they can go. A trigger of both dialects (`turn_deleted`) takes the logs of turns and the
    # sums that they are part of; a new table that hangs on turns belongs there.
    rows = (
        (FEEDBACK, FEEDBACK.c.turn_id.in_(turns)),
        (MESSAGES, messages),
        (NOTES, notes),
        (TURNS, of_reader(principal)),
        (SESSIONS, is_their_session),
    )
    counts: dict[str, int] = {}
    for own, condition in rows:
        counts[own.name] = db.execute(delete(own).where(condition)).rowcount
    for name in DOCUMENTS:
        if db.has_table(name):
            documents = table(name, column("tenant_id"), column("document"))
            is_theirs = (documents.c.tenant_id == principal.tenant_id) & (
                json_field(documents.c.document, "user_id") == principal.user_id
            )
            counts[name] = db.execute(delete(documents).where(is_theirs)).rowcount
    return counts
