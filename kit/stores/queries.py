"""Queries that are written out: JSON, row numbers, and what a planner has to be told.

Each is plain SQL with a name, for SQLite and PostgreSQL; the search of words alone is another on each. The
names of JSON's functions are SQLite's, kit/stores/postgres.py has the other ones. A query that takes `:tenant`
and `:user` holds itself to the turns of one principal; for an operator both are NULL, and it reads everybody's.
"""

# The newest turn is found by the order in which turns ended, as a clock may be set back. The CTEs
# are not materialized: each of them is walked from its newest line on, and left after the first.
RECALL_SESSION = """
WITH ended AS NOT MATERIALIZED (
  SELECT turns.id, turns.invoked, turns.status, messages.rowid AS place
  FROM sessions
  JOIN messages ON messages.session_id = sessions.id
    AND messages.tenant_id = sessions.tenant_id AND messages.agent = ''
  JOIN turns ON turns.id = messages.turn_id
    AND turns.tenant_id = sessions.tenant_id AND turns.user_id = sessions.user_id
  WHERE sessions.tenant_id = :tenant_id AND sessions.id = :session_id
), routed AS NOT MATERIALIZED (
  SELECT id, invoked FROM ended
  WHERE status <> 'running'
    AND (invoked <> '[]' OR status IN ('failed', 'deadline', 'cancelled'))
  ORDER BY place DESC LIMIT 1
)
SELECT
  tenant_id, id, user_id, locale, location,
  (
    SELECT invoked FROM ended WHERE status NOT IN ('interrupted', 'running')
    ORDER BY place DESC LIMIT 1
  ),
  (SELECT invoked FROM routed),
  (
    SELECT CAST(json_group_array(DISTINCT agent) AS TEXT) FROM messages
    WHERE turn_id = (SELECT id FROM routed) AND agent <> '' AND text = :unanswered
  ),
  (
    SELECT CAST(json_group_object(name, json_array(value, at)) AS TEXT) FROM notes
    WHERE notes.tenant_id = sessions.tenant_id AND notes.session_id = sessions.id
      AND notes.name NOT LIKE 'summary of %'
  ),
  (
    SELECT CAST(json_group_object(id, status) AS TEXT) FROM (
      SELECT id, status FROM turns
      WHERE tenant_id = :tenant_id AND session_id = :session_id
      ORDER BY started_at DESC LIMIT :newest
    ) AS newest WHERE status IN ('running', 'interrupted')
  )
FROM sessions WHERE tenant_id = :tenant_id AND id = :session_id
"""

# Their questions join the narration as open ones. A turn that had paused has its lines already.
LEAVE_QUESTIONS = """
WITH abandoned AS (
  SELECT number, id, tenant_id, session_id, message FROM turns
  WHERE status = 'running' AND number > (SELECT coalesce(max(through), 0) FROM rollups)
    AND owner = :owner
    AND NOT EXISTS (SELECT 1 FROM messages WHERE turn_id = turns.id)
), lines AS (
  SELECT
    number, id, 0 AS position, tenant_id, session_id, 'user' AS role, message AS text
  FROM abandoned
  UNION ALL
  SELECT number, id, 1, tenant_id, session_id, 'assistant', :unanswered FROM abandoned
)
INSERT INTO messages (turn_id, position, tenant_id, session_id, agent, role, text)
SELECT id, position, tenant_id, session_id, '', role, text FROM lines ORDER BY number, position
"""

# Where no turn is named they begin with the first line. A bound that stands by itself ends the walk through the index:
# after `OR` it is asked of each line that the session ever had.
NEWEST_MESSAGES = """
SELECT turn_id, role, text, agent FROM messages
WHERE tenant_id = :tenant_id AND session_id = :session_id AND agent = :agent
  AND rowid > (SELECT coalesce(max(rowid), 0) FROM messages WHERE turn_id = CAST(:since AS TEXT))
  AND (CAST(:tenant AS TEXT) IS NULL OR EXISTS (
    SELECT 1 FROM turns WHERE id = turn_id AND tenant_id = :tenant AND user_id = :user))
ORDER BY rowid DESC LIMIT :limit
"""

OLDEST_MESSAGES = NEWEST_MESSAGES.replace("DESC", "ASC")

