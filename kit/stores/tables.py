"""What the store's file holds, as SQL: tables, and views over a turn's log that cannot disagree
with it (docs/traces.md)."""

import json
import sqlite3
from typing import Any

import orjson

from kit.core.display.turn_parts import TurnParts, turn_parts
from kit.core.outcome import RoutingDecision

SCHEMA = 10
"""Kept in the file as `user_version`."""
APPLICATION = 0x6B697431
"""Kept in the file as `application_id`: tells our files from other programs' databases."""

TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, locale
  TEXT NOT NULL, location TEXT)
  WITHOUT ROWID;
CREATE TABLE turns (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, message TEXT NOT NULL,
  pattern TEXT NOT NULL, model TEXT NOT NULL, started_at REAL NOT NULL, seconds REAL, status TEXT
  NOT NULL, text TEXT NOT NULL,
  invoked TEXT NOT NULL, failed TEXT NOT NULL, intent_count INTEGER NOT NULL, cap INTEGER NOT NULL,
  cap_behavior TEXT NOT NULL,
  ttft REAL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL, cost REAL, measures TEXT NOT NULL DEFAULT '{}', owner TEXT NOT NULL);
CREATE TABLE logs (number INTEGER PRIMARY KEY, log TEXT NOT NULL);
CREATE INDEX turns_by_time ON turns (started_at);
CREATE INDEX turns_by_tenant ON turns (tenant_id, started_at);
CREATE INDEX turns_by_session ON turns (session_id, started_at);
CREATE INDEX turns_by_visitor ON turns (tenant_id, user_id, started_at, session_id, pattern, model);
CREATE TABLE messages (
  turn_id TEXT NOT NULL, position INTEGER NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL, role TEXT NOT NULL,
  text TEXT NOT NULL, PRIMARY KEY (turn_id, position));
CREATE INDEX messages_by_reader ON messages (session_id, agent);
CREATE TABLE notes (
  session_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session_id, name));
CREATE TABLE prompts (
  cohort TEXT NOT NULL, agent TEXT NOT NULL, text TEXT NOT NULL, tools TEXT NOT NULL, since REAL NOT NULL,
  PRIMARY KEY (cohort, since));
CREATE TABLE feedback (turn_id TEXT PRIMARY KEY REFERENCES turns (id), score INTEGER NOT NULL, note TEXT NOT NULL);
CREATE TABLE rollups (
  through INTEGER NOT NULL, tenant_id TEXT NOT NULL, first REAL NOT NULL, tally TEXT NOT NULL,
  PRIMARY KEY (through, tenant_id));
CREATE TRIGGER turn_changed AFTER UPDATE ON turns WHEN OLD.status <> 'running'
  BEGIN DELETE FROM rollups WHERE through >= OLD.number; END;
CREATE TRIGGER turn_deleted AFTER DELETE ON turns
  BEGIN DELETE FROM rollups WHERE through >= OLD.number; DELETE FROM logs WHERE number = OLD.number; END;
CREATE VIEW events AS
  SELECT turns.id AS turn_id, e.value ->> 'seq' AS seq, e.value ->> 'at' AS at, e.value ->> '$.body.kind' AS kind,
    e.value ->> 'span_id' AS span_id, e.value ->> 'parent_span_id' AS parent_span_id, e.value AS event
  FROM turns JOIN logs USING (number), json_each(log) e;
CREATE VIEW components AS
  SELECT turn_id, seq, event ->> '$.body.agent' AS agent, event ->> '$.body.type' AS type, event ->
  '$.body.payload' AS payload
  FROM events WHERE kind = 'component';
