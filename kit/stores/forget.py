"""Removes a user from the store's file: every row of theirs, and the bytes it had."""

import sqlite3

from kit.core.context import Principal
from kit.core.errors import StoreBusy

_TURNS = "SELECT id FROM turns WHERE tenant_id = :tenant AND user_id = :user"
_SESSIONS = "SELECT id FROM sessions WHERE tenant_id = :tenant AND user_id = :user"
_ROWS = {
    "feedback": f"turn_id IN ({_TURNS})",
    "messages": f"turn_id IN ({_TURNS}) OR session_id IN ({_SESSIONS})",
    "notes": f"session_id IN ({_SESSIONS})",
    "turns": "tenant_id = :tenant AND user_id = :user",
    "sessions": "tenant_id = :tenant AND user_id = :user",
}
"""Table -> its rows of one user, in the order in which they can go. A trigger takes the sums they are part of."""

DOCUMENTS = ("agent_memory", "agent_souls", "agent_plans", "agent_events")
"""Tables that a file has once documents were opened in it."""
_DOCUMENT = "tenant_id = :tenant AND document ->> 'user_id' = :user"
_WORDS = "agent_memory_words"


def forget(db: sqlite3.Connection, principal: Principal) -> dict[str, int]:
    """Deletes a principal's rows and returns how many of each table. Raises StoreBusy while a turn of theirs runs."""
    names = {"tenant": principal.tenant_id, "user": principal.user_id}
    if db.execute(f"{_TURNS} AND status = 'running'", names).fetchone():
        raise StoreBusy(f"a turn of {principal.user_id} is running; try again when it has ended")
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    documents: dict[str, str] = {}
    for table in DOCUMENTS:
        if table in tables:
            documents[table] = _DOCUMENT
    rows = {**_ROWS, **documents}
    counts: dict[str, int] = {}
    for table, where in rows.items():
        counts[table] = db.execute(f"DELETE FROM {table} WHERE {where}", names).rowcount
    if _WORDS in tables:  # its words are in an index that is rewritten now, not when it grows
        db.execute(f"INSERT INTO {_WORDS} ({_WORDS}) VALUES ('optimize')")
    return counts
