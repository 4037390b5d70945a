"""The statements by which the store writes a turn, and reads a session and what it showed last."""

from kit.stores.rows import COLUMNS

_FIXED = frozenset({"id", "session_id", "tenant_id", "user_id", "message", "pattern", "model", "started_at", "cap"})
"""What is known when a turn is accepted, and never changes."""
_ALL = (*COLUMNS, "owner", "log")
_INSERT = f"INSERT INTO turns ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))}) ON CONFLICT (id) DO UPDATE SET "
BEGIN_TURN = _INSERT + ", ".join(f"{name} = excluded.{name}" for name in _ALL)
END_TURN = _INSERT + ", ".join(f"{name} = excluded.{name}" for name in _ALL if name not in (*_FIXED, "owner"))
INSERT_MESSAGE = "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?)"
INSERT_NOTE = "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)"
_LAST = (
    "SELECT invoked FROM turns WHERE session_id = s.id AND status <> 'running' {} ORDER BY started_at DESC, rowid DESC LIMIT 1"
)
RECALL_SESSION = f"""SELECT s.*, ({_LAST.format("")}), ({_LAST.format("AND invoked <> '[]'")}),
(SELECT json_group_object(name, json_array(value, at)) FROM notes WHERE session_id = s.id) FROM sessions s WHERE s.id = ?"""
LAST_COMPONENTS = """SELECT t.id, c.value ->> '$.body.agent', c.value ->> '$.body.type',
coalesce(c.value ->> '$.body.payload.id', ''),
coalesce(c.value ->> '$.body.payload.title', c.value ->> '$.body.payload.name', ''),
coalesce(s.value ->> '$.body.tool', '')
FROM (SELECT id, log FROM turns WHERE session_id = ? AND instr(log, '"kind":"component"')
  AND EXISTS (SELECT 1 FROM json_each(log) WHERE value ->> '$.body.kind' = 'component')
  ORDER BY started_at DESC, rowid DESC LIMIT 1) t
JOIN json_each(t.log) c LEFT JOIN json_each(t.log) s
  ON s.value ->> 'span_id' = c.value ->> 'span_id' AND s.value ->> '$.body.kind' = 'tool_started'
WHERE c.value ->> '$.body.kind' = 'component' ORDER BY c.key"""