CREATE VIEW tool_messages AS
  SELECT t.id AS turn_id, min(c.value ->> 'seq') AS seq, c.value ->> '$.body.agent' AS sub_agent_id,
    s.value ->> '$.body.tool' AS tool, s.value ->> '$.body.call_id' AS call_id,
    json_object('arguments', s.value -> '$.body.args',
      'component_ids', json_group_array(c.value ->> '$.body.payload.id'),
      'titles', json_group_array(coalesce(c.value ->> '$.body.payload.title', c.value ->> '$.body.payload.name')),
      'analytics_tags', coalesce(s.value -> '$.body.args.analytics_tags', json('[]'))) AS tool_input,
    json_group_array(json_object('type', c.value ->> '$.body.type', 'payload', c.value ->
    '$.body.payload')) AS component_data
  FROM turns t JOIN logs USING (number), json_each(log) c LEFT JOIN json_each(log) s
    ON s.value ->> 'span_id' = c.value ->> 'span_id' AND s.value ->> '$.body.kind' = 'tool_started'
  WHERE c.value ->> '$.body.kind' = 'component' GROUP BY t.id, c.value ->> 'span_id', sub_agent_id;
CREATE VIEW spans AS
  SELECT turn_id, id, s ->> 'parent_span_id' AS parent_id, replace(s ->> '$.body.kind', '_started', '') AS kind,
    CASE s ->> '$.body.kind' WHEN 'turn_started' THEN 'turn' WHEN 'tool_started' THEN s ->> '$.body.tool'
      WHEN 'model_started' THEN (s ->> '$.body.purpose') || ' · ' || (s ->> '$.body.model')
      ELSE s ->> '$.body.agent' END AS name,
    coalesce(s ->> '$.body.agent', '') AS agent, s ->> '$.body.model' AS model,
    s ->> 'at' AS started, ended, ended - (s ->> 'at') AS seconds, e ->> '$.body.ttft' AS ttft,
    CASE WHEN e IS NULL THEN 'running' WHEN e ->> '$.body.outcome.kind' = 'failure' THEN 'error'
      WHEN e ->> '$.body.kind' = 'completed' THEN iif(e ->> '$.body.status' IN ('failed', 'deadline'), 'error', 'ok')
      WHEN coalesce(e ->> '$.body.error', '') <> '' THEN 'error' ELSE 'ok' END AS status,
    coalesce(e ->> '$.body.error', (e ->> '$.body.outcome.axis') || ': ' || (e ->> '$.body.outcome.reason')
      || coalesce(': ' || nullif(e ->> '$.body.outcome.detail', ''), '')) AS error,
    coalesce(s ->> '$.body.message', s ->> '$.body.query', s ->> '$.body.args', s ->> '$.body.input') AS input,
    coalesce(e ->> '$.body.text', e ->> '$.body.result', e ->> '$.body.outcome.text', '') AS output,
    coalesce(e ->> '$.body.usage.input_tokens', e ->> '$.body.outcome.usage.input_tokens', 0) AS input_tokens,
    coalesce(e ->> '$.body.usage.output_tokens', e ->> '$.body.outcome.usage.output_tokens', 0) AS output_tokens,
    coalesce(e ->> '$.body.usage.cost', e ->> '$.body.outcome.usage.cost') AS cost
  FROM (SELECT t.id AS turn_id, span.value ->> 'id' AS id, span.value -> 's' AS s, nullif(span.value
  -> 'e', 'null') AS e,
      max(span.value -> 's' ->> 'at', coalesce(span.value -> 'e' ->> 'at',
        (WITH RECURSIVE above(id) AS (SELECT span.value -> 's' ->> 'parent_span_id' UNION
            SELECT up.value ->> 'parent_span_id' FROM above, json_each(log) up WHERE up.value ->> 'span_id' = above.id)
          SELECT min(up.value ->> 'at') FROM above, json_each(log) up
          WHERE up.value ->> 'span_id' = above.id AND up.value ->> '$.body.kind' IN ('completed', 'agent_ended')),
        log ->> '$[#-1].at')) AS ended
    FROM turns t JOIN logs USING (number),
      json_each((SELECT json_group_array(json_object('id', id, 's', json(s), 'e', json(e))) FROM
      (SELECT value ->> 'span_id' AS id,
        max(iif(value ->> '$.body.kind' IN ('turn_started', 'agent_started', 'model_started',
        'tool_started'), value, NULL)) AS s,
        max(iif(value ->> '$.body.kind' IN ('completed', 'agent_ended', 'model_ended', 'tool_ended'), value, NULL)) AS e
        FROM json_each(log) GROUP BY 1 HAVING s IS NOT NULL))) span);
