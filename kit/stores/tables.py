"""The tables of turns (docs/traces.md), what is derived from them, and the marks of a file of ours."""

from typing import Any

from sqlalchemy import (
    DDL,
    REAL,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    event,
    text,
)

SCHEMA = 12
"""Kept in the file as `user_version`: it tells the schema without Alembic, which takes half a second to load."""
APPLICATION = 0x6B697431
"""Kept in the file as `application_id`: tells our files from other programs' databases."""

METADATA = MetaData()


def required(name: str, kind: Any = Text, **options: Any) -> Column[Any]:
    """Returns a column that is never NULL."""
    return Column(name, kind, nullable=False, **options)


ALEMBIC_VERSION = Table(
    "alembic_version", METADATA, Column("version_num", String(32), primary_key=True)
)
"""Where Alembic keeps the revision of a file."""

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("id", Text, primary_key=True),
    required("tenant_id"),
    required("user_id"),
    required("locale"),
    Column("location", Text),
    sqlite_with_rowid=False,
)

TURNS = Table(
    "turns",
    METADATA,
    Column("number", Integer, primary_key=True),
    required("id", unique=True),
    required("session_id"),
    required("tenant_id"),
    required("user_id"),
    required("message"),
    required("pattern"),
    required("model"),
    required("started_at", REAL),
    Column("seconds", REAL),
    required("status"),
    required("text"),
    required("invoked"),
    required("failed"),
    required("intent_count", Integer),
    required("cap", Integer),
    required("cap_behavior"),
    Column("ttft", REAL),
    required("input_tokens", Integer),
    required("output_tokens", Integer),
    required("model_calls", Integer),
    required("tool_calls", Integer),
    Column("cost", REAL),
    required("measures", server_default=text("'{}'")),
    required("owner"),
    Index("turns_by_time", "started_at"),
    Index("turns_by_tenant", "tenant_id", "started_at"),
    Index("turns_by_session", "session_id", "started_at"),
    # It holds every column that `choices` counts, so that this reads no row of `turns`.
    Index(
        "turns_by_visitor",
        "tenant_id",
        "user_id",
        "started_at",
        "session_id",
        "pattern",
        "model",
    ),
)

# A turn's events stand apart from its row: a list that reads a thousand rows reads no log.
LOGS = Table("logs", METADATA, Column("number", Integer, primary_key=True), required("log"))

MESSAGES = Table(
    "messages",
    METADATA,
    Column("turn_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    required("session_id"),
    required("agent"),
    required("role"),
    required("text"),
    Index("messages_by_reader", "session_id", "agent"),
)

NOTES = Table(
    "notes",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    required("value"),
    required("at", REAL),
)

PROMPTS = Table(
    "prompts",
    METADATA,
    Column("cohort", Text, primary_key=True),
    required("agent"),
    required("text"),
    required("tools"),
    Column("since", REAL, primary_key=True),
)

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("turn_id", Text, ForeignKey("turns.id"), primary_key=True),
    required("score", Integer),
    required("note"),
)

ROLLUPS = Table(
    "rollups",
    METADATA,
    Column("through", Integer, primary_key=True, autoincrement=False),
    Column("tenant_id", Text, primary_key=True),
    required("first", REAL),
    required("tally"),
)

# Sums that a changed turn is part of go with the change, whoever makes it; they are written again.
_TURN_CHANGED = """
CREATE TRIGGER turn_changed AFTER UPDATE ON turns WHEN OLD.status <> 'running'
BEGIN
  DELETE FROM rollups WHERE through >= OLD.number;
END
"""

_TURN_DELETED = """
CREATE TRIGGER turn_deleted AFTER DELETE ON turns
BEGIN
  DELETE FROM rollups WHERE through >= OLD.number;
  DELETE FROM logs WHERE number = OLD.number;
END
"""

_EVENTS = """
CREATE VIEW events AS
SELECT
  turns.id AS turn_id,
  item.value ->> 'seq' AS seq,
  item.value ->> 'at' AS at,
  item.value ->> '$.body.kind' AS kind,
  item.value ->> 'span_id' AS span_id,
  item.value ->> 'parent_span_id' AS parent_span_id,
  item.value AS event
FROM turns JOIN logs USING (number), json_each(log) item
"""

_COMPONENTS = """
CREATE VIEW components AS
SELECT
  turn_id,
  seq,
  event ->> '$.body.agent' AS agent,
  event ->> '$.body.type' AS type,
  event -> '$.body.payload' AS payload
FROM events WHERE kind = 'component'
"""

for statement in (_TURN_CHANGED, _TURN_DELETED, _EVENTS, _COMPONENTS):
    event.listen(METADATA, "after_create", DDL(statement).execute_if(dialect="sqlite"))
