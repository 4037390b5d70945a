"""The tables of the store's file, one statement for each name (docs/traces.md)."""

SCHEMA = 11
"""Kept in the file as `user_version`."""
APPLICATION = 0x6B697431
"""Kept in the file as `application_id`: tells our files from other programs' databases."""

TABLES = {
    "sessions": """
        CREATE TABLE sessions (
          id TEXT PRIMARY KEY,
          tenant_id TEXT NOT NULL,
          user_id TEXT NOT NULL,
          locale TEXT NOT NULL,
          location TEXT
        ) WITHOUT ROWID""",
    "turns": """
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
        )""",
    "turns_by_time": "CREATE INDEX turns_by_time ON turns (started_at)",
    "turns_by_tenant": "CREATE INDEX turns_by_tenant ON turns (tenant_id, started_at)",
    "turns_by_session": "CREATE INDEX turns_by_session ON turns (session_id, started_at)",
    # It holds every column that `choices` counts, so that this reads no row of `turns`.
    "turns_by_visitor": """
        CREATE INDEX turns_by_visitor
        ON turns (tenant_id, user_id, started_at, session_id, pattern, model)""",
    # A turn's events stand apart from its row: a list that reads a thousand rows reads no log.
    "logs": "CREATE TABLE logs (number INTEGER PRIMARY KEY, log TEXT NOT NULL)",
    "messages": """
        CREATE TABLE messages (
          turn_id TEXT NOT NULL,
          position INTEGER NOT NULL,
          session_id TEXT NOT NULL,
          agent TEXT NOT NULL,
          role TEXT NOT NULL,
          text TEXT NOT NULL,
          PRIMARY KEY (turn_id, position)
        )""",
    "messages_by_reader": "CREATE INDEX messages_by_reader ON messages (session_id, agent)",
    "notes": """
        CREATE TABLE notes (
          session_id TEXT NOT NULL,
          name TEXT NOT NULL,
          value TEXT NOT NULL,
          at REAL NOT NULL,
          PRIMARY KEY (session_id, name)
        )""",
    "prompts": """
        CREATE TABLE prompts (
          cohort TEXT NOT NULL,
          agent TEXT NOT NULL,
          text TEXT NOT NULL,
          tools TEXT NOT NULL,
          since REAL NOT NULL,
          PRIMARY KEY (cohort, since)
        )""",
    "feedback": """
        CREATE TABLE feedback (
          turn_id TEXT PRIMARY KEY REFERENCES turns (id),
          score INTEGER NOT NULL,
          note TEXT NOT NULL
        )""",
    "rollups": """
        CREATE TABLE rollups (
          through INTEGER NOT NULL,
          tenant_id TEXT NOT NULL,
          first REAL NOT NULL,
          tally TEXT NOT NULL,
          PRIMARY KEY (through, tenant_id)
        )""",
    # Sums that a changed turn is part of go with the change, whoever makes it; they are written again.
    "turn_changed": """
        CREATE TRIGGER turn_changed AFTER UPDATE ON turns WHEN OLD.status <> 'running'
        BEGIN
          DELETE FROM rollups WHERE through >= OLD.number;
        END""",
    "turn_deleted": """
        CREATE TRIGGER turn_deleted AFTER DELETE ON turns
        BEGIN
          DELETE FROM rollups WHERE through >= OLD.number;
          DELETE FROM logs WHERE number = OLD.number;
        END""",
    "events": """
        CREATE VIEW events AS
        SELECT
          turns.id AS turn_id,
          item.value ->> 'seq' AS seq,
          item.value ->> 'at' AS at,
          item.value ->> '$.body.kind' AS kind,
          item.value ->> 'span_id' AS span_id,
          item.value ->> 'parent_span_id' AS parent_span_id,
          item.value AS event
        FROM turns JOIN logs USING (number), json_each(log) item""",
    "components": """
        CREATE VIEW components AS
        SELECT
          turn_id,
          seq,
          event ->> '$.body.agent' AS agent,
          event ->> '$.body.type' AS type,
          event -> '$.body.payload' AS payload
        FROM events WHERE kind = 'component'""",
}
"""Tables, indexes, triggers and views by their names, in the order in which they are made."""
