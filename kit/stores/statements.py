"""The statements that write and read turns, sessions, narration and notes: plain SQL, each with a name.

A query that takes `:tenant` and `:user` holds itself to the turns of one principal; for an operator
both are NULL, and it reads everybody's.
"""

from collections.abc import Iterable

from kit.core.record import TurnRecord

JSON_COLUMNS = ("invoked", "failed", "measures")
PLAIN_COLUMNS = tuple(name for name in TurnRecord.model_fields if name not in JSON_COLUMNS)
COLUMNS = (*PLAIN_COLUMNS, *JSON_COLUMNS)
"""The columns of `turns` that a TurnRecord is read from, in this order; `owner` is for the store alone."""
_WRITTEN = (*COLUMNS, "owner")
_KNOWN_AT_BEGIN = frozenset(
    {"id", "session_id", "tenant_id", "user_id", "message", "pattern", "model", "started_at", "cap"}
)
"""These never change, so the end of a turn does not write them again."""

# Sessions

INSERT_SESSION = """
INSERT OR IGNORE INTO sessions (id, tenant_id, user_id, locale, location)
VALUES (?, ?, ?, ?, ?)
"""

SESSION = "SELECT id, tenant_id, user_id, locale, location FROM sessions WHERE id = ?"

# The newest turn is found by the order in which turns ended, as a clock may be set back. The CTEs
# are not materialized: each of them is walked from its newest line on, and left after the first.
RECALL_SESSION = """
WITH ended AS NOT MATERIALIZED (
  SELECT turns.id, turns.invoked, turns.status, messages.rowid AS place
  FROM sessions
  JOIN messages ON messages.session_id = sessions.id AND messages.agent = ''
  JOIN turns ON turns.id = messages.turn_id
    AND turns.tenant_id = sessions.tenant_id AND turns.user_id = sessions.user_id
  WHERE sessions.id = :session
), routed AS NOT MATERIALIZED (
  SELECT id, invoked FROM ended
  WHERE invoked <> '[]' OR status IN ('failed', 'deadline', 'cancelled')
  ORDER BY place DESC LIMIT 1
)
SELECT
  id, tenant_id, user_id, locale, location,
  (SELECT invoked FROM ended WHERE status <> 'interrupted' ORDER BY place DESC LIMIT 1),
  (SELECT invoked FROM routed),
  (
    SELECT json_group_array(DISTINCT agent) FROM messages
    WHERE turn_id = (SELECT id FROM routed) AND agent <> '' AND text = :unanswered
  ),
  (SELECT json_group_object(name, json_array(value, at)) FROM notes WHERE session_id = sessions.id)
FROM sessions WHERE id = :session
"""

# Turns and their logs

_NAMES = ", ".join(_WRITTEN)
_MARKS = ", ".join("?" * len(_WRITTEN))
BEGIN_TURN = f"INSERT INTO turns ({_NAMES}) VALUES ({_MARKS})"


def _replace_turn(columns: Iterable[str]) -> str:
    """Returns the statement that writes a turn's row, new or not; it returns no number for the row
    of another conversation, which stays as it is."""
    values = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"""
        {BEGIN_TURN}
        ON CONFLICT (id) DO UPDATE SET {values}
        WHERE tenant_id = excluded.tenant_id
          AND user_id = excluded.user_id
          AND session_id = excluded.session_id
        RETURNING number"""


BEGIN_TURN_AGAIN = _replace_turn(_WRITTEN)
END_TURN = _replace_turn(name for name in COLUMNS if name not in _KNOWN_AT_BEGIN)

KEEP_LOG = "INSERT OR REPLACE INTO logs (number, log) VALUES (?, ?)"

KEEP_RUNNING_LOG = """
INSERT OR REPLACE INTO logs (number, log)
SELECT number, ? FROM turns WHERE id = ? AND status = 'running'
"""

# What was kept of a turn goes when it begins again. It stays when its own process writes the row of
# the running turn a second time.
DROP_LOG = """
DELETE FROM logs WHERE number = (
  SELECT number FROM turns WHERE id = ? AND NOT (status = 'running' AND owner = ?)
)
"""

SELECT_TURNS = f"SELECT {', '.join(COLUMNS)} FROM turns"

TURN = f"""
{SELECT_TURNS}
WHERE id = :turn AND (:tenant IS NULL OR tenant_id = :tenant AND user_id = :user)
"""

TURN_LOG = """
SELECT log FROM turns JOIN logs USING (number)
WHERE id = :turn AND (:tenant IS NULL OR tenant_id = :tenant AND user_id = :user)
"""

CLAIM_TURN = """
UPDATE turns SET status = 'running', owner = ?
WHERE id = ? AND status IN ('paused', 'interrupted')
"""

# Turns that were running when their process died. Turns that are summed up have ended, so only
# those after the last sum are looked at.

OWNERS_OF_RUNNING = """
SELECT DISTINCT owner FROM turns
WHERE status = 'running' AND number > (SELECT coalesce(max(through), 0) FROM rollups)
"""

