"""Removes a user from the store's file: every row of theirs, and the bytes it had."""

from sqlalchemy import delete, inspect, select

from kit.core.context import Principal
from kit.core.errors import StoreBusy
from kit.stores.connection import StoreConnection
from kit.stores.statements import of_reader
from kit.stores.tables import FEEDBACK, MESSAGES, NOTES, SESSIONS, TURNS

DOCUMENTS = ("agent_memory", "agent_souls", "agent_plans", "agent_events")
"""Tables that a file has once documents were opened in it."""
_WORDS = "agent_memory_words"


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
    # In the order in which they can go. A trigger takes the sums that the turns are part of.
    rows = (
        (FEEDBACK, FEEDBACK.c.turn_id.in_(turns)),
        (MESSAGES, messages),
        (NOTES, notes),
        (TURNS, of_reader(principal)),
        (SESSIONS, is_their_session),
    )
    counts: dict[str, int] = {}
    for table, condition in rows:
        counts[table.name] = db.execute(delete(table).where(condition)).rowcount
    tables = inspect(db.core).get_table_names()
    for name in DOCUMENTS:
        if name in tables:
            query = f"DELETE FROM {name} WHERE tenant_id = :tenant_id AND document ->> 'user_id' = :user_id"
            counts[name] = db.execute(query, vars(principal)).rowcount
    if _WORDS in tables:
        # Its words are in an index that is rewritten now, not when it grows.
        db.execute(f"INSERT INTO {_WORDS} ({_WORDS}) VALUES ('optimize')")
    return counts
