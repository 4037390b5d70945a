"""Where a store keeps documents: in tables of their own beside those of the turns, so that a store of
turns needs no change."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import (
    DDL,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)

from kit.core.documents.check import check
from kit.core.errors import StoreBusy
from kit.core.value import Value
from kit.stores.engines.connection import PATIENCE, StoreConnection
from kit.stores.engines.database import Database
from kit.stores.tables import FLOAT, WHOLE, keys, required

T = TypeVar("T")
PAUSE = 0.01
"""Seconds between two tries of a write that another process is in the way of."""
METADATA = MetaData()

# A number is never given twice (AUTOINCREMENT): by it a matrix of vectors knows that it is of today.
MEMORY = Table(
    "agent_memory",
    METADATA,
    *keys("seq", kind=WHOLE),
    *required("tenant_id", "scope", "user_id", "session_id", "key"),
    Column("ttl_at", FLOAT),
    Column("locked_by", Text),
    Column("lock_expires", FLOAT),
    Column("embedding", LargeBinary),
    Column("embedder", Text),
    *required("document"),
    UniqueConstraint("tenant_id", "key"),
    sqlite_autoincrement=True,
)
Index(
    "agent_memory_by_scope",
    MEMORY.c.tenant_id,
    MEMORY.c.scope,
    MEMORY.c.user_id,
    MEMORY.c.session_id,
    MEMORY.c.embedder,
    sqlite_where=MEMORY.c.embedding.is_not(None),
    postgresql_where=MEMORY.c.embedding.is_not(None),
)
_EXPIRES = MEMORY.c.ttl_at.is_not(None)
Index("agent_memory_by_end", MEMORY.c.ttl_at, sqlite_where=_EXPIRES, postgresql_where=_EXPIRES)

SOULS = Table(
    "agent_souls",
    METADATA,
    *keys("tenant_id", "user_id"),
    *required("document"),
)

PLANS = Table(
    "agent_plans",
    METADATA,
    *keys("tenant_id", "plan_id"),
    *required("user_id", "session_id", "status"),
    *required("version", "replan_count", kind=WHOLE),
    *required("created_at", kind=FLOAT),
    Column("completed_at", FLOAT),
    Column("task_type", Text),
    Column("failure_kind", Text),
    *required("document"),
    Index("agent_plans_by_user", "tenant_id", "user_id"),
    Index("agent_plans_by_time", "tenant_id", "created_at"),
    Index("agent_plans_by_end", "completed_at"),
)
IS_OPEN = PLANS.c.status.not_in(["complete", "failed"])
Index("agent_plans_open", PLANS.c.status, sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)

EVENTS = Table(
    "agent_events",
    METADATA,
    *keys("seq", kind=WHOLE),
    *required("tenant_id", "event_id"),
    Column("user_id", Text),
    Column("session_id", Text),
    Column("plan_id", Text),
    Column("task_id", Text),
    *required("event_type"),
    Column("skill_id", Text),
    Column("agent", Text),
    Column("status", Text),
    Column("duration_ms", WHOLE),
    Column("lock_wait_ms", WHOLE),
    *required("large_response_triggered", kind=Integer().with_variant(Boolean(), "postgresql")),
    *required("ts", kind=FLOAT),
    *required("document"),
    UniqueConstraint("tenant_id", "event_id"),
    Index("agent_events_by_time", "tenant_id", "ts"),
    # All that monitoring counts by, in the order of its groups: 300,000 events take 0.2 s, from the rows 1.3 s.
    Index(
        "agent_events_by_kind",
        "tenant_id",
        "event_type",
        "agent",
        "skill_id",
        "status",
        "large_response_triggered",
        "lock_wait_ms",
        "duration_ms",
        "ts",
    ),
    Index("agent_events_by_session", "tenant_id", "session_id"),
    Index("agent_events_by_plan", "tenant_id", "plan_id"),
    sqlite_autoincrement=True,
)

_WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS agent_memory_words USING fts5 (text)"

_MEMORY_DELETED = """
CREATE TRIGGER IF NOT EXISTS agent_memory_deleted AFTER DELETE ON agent_memory
BEGIN
  DELETE FROM agent_memory_words WHERE rowid = OLD.seq;
