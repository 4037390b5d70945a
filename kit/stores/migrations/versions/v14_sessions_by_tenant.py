"""A session is named by its tenant and its id: before, one id was one tenant's.

The lines and notes of a session get the tenant that the session had.
"""

from alembic import op
from sqlalchemy import inspect

revision = "0014"
down_revision = "0013"

_TABLES = {
    "sessions": """
CREATE TABLE sessions (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  locale TEXT NOT NULL,
  location TEXT,
  PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID
""",
    "messages": """
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
    "notes": """
CREATE TABLE notes (
  tenant_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (tenant_id, session_id, name)
)
""",
}

# Lines are in the order of their row numbers, so they keep these. A line whose turn is gone, or a
# note whose session is, stays without a tenant: nobody reads it, and nothing is lost.
_COPIES = {
    "messages": """
INSERT INTO messages (rowid, turn_id, position, tenant_id, session_id, agent, role, text)
SELECT
  earlier.rowid, turn_id, position,
  coalesce(
    (SELECT tenant_id FROM turns WHERE turns.id = turn_id),
    (SELECT tenant_id FROM earlier_sessions WHERE earlier_sessions.id = session_id),
    ''
  ),
  session_id, agent, role, text
FROM earlier_messages earlier
""",
    "notes": """
INSERT INTO notes (tenant_id, session_id, name, value, at)
SELECT
  coalesce(
    (SELECT tenant_id FROM earlier_sessions WHERE earlier_sessions.id = session_id),
    (SELECT tenant_id FROM turns WHERE turns.session_id = earlier.session_id LIMIT 1),
    ''
  ),
  session_id, name, value, at
FROM earlier_notes earlier
""",
    "sessions": """
INSERT INTO sessions (tenant_id, id, user_id, locale, location)
SELECT tenant_id, id, user_id, locale, location FROM earlier_sessions
""",
}


def upgrade() -> None:
    """Copies sessions, lines and notes into tables of the new shape."""
    existing = inspect(op.get_bind()).get_table_names()
    for table, statement in _TABLES.items():
        if table in existing:
            op.execute(f"ALTER TABLE {table} RENAME TO earlier_{table}")
        op.execute(statement)
    if "sessions" not in existing:
        # One that holds nothing, so that the copies of the other tables need no second form.
        op.execute("CREATE TABLE earlier_sessions (id, tenant_id, user_id, locale, location)")
    for table, statement in _COPIES.items():
        if table in existing:
            op.execute(statement)
            op.execute(f"DROP TABLE earlier_{table}")
    if "sessions" not in existing:
        op.execute("DROP TABLE earlier_sessions")
