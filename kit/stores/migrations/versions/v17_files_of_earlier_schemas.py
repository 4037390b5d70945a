"""A file of any schema from 2 on gets the tables of schema 17, with every row.

What a file has already is told by its columns, so one script does for all of them. What is left out here (tables
without rows of earlier schemas, indexes, views) is created by whoever opens the file.
"""

import json
from typing import Any

import orjson
from alembic import op
from sqlalchemy import Row, text

from kit.core.display.turn_parts import TurnParts, ending_of, turn_parts
from kit.core.errors import StoreError
from kit.core.outcome import RoutingDecision
from kit.core.record import Measures
from kit.stores.rows import failure_axes

revision = "0017"
down_revision = None

# Before schema 9 a turn had no number and held its own log; before schema 3, events stood in a table.
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
  FROM (SELECT event FROM events WHERE turn_id = id ORDER BY seq)
)
FROM turns
WHERE status <> 'running' AND EXISTS (SELECT 1 FROM events WHERE turn_id = id)
"""

# Logs from before they were packed (13) stay as they are: to pack them now would write all of the file anew.
_COLUMNS = {
    "logs": ("size INTEGER NOT NULL DEFAULT 0",),
    "turns": ("ending TEXT NOT NULL DEFAULT ''", "axes TEXT NOT NULL DEFAULT ''"),
    "agent_plans": (
        "session_id TEXT NOT NULL DEFAULT ''",
        "replan_count INTEGER NOT NULL DEFAULT 0",
        "created_at REAL NOT NULL DEFAULT 0",
        "completed_at REAL",
        "task_type TEXT",
        "failure_kind TEXT",
    ),
    "agent_events": (
        "user_id TEXT",
        "agent TEXT",
        "status TEXT",
        "duration_ms INTEGER",
        "lock_wait_ms INTEGER",
    ),
    "agent_memory": ("embedder TEXT",),
}

# A row whose document is no JSON was written by somebody else: it must not keep the file from being opened.
_FILL = {
    "agent_plans": (
        """
UPDATE agent_plans SET document = json_set(
  json_remove(document, '$.failure.kind'), '$.failure_kind', document ->> '$.failure.kind'
)
WHERE json_valid(document) AND json_type(document, '$.failure.kind') IS NOT NULL
""",
        """
UPDATE agent_plans SET
  session_id = coalesce(document ->> 'session_id', ''),
  replan_count = coalesce(document ->> 'replan_count', 0),
  created_at = coalesce(document ->> 'created_at', 0),
  completed_at = document ->> 'completed_at',
  task_type = document ->> 'task_type',
  failure_kind = document ->> 'failure_kind'
WHERE json_valid(document)
""",
    ),
    "agent_events": (
        # Events refuse to be changed; the columns repeat what stands in them.
        "DROP TRIGGER IF EXISTS agent_events_changed",
        """
UPDATE agent_events SET
  user_id = document ->> 'user_id',
  agent = document ->> 'agent',
  status = document ->> 'status',
  duration_ms = document ->> 'duration_ms',
  lock_wait_ms = document ->> 'lock_wait_ms'
WHERE json_valid(document)
""",
    ),
    # No vector was written before, so each has the name of its embedder.
    "agent_memory": ("DROP INDEX IF EXISTS agent_memory_by_scope",),
}

# Before schema 15 a plan was held until a moment of its holder's clock.
_FENCE = """
UPDATE agent_plans SET document = json_set(
  json_remove(document, '$.lease_owner', '$.lease_expires'),
  '$.holder', document ->> '$.lease_owner',
  '$.fence', 1
)
WHERE json_valid(document)
"""

_MEASURED = text("""
SELECT
  number, status, cap_behavior, invoked, failed, log,
  CASE WHEN json_valid(measures) THEN json_remove(measures, '$.left_out') ELSE '' END AS measures
FROM turns LEFT JOIN logs USING (number)
""")

_KEEP = text("""
UPDATE turns SET
  ending = :ending,
  axes = :axes,
  measures = CASE
    WHEN json_valid(measures) THEN json_set(json_remove(measures, '$.left_out'), '$.parts', json(:parts))
    ELSE measures
  END
WHERE number = :number
""")

# Before schema 14 the id of a session was one tenant's. Lines are in the order of their row numbers, so they keep
# these. A line whose turn is gone, or a note whose session is, stays without a tenant: nobody reads it, and
# nothing is lost.
_BY_TENANT = {
    "messages": (
        """
CREATE TABLE messages (
  turn_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  tenant_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  role TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (turn_id, position)
)
""",
        """
INSERT INTO messages (rowid, turn_id, position, tenant_id, session_id, agent, role, text)
SELECT
  earlier.rowid, turn_id, position,
  coalesce(
    (SELECT tenant_id FROM turns WHERE turns.id = turn_id),
    (SELECT tenant_id FROM sessions WHERE sessions.id = session_id),
    ''
  ),
  session_id, agent, role, text
FROM earlier
""",
    ),
    "notes": (
        """