END
"""

_EVENTS_CHANGED = """
CREATE TRIGGER IF NOT EXISTS agent_events_changed BEFORE UPDATE ON agent_events
BEGIN
  SELECT RAISE(ABORT, 'events are added, never changed');
END
"""

_SESSIONS = """
CREATE VIEW agent_sessions AS
SELECT
  sessions.id AS session_id,
  sessions.tenant_id,
  sessions.user_id,
  CASE
    WHEN count(*) FILTER (WHERE turns.status = 'running') > 0 THEN 'running'
    WHEN (
      SELECT status FROM turns newest
      WHERE newest.session_id = sessions.id
        AND newest.tenant_id = sessions.tenant_id AND newest.user_id || '' = sessions.user_id
      ORDER BY newest.number DESC LIMIT 1
    ) = 'paused' THEN 'paused'
    ELSE 'idle'
  END AS state,
  min(turns.started_at) AS started_at,
  greatest(
    max(turns.started_at + coalesce(turns.seconds, 0)),
    coalesce((
      SELECT max(at) FROM notes
      WHERE notes.tenant_id = sessions.tenant_id AND notes.session_id = sessions.id
    ), 0)
  ) AS last_active
FROM sessions JOIN turns ON turns.session_id = sessions.id
  AND turns.tenant_id = sessions.tenant_id AND turns.user_id || '' = sessions.user_id
GROUP BY sessions.tenant_id, sessions.id
"""

_SQLITE = (
    _WORDS,
    _MEMORY_DELETED,
    _EVENTS_CHANGED,
    _SESSIONS.replace("CREATE VIEW", "CREATE VIEW IF NOT EXISTS").replace("greatest", "max"),
)

# Words past this many characters are not found: those of a text may take a megabyte in PostgreSQL.
_POSTGRES_WORDS = """
CREATE TABLE IF NOT EXISTS agent_memory_words (
  rowid BIGINT PRIMARY KEY REFERENCES agent_memory (seq) ON DELETE CASCADE,
  text TEXT NOT NULL,
  words TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', left(text, 200000))) STORED
)
"""

_POSTGRES_WORDS_INDEX = """
CREATE INDEX IF NOT EXISTS agent_memory_by_words ON agent_memory_words USING gin (words)
"""

_ROW_NUMBERS = """
ALTER TABLE agent_plans ADD COLUMN IF NOT EXISTS rowid BIGINT GENERATED ALWAYS AS IDENTITY
"""

_REFUSE_CHANGE = """
CREATE OR REPLACE FUNCTION refuse_change_of_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are added, never changed';
END
$$
"""

_POSTGRES_EVENTS_CHANGED = """
CREATE OR REPLACE TRIGGER agent_events_changed BEFORE UPDATE ON agent_events FOR EACH ROW
EXECUTE FUNCTION refuse_change_of_event()
"""

_POSTGRES = (
    _POSTGRES_WORDS,
    _POSTGRES_WORDS_INDEX,
    _ROW_NUMBERS,
    _REFUSE_CHANGE,
    _POSTGRES_EVENTS_CHANGED,
    _SESSIONS.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"),
)

for dialect, statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRES)):
    for statement in statements:
        event.listen(METADATA, "after_create", DDL(statement).execute_if(dialect=dialect))


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a store, with the clock by which what is in them expires."""

    database: Database
    clock: Callable[[], float]

    async def write(self, work: Callable[[StoreConnection], T]) -> T:
        """Does work in one transaction. While another process writes, the loop goes on; after a
        while StoreBusy is raised."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.database.commit(wait=False) as db:
                    return work(db)
            except StoreBusy:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(PAUSE)


def row_of(table: Table, document: Value, dimension: int | None = None) -> dict[str, Any]:
    """Returns a document's row: whole as JSON, and its fields that are columns. Raises StorageSchemaError."""
    row: dict[str, Any] = {"document": check(document, dimension)}
    for column in table.c:
        if column.name not in ("seq", "document"):
            row[column.name] = getattr(document, column.name)
    return row


def lay_out_documents(database: Database) -> None:
    """Gives a store the tables of documents where it lacks them. Raises StoreError."""
    with database.commit() as db:
        db.lay_out(METADATA)
