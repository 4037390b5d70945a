"""What the store's file holds, as SQL: tables, and views over events that cannot disagree with them (docs/traces.md)."""

SCHEMA = 2
"""Kept in the file as `user_version`."""
APPLICATION = 0x6B697431
"""Kept in the file as `application_id`: tells our files from other programs' databases."""

TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, locale TEXT NOT NULL, location TEXT);
CREATE TABLE turns (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, message TEXT NOT NULL,
  pattern TEXT NOT NULL, model TEXT NOT NULL, started_at REAL NOT NULL, seconds REAL, status TEXT NOT NULL, text TEXT NOT NULL,
  invoked TEXT NOT NULL, failed TEXT NOT NULL, intent_count INTEGER NOT NULL, cap INTEGER NOT NULL, cap_behavior TEXT NOT NULL,
  ttft REAL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL, cost REAL, measures TEXT NOT NULL DEFAULT '{}', owner TEXT NOT NULL);
CREATE INDEX turns_by_time ON turns (started_at);
CREATE INDEX turns_by_session ON turns (session_id, started_at);
CREATE INDEX turns_by_user ON turns (tenant_id, user_id, started_at);
CREATE INDEX turns_running ON turns (owner) WHERE status = 'running';
CREATE TABLE events (
  turn_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, span_id TEXT NOT NULL, parent_span_id TEXT,
  event TEXT NOT NULL, PRIMARY KEY (turn_id, seq));
CREATE TABLE messages (
  turn_id TEXT NOT NULL, position INTEGER NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL, role TEXT NOT NULL,
  text TEXT NOT NULL, PRIMARY KEY (turn_id, position));
CREATE INDEX messages_by_reader ON messages (session_id, agent);
CREATE TABLE notes (
  session_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session_id, name));
CREATE TABLE feedback (turn_id TEXT PRIMARY KEY REFERENCES turns (id), score INTEGER NOT NULL, note TEXT NOT NULL);
CREATE VIEW components AS
  SELECT turn_id, seq, event ->> '$.body.agent' AS agent, event ->> '$.body.type' AS type, event -> '$.body.payload' AS payload
  FROM events WHERE kind = 'component';
CREATE VIEW tool_messages AS
  SELECT c.turn_id, min(c.seq) AS seq, c.event ->> '$.body.agent' AS sub_agent_id, s.event ->> '$.body.tool' AS tool,
    s.event ->> '$.body.call_id' AS call_id,
    json_object('arguments', s.event -> '$.body.args',
      'component_ids', json_group_array(c.event ->> '$.body.payload.id'),
      'titles', json_group_array(coalesce(c.event ->> '$.body.payload.title', c.event ->> '$.body.payload.name')),
      'analytics_tags', coalesce(s.event -> '$.body.args.analytics_tags', json('[]'))) AS tool_input,
    json_group_array(json_object('type', c.event ->> '$.body.type', 'payload', c.event -> '$.body.payload')) AS component_data
  FROM events c LEFT JOIN events s ON s.turn_id = c.turn_id AND s.span_id = c.span_id AND s.kind = 'tool_started'
  WHERE c.kind = 'component' GROUP BY c.turn_id, c.span_id, sub_agent_id;
CREATE VIEW spans AS
  SELECT s.turn_id, s.span_id AS id, s.parent_span_id AS parent_id, replace(s.kind, '_started', '') AS kind,
    CASE s.kind WHEN 'turn_started' THEN 'turn' WHEN 'tool_started' THEN s.event ->> '$.body.tool'
      WHEN 'model_started' THEN (s.event ->> '$.body.purpose') || ' · ' || (s.event ->> '$.body.model')
      ELSE s.event ->> '$.body.agent' END AS name,
    coalesce(s.event ->> '$.body.agent', '') AS agent, s.event ->> '$.body.model' AS model,
    s.at AS started, e.at AS ended, e.at - s.at AS seconds, e.event ->> '$.body.ttft' AS ttft,
    CASE WHEN e.seq IS NULL THEN 'running' WHEN e.event ->> '$.body.outcome.kind' = 'failure' THEN 'error'
      WHEN e.kind = 'completed' THEN iif(e.event ->> '$.body.status' IN ('failed', 'deadline'), 'error', 'ok')
      WHEN coalesce(e.event ->> '$.body.error', '') <> '' THEN 'error' ELSE 'ok' END AS status,
    coalesce(e.event ->> '$.body.error', (e.event ->> '$.body.outcome.axis') || ': ' || (e.event ->> '$.body.outcome.reason')
      || coalesce(': ' || nullif(e.event ->> '$.body.outcome.detail', ''), '')) AS error,
    coalesce(s.event ->> '$.body.message', s.event ->> '$.body.query', s.event ->> '$.body.args', s.event ->> '$.body.input')
      AS input,
    coalesce(e.event ->> '$.body.text', e.event ->> '$.body.result', e.event ->> '$.body.outcome.text', '') AS output,
    coalesce(e.event ->> '$.body.usage.input_tokens', e.event ->> '$.body.outcome.usage.input_tokens', 0) AS input_tokens,
    coalesce(e.event ->> '$.body.usage.output_tokens', e.event ->> '$.body.outcome.usage.output_tokens', 0) AS output_tokens,
    coalesce(e.event ->> '$.body.usage.cost', e.event ->> '$.body.outcome.usage.cost') AS cost
  FROM events s LEFT JOIN events e ON e.turn_id = s.turn_id AND e.span_id = s.span_id
    AND e.kind = iif(s.kind = 'turn_started', 'completed', replace(s.kind, '_started', '_ended'))
  WHERE s.kind IN ('turn_started', 'agent_started', 'model_started', 'tool_started');
"""
"""One statement each, ending in `;` and a line break. A file of an earlier version gets those whose name it lacks."""
