"""Turns get numbers, and their events a table of logs.

Before, a turn held its own log; before schema 3, events stood in a table.
"""

from alembic import op
from sqlalchemy import inspect

revision = "0009"
down_revision = None

_SESSIONS = """
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  locale TEXT NOT NULL,
  location TEXT
) WITHOUT ROWID
"""

_TURNS = """
CREATE TABLE turns (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  message TEXT NOT NULL,
  pattern TEXT NOT NULL,
  model TEXT NOT NULL,
  started_at REAL NOT NULL,
  seconds REAL,
  status TEXT NOT NULL,
  text TEXT NOT NULL,
  invoked TEXT NOT NULL,
  failed TEXT NOT NULL,
  intent_count INTEGER NOT NULL,
  cap INTEGER NOT NULL,
  cap_behavior TEXT NOT NULL,
  ttft REAL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  cost REAL,
  measures TEXT NOT NULL DEFAULT '{}',
  owner TEXT NOT NULL
)
"""

_LOGS = "CREATE TABLE logs (number INTEGER PRIMARY KEY, log TEXT NOT NULL)"

_GATHER_EVENTS = """
INSERT INTO logs
SELECT number, (
  SELECT '[' || group_concat(event) || ']'
  FROM (SELECT event FROM earlier_events WHERE turn_id = id ORDER BY seq)
)
FROM turns
WHERE status <> 'running' AND EXISTS (SELECT 1 FROM earlier_events WHERE turn_id = id)
"""


def upgrade() -> None:
    """Copies turns, sessions and events into tables of the new shape."""
    existing = inspect(op.get_bind()).get_table_names()
    columns = _columns("turns")
    if "number" in columns:
        return
    for table in ("turns", "sessions", "events"):
        if table in existing:
            op.execute(f"ALTER TABLE {table} RENAME TO earlier_{table}")
    for statement in (_SESSIONS, _TURNS, _LOGS):
        op.execute(statement)
    if "log" in columns:
        columns.remove("log")
        op.execute("INSERT INTO logs SELECT rowid, log FROM earlier_turns WHERE log IS NOT NULL")
    names = ", ".join(columns)
    op.execute(f"INSERT INTO turns (number, {names}) SELECT rowid, {names} FROM earlier_turns")
    op.execute("DROP TABLE earlier_turns")
    if "sessions" in existing:
        op.execute("INSERT INTO sessions SELECT * FROM earlier_sessions")
        op.execute("DROP TABLE earlier_sessions")
    if "events" in existing:
        op.execute(_GATHER_EVENTS)
        op.execute("DROP TABLE earlier_events")


def _columns(table: str) -> list[str]:
    return [column["name"] for column in inspect(op.get_bind()).get_columns(table)]