"""
"""One statement each, ending in `;` and a line break."""


_EARLIER = ("turns", "sessions", "events")
"""Tables that had another shape."""


def lay_out(db: sqlite3.Connection) -> None:
    """Gives a new file its tables; one of an earlier version has its rows in them afterwards.
    Nothing that was kept is lost."""
    earlier = _make_way(db)
    there = _tables(db)
    for statement in TABLES.strip().split(";\n"):
        if statement.split()[2] not in there:
            db.execute(statement)
    if "turns" in earlier:
        names = _columns(db, "earlier_turns")
        columns = ", ".join(name for name in names if name != "log")
        db.execute(
            f"INSERT INTO turns (number, {columns}) SELECT rowid, {columns} FROM earlier_turns"
        )
        if "log" in names:
            db.execute(
                "INSERT INTO logs SELECT rowid, log FROM earlier_turns WHERE log IS NOT NULL"
            )
    if "sessions" in earlier:
        db.execute("INSERT INTO sessions SELECT * FROM earlier_sessions")
    if "events" in earlier:
        db.execute(_GATHER_EVENTS)
    for table in earlier:
        db.execute(f"DROP TABLE earlier_{table}")
    _count_parts(db)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")


_GATHER_EVENTS = """INSERT INTO logs SELECT number, (SELECT '[' || group_concat(event) || ']' FROM
(SELECT event FROM earlier_events WHERE turn_id = id ORDER BY seq)) FROM turns
WHERE status <> 'running' AND EXISTS (SELECT 1 FROM earlier_events WHERE turn_id = id)"""


def _count_parts(db: sqlite3.Connection) -> None:
    """Adds to the measures of each turn what became of the parts of its message: files before schema
    10 hold that in the log alone."""
    changes: list[tuple[str, int]] = []
    for number, invoked, failed, log in db.execute(
        "SELECT number, invoked, failed, log FROM turns LEFT JOIN logs USING (number)"
    ):
        try:
            parts = _parts_of(log, invoked, failed)
        except (ValueError, TypeError, LookupError):  # a row that somebody else wrote
            parts = TurnParts()
        changes.append((parts.model_dump_json(), number))
    db.executemany(
        "UPDATE turns SET measures = json_set(json_remove(measures, '$.left_out'), '$.parts', json(?)) "
        "WHERE number = ? AND json_valid(measures)",
        changes,
    )


def _parts_of(log: str | None, invoked: str, failed: str) -> TurnParts:
    """Counts the parts of a turn in its log; without a routing decision there, in its columns."""
    events: list[dict[str, Any]] = orjson.loads(log or "[]")
    for event in reversed(events):
        if event["body"]["kind"] == "routing":
            return turn_parts(RoutingDecision.model_validate(event["body"]["decision"]))
    failures = set(json.loads(failed))
    answered = set(json.loads(invoked)) - failures
    return TurnParts(whole=len(answered), failed=len(failures))


def _make_way(db: sqlite3.Connection) -> list[str]:
    """Removes what is made anew, and renames the tables that had another shape; returns the names that they had."""
    made = (
        "SELECT type, name FROM sqlite_master WHERE type = 'view' OR type IN ('index', "
        "'trigger') AND sql IS NOT NULL"
    )
    for kind, name in db.execute(f"{made} AND tbl_name IN ('turns', 'messages')").fetchall():
        db.execute(f"DROP {kind} {name}")
    db.execute("DROP TABLE IF EXISTS rollups")  # it is made of `turns`
    if "number" not in _columns(db, "turns"):
        earlier: list[str] = []
        for table in _EARLIER:
            if table in _tables(db):
                earlier.append(table)
    else:
        earlier = []
    for table in earlier:
        db.execute(f"ALTER TABLE {table} RENAME TO earlier_{table}")
    return earlier


def _tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
