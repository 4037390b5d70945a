"""The tables of turns (docs/traces.md), what is derived from them, and the marks of a file of ours."""

from typing import Any

from sqlalchemy import (
    DDL,
    REAL,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.types import TypeEngine

SCHEMA = 17
"""Kept in a file as `user_version`: it tells the schema without Alembic, which takes half a second to load.
In PostgreSQL the table of Alembic tells it."""
APPLICATION = 0x6B697431
"""Kept in the file as `application_id`: tells our files from other programs' databases."""

METADATA = MetaData()
# PostgreSQL's REAL has seven digits, its INTEGER 32 bits; SQLite's have as many as these.
FLOAT: TypeEngine[float] = REAL[float]().with_variant(Double[float](), "postgresql")
WHOLE: TypeEngine[int] = Integer().with_variant(BigInteger(), "postgresql")


def required(*names: str, kind: Any = Text, **options: Any) -> list[Column[Any]]:
    """Returns columns that are never NULL."""
    return [Column(name, kind, nullable=False, **options) for name in names]


def keys(*names: str, kind: Any = Text) -> list[Column[Any]]:
    """Returns the columns that name a row."""
    return [Column(name, kind, primary_key=True) for name in names]


ALEMBIC_VERSION = Table(
    "alembic_version", METADATA, Column("version_num", String(32), primary_key=True)
)
"""Where Alembic keeps the revision of a file."""

SESSIONS = Table(
    "sessions",
    METADATA,
    *keys("tenant_id", "id"),
    *required("user_id", "locale"),
    Column("location", Text),
    sqlite_with_rowid=False,
)

TURNS = Table(
    "turns",
    METADATA,
    *keys("number", kind=WHOLE),
    *required("id", unique=True),
    *required("session_id", "tenant_id", "user_id", "message", "pattern", "model"),
    *required("started_at", kind=FLOAT),
    Column("seconds", FLOAT),
    *required("status", "text", "invoked", "failed"),
    *required("intent_count", "cap", kind=WHOLE),
    *required("cap_behavior"),
    Column("ttft", FLOAT),
    *required("input_tokens", "output_tokens", "model_calls", "tool_calls", kind=WHOLE),
    Column("cost", FLOAT),
    *required("measures", server_default=text("'{}'")),
    *required("owner"),
    # What lists are filtered by, worked out of `status`, `measures` and `cap_behavior` when the row
    # is written: to read that JSON again for 50,000 rows takes SQLite half a second.
    *required("ending", "axes", server_default=text("''")),
)
Index("turns_by_time", TURNS.c.started_at)
Index("turns_by_tenant", TURNS.c.tenant_id, TURNS.c.started_at)
Index("turns_by_session", TURNS.c.session_id, TURNS.c.tenant_id, TURNS.c.started_at)
# It holds every column that a list counts by, so that this reads no row of `turns`.
_VISITOR = (
    *("tenant_id", "user_id", "started_at", "session_id", "pattern", "model"),
    *("seconds", "ending", "axes"),
)
Index("turns_by_visitor", *(TURNS.c[name] for name in _VISITOR))

# A turn's events stand apart from its row: a list that reads a thousand rows reads no log.
# It is packed as SQLite's archives pack a file (https://sqlite.org/sqlar.html): `size` is what it
# has unpacked, 0 where it stands as it is.
LOGS = Table(
    "logs",
    METADATA,
    *keys("number", kind=WHOLE),
    *required("log", kind=Text().with_variant(LargeBinary(), "postgresql")),
    *required("size", kind=WHOLE, server_default=text("0")),
)

MESSAGES = Table(
    "messages",
    METADATA,
    *keys("turn_id"),
    *keys("position", kind=WHOLE),
    *required("tenant_id", "session_id", "agent", "role", "text"),
    # SQLite's indexes end with the row number by themselves.
    Index("messages_by_reader", "session_id", "tenant_id", "agent").ddl_if(dialect="sqlite"),
)

NOTES = Table(
    "notes",
    METADATA,
    *keys("tenant_id", "session_id", "name"),
    *required("value"),
    *required("at", kind=FLOAT),
)

PROMPTS = Table(
    "prompts",
    METADATA,
    *keys("cohort"),
    *required("agent", "text", "tools"),
    *keys("since", kind=FLOAT),
)

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("turn_id", Text, ForeignKey("turns.id"), primary_key=True),
    *required("score", kind=WHOLE),
    *required("note"),
)

ROLLUPS = Table(
    "rollups",
    METADATA,
    *keys("through", kind=WHOLE),
    *keys("tenant_id"),
    *required("first", kind=FLOAT),
    *required("tally"),
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
FROM turns JOIN logs USING (number), json_each(CAST(sqlar_uncompress(log, size) AS TEXT)) item
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

# The same for PostgreSQL, which has no numbers of rows by itself, and cannot unpack a log: it has no view over these.
_ROW_NUMBERS = """
ALTER TABLE messages ADD COLUMN IF NOT EXISTS rowid BIGINT GENERATED ALWAYS AS IDENTITY
"""

_MESSAGES_BY_READER = """
CREATE INDEX IF NOT EXISTS messages_by_reader ON messages (session_id, tenant_id, agent, rowid)
"""

_DROP_SUMS = """
CREATE OR REPLACE FUNCTION drop_sums_of_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM rollups WHERE through >= OLD.number;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM logs WHERE number = OLD.number;
  END IF;
  RETURN NULL;
END
$$
"""

_POSTGRES_TURN_CHANGED = """
CREATE OR REPLACE TRIGGER turn_changed AFTER UPDATE ON turns FOR EACH ROW
WHEN (OLD.status <> 'running') EXECUTE FUNCTION drop_sums_of_turn()
"""

_POSTGRES_TURN_DELETED = """
CREATE OR REPLACE TRIGGER turn_deleted AFTER DELETE ON turns FOR EACH ROW
EXECUTE FUNCTION drop_sums_of_turn()
"""

for statement in (
    _ROW_NUMBERS,
    _MESSAGES_BY_READER,
    _DROP_SUMS,
    _POSTGRES_TURN_CHANGED,
    _POSTGRES_TURN_DELETED,
):
    event.listen(METADATA, "after_create", DDL(statement).execute_if(dialect="postgresql"))