CREATE TABLE notes (
  tenant_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (tenant_id, session_id, name)
)
""",
        """
INSERT INTO notes (tenant_id, session_id, name, value, at)
SELECT
  coalesce(
    (SELECT tenant_id FROM sessions WHERE sessions.id = session_id),
    (SELECT tenant_id FROM turns WHERE turns.session_id = earlier.session_id LIMIT 1),
    ''
  ),
  session_id, name, value, at
FROM earlier
""",
    ),
    # The last one, since the others read from it.
    "sessions": (
        """
CREATE TABLE sessions (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  locale TEXT NOT NULL,
  location TEXT,
  PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID
""",
        """
INSERT INTO sessions (tenant_id, id, user_id, locale, location)
SELECT tenant_id, id, user_id, locale, location FROM earlier
""",
    ),
}


def upgrade() -> None:
    """Gives a file the tables and columns it lacks. Raises StoreError for another database."""
    if op.get_bind().dialect.name != "sqlite":
        raise StoreError(
            "This PostgreSQL store is of a schema before 17. With the version of the kit that wrote it, "
            "`kit migrate URL FILE` copies it into a file, which this version opens."
        )
    _number_turns()
    _name_sessions_by_tenant()
    if "lease_expires" in _columns("agent_plans"):
        op.execute(_FENCE)
        op.execute("DROP INDEX IF EXISTS agent_plans_open")
        op.execute("ALTER TABLE agent_plans DROP COLUMN lease_expires")
    for table, declarations in _COLUMNS.items():
        _add_columns(table, declarations)


def _columns(table: str) -> list[str]:
    """Returns the columns of a table; none where there is no such table."""
    rows = op.get_bind().exec_driver_sql(f"SELECT name FROM pragma_table_info('{table}')")
    return [name for (name,) in rows]


def _number_turns() -> None:
    columns = _columns("turns")
    if "number" in columns:
        return
    op.execute("ALTER TABLE turns RENAME TO earlier")
    op.execute(_TURNS)
    op.execute(_LOGS)
    if "log" in columns:
        columns.remove("log")
        op.execute("INSERT INTO logs SELECT rowid, log FROM earlier WHERE log IS NOT NULL")
    names = ", ".join(columns)
    op.execute(f"INSERT INTO turns (number, {names}) SELECT rowid, {names} FROM earlier")
    op.execute("DROP TABLE earlier")
    if _columns("events"):
        op.execute(_GATHER_EVENTS)
        op.execute("DROP TABLE events")


def _name_sessions_by_tenant() -> None:
    if "tenant_id" in _columns("messages"):
        return
    # One that holds nothing, so that the copies of the other tables need no second form.
    op.execute("CREATE TABLE IF NOT EXISTS sessions (id, tenant_id, user_id, locale, location)")
    for table, (create, copy) in _BY_TENANT.items():
        if _columns(table):
            op.execute(f"ALTER TABLE {table} RENAME TO earlier")
            op.execute(create)
            op.execute(copy)
            op.execute("DROP TABLE earlier")


def _add_columns(table: str, declarations: tuple[str, ...]) -> None:
    """Adds to a table what it lacks of these columns, and fills them in from its rows."""
    columns = _columns(table)
    missing = [line for line in declarations if line.partition(" ")[0] not in columns]
    if not columns or not missing:
        return
    for declaration in missing:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {declaration}")
    if table == "turns":
        _measure_turns()
    for statement in _FILL.get(table, ()):
        op.execute(statement)


def _measure_turns() -> None:
    """Keeps what lists are filtered by, and what became of the parts of each message."""
    changes: list[dict[str, Any]] = []
    for turn in op.get_bind().execute(_MEASURED):
        measures = _measures_of(turn)
        changes.append(
            {
                "number": turn.number,
                "ending": ending_of(turn.status, measures.parts),
                "axes": " ".join(failure_axes(measures, turn.cap_behavior)),
                "parts": measures.parts.model_dump_json(),
            }
        )
    if changes:
        op.get_bind().execute(_KEEP, changes)


def _measures_of(turn: Row[Any]) -> Measures:
    """Returns the measures of a turn, with its parts; none of what nobody can read."""
    try:
        measures = Measures.model_validate_json(turn.measures)
        if "parts" in measures.model_fields_set:
            return measures
        # Before schema 10 they were not counted.
        return measures.replace(parts=_parts_of(turn))
    except (ValueError, TypeError, LookupError):
        # Somebody else wrote the row: it must not keep the file from being opened.
        return Measures()


def _parts_of(turn: Row[Any]) -> TurnParts:
    """Counts the parts of a turn in its log, or in its columns where the log has no routing decision."""
    events: list[dict[str, Any]] = orjson.loads(turn.log or "[]")
    for event in reversed(events):
        if event["body"]["kind"] == "routing":
            return turn_parts(RoutingDecision.model_validate(event["body"]["decision"]))
    failures = set(json.loads(turn.failed))
    answered = set(json.loads(turn.invoked)) - failures
    return TurnParts(whole=len(answered), failed=len(failures))