# The same lines with their times, and with the logs of their turns.
WINDOW = """
WITH line AS (
  SELECT rowid AS place, turn_id, position, role, text FROM messages
  WHERE tenant_id = :tenant AND session_id = :session AND agent = :agent
    AND rowid > (SELECT coalesce(max(rowid), 0) FROM messages WHERE turn_id = CAST(:since AS TEXT))
    AND EXISTS (
      SELECT 1 FROM turns WHERE id = turn_id AND tenant_id = :tenant AND user_id = :user)
  ORDER BY rowid DESC LIMIT :limit
)
SELECT
  turn_id, position, role, line.text, started_at, coalesce(seconds, 0),
  CASE WHEN role = 'assistant' THEN log END, coalesce(size, 0)
FROM line JOIN turns ON id = turn_id LEFT JOIN logs USING (number)
ORDER BY place
"""

# The newest logs, as far as all of them together have no more than `:most` bytes.
SHOWN = """
WITH asked AS (
  SELECT
    turns.number, messages.rowid AS place,
    CASE WHEN size > length(log) THEN size ELSE length(log) END AS bytes
  FROM messages JOIN turns ON turns.id = messages.turn_id JOIN logs USING (number)
  WHERE messages.tenant_id = :tenant_id AND messages.session_id = :session_id
    AND messages.agent = '' AND messages.role = 'user'
    AND (CAST(:tenant AS TEXT) IS NULL OR turns.tenant_id = :tenant AND turns.user_id = :user)
  ORDER BY messages.rowid DESC LIMIT :turns
), summed AS (
  SELECT number, place, sum(bytes) OVER (ORDER BY place DESC) AS bytes FROM asked
)
SELECT turns.id, log, size
FROM summed JOIN turns USING (number) JOIN logs USING (number)
WHERE bytes <= :most
ORDER BY place
"""

KEEP_RUNNING_LOG = """
INSERT INTO logs (number, log, size)
SELECT number, :log, :size FROM turns
WHERE id = :turn AND status = 'running' AND owner = :by
ON CONFLICT (number) DO UPDATE SET log = excluded.log, size = excluded.size
"""

# The row of a turn says when it began and how long it took without its pause; this note says when
# its user came back.
KEEP_RESUMED = """
INSERT INTO notes (tenant_id, session_id, name, value, at)
SELECT tenant_id, session_id, 'resumed', id, :at FROM turns WHERE id = :turn
ON CONFLICT (tenant_id, session_id, name) DO UPDATE SET value = excluded.value, at = excluded.at
"""

# It writes no row for a turn that is not stored.
KEEP_FEEDBACK = """
INSERT INTO feedback (turn_id, score, note)
SELECT id, :score, :note FROM turns WHERE id = :turn_id
ON CONFLICT (turn_id) DO UPDATE SET score = excluded.score, note = excluded.note
"""

# A few at a time: a turn that writes waits no longer than for these.
SWEEP_EVENTS = """
DELETE FROM agent_events
WHERE seq IN (SELECT seq FROM agent_events WHERE ts < :before ORDER BY seq LIMIT :limit)
"""

SWEEP_MEMORIES = "DELETE FROM agent_memory WHERE ttl_at <= :now"

# Words of memories, by the search of texts that each database has

INSERT_WORDS = "INSERT INTO agent_memory_words (rowid, text) VALUES (:seq, :text)"

_BEST_WORDS = """
SELECT document, embedding, locked_by, lock_expires
FROM agent_memory_words JOIN agent_memory ON seq = agent_memory_words.rowid
WHERE {is_match}
  AND tenant_id = :tenant_id AND scope = :scope
  AND user_id = :user_id AND session_id = :session_id
  AND (ttl_at IS NULL OR ttl_at > :now)
ORDER BY {order}, seq LIMIT :limit
"""

BEST_WORDS = {
    "sqlite": _BEST_WORDS.format(
        is_match="agent_memory_words MATCH :words", order="bm25(agent_memory_words)"
    ),
    "postgresql": _BEST_WORDS.format(
        is_match="words @@ websearch_to_tsquery('simple', :words)",
        order="ts_rank(words, websearch_to_tsquery('simple', :words)) DESC",
    ),
}