INTERRUPT_TURNS = """
UPDATE turns SET status = 'interrupted'
WHERE status = 'running' AND number > (SELECT coalesce(max(through), 0) FROM rollups)
  AND owner = :owner
"""

# Their questions join the narration as open ones. A turn that had paused has its lines already.
LEAVE_QUESTIONS = """
WITH abandoned AS (
  SELECT number, id, session_id, message FROM turns
  WHERE status = 'running' AND number > (SELECT coalesce(max(through), 0) FROM rollups)
    AND owner = :owner
    AND NOT EXISTS (SELECT 1 FROM messages WHERE turn_id = turns.id)
), lines AS (
  SELECT number, id, 0 AS position, session_id, 'user' AS role, message AS text FROM abandoned
  UNION ALL
  SELECT number, id, 1, session_id, 'assistant', :unanswered FROM abandoned
)
INSERT INTO messages (turn_id, position, session_id, agent, role, text)
SELECT id, position, session_id, '', role, text FROM lines ORDER BY number, position
"""

# Narration and what was shown

INSERT_MESSAGE = """
INSERT OR REPLACE INTO messages (turn_id, position, session_id, agent, role, text)
VALUES (?, ?, ?, ?, ?, ?)
"""

NEWEST_MESSAGES = """
SELECT turn_id, role, text, agent FROM messages
WHERE session_id = :session AND agent = :agent
  AND (:since IS NULL
    OR rowid > (SELECT coalesce(max(rowid), 0) FROM messages WHERE turn_id = :since))
  AND (:tenant IS NULL OR EXISTS (
    SELECT 1 FROM turns WHERE id = turn_id AND tenant_id = :tenant AND user_id = :user))
ORDER BY rowid DESC LIMIT :limit
"""
OLDEST_MESSAGES = NEWEST_MESSAGES.replace("DESC", "ASC")

# The same lines with their times, and with the log of a turn that showed something.
WINDOW = """
WITH line AS (
  SELECT rowid AS place, turn_id, position, role, text FROM messages
  WHERE session_id = :session AND agent = :agent
    AND (:since IS NULL
      OR rowid > (SELECT coalesce(max(rowid), 0) FROM messages WHERE turn_id = :since))
    AND EXISTS (
      SELECT 1 FROM turns WHERE id = turn_id AND tenant_id = :tenant AND user_id = :user)
  ORDER BY rowid DESC LIMIT :limit
)
SELECT
  turn_id, position, role, line.text, started_at, coalesce(seconds, 0),
  iif(role = 'assistant' AND instr(log, '"kind":"component"'), log, '[]')
FROM line JOIN turns ON id = turn_id LEFT JOIN logs USING (number)
ORDER BY place
"""

# The newest logs, as far as all of them together have no more than `:most` bytes.
SHOWN = """
WITH asked AS (
  SELECT turns.number, messages.rowid AS place, length(CAST(log AS BLOB)) AS size
  FROM messages JOIN turns ON turns.id = messages.turn_id JOIN logs USING (number)
  WHERE messages.session_id = :session AND messages.agent = '' AND messages.role = 'user'
    AND (:tenant IS NULL OR turns.tenant_id = :tenant AND turns.user_id = :user)
  ORDER BY messages.rowid DESC LIMIT :turns
), summed AS (
  SELECT number, place, sum(size) OVER (ORDER BY place DESC) AS size FROM asked
)
SELECT turns.id, log FROM summed JOIN turns USING (number) JOIN logs USING (number)
WHERE size <= :most AND instr(log, '"kind":"component"')
ORDER BY place
"""

# Notes, prompts and feedback

INSERT_NOTE = "INSERT OR REPLACE INTO notes (session_id, name, value, at) VALUES (?, ?, ?, ?)"

NOTE = "SELECT value, at FROM notes WHERE session_id = ? AND name = ?"

# The row of a turn says when it began and how long it took without its pause; this note says when
# its user came back.
KEEP_RESUMED = """
INSERT OR REPLACE INTO notes (session_id, name, value, at)
SELECT session_id, 'resumed', id, ? FROM turns WHERE id = ?
"""

KEEP_PROMPT = """
INSERT INTO prompts (cohort, agent, text, tools, since)
SELECT :cohort, :agent, :text, :tools, :since
WHERE NOT EXISTS (
  SELECT 1 FROM prompts
  WHERE cohort = :cohort AND tools = :tools
    AND since = (SELECT max(since) FROM prompts WHERE cohort = :cohort)
)
"""

PROMPT = """
SELECT cohort, agent, text, tools FROM prompts
WHERE cohort = ? AND since <= ?
ORDER BY since DESC LIMIT 1
"""

INSERT_FEEDBACK = """
INSERT OR REPLACE INTO feedback (turn_id, score, note)
SELECT id, :score, :note FROM turns WHERE id = :turn_id
"""

FEEDBACK = "SELECT turn_id, score, note FROM feedback WHERE turn_id = ?"

FEEDBACKS = """
SELECT turn_id, score, note FROM feedback JOIN turns ON id = turn_id
WHERE score = ?
ORDER BY started_at, turn_id
"""
