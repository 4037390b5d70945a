"""Where SQLite keeps documents: in tables of their own beside those of the turns, so that a file of
turns needs no change."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kit.core.errors import StoreBusy
from kit.stores.database import PATIENCE, Database

T = TypeVar("T")
PAUSE = 0.01
"""Seconds between two tries of a write that another process is in the way of."""
TABLES = """
CREATE TABLE IF NOT EXISTS agent_memory (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, scope TEXT NOT NULL, user_id TEXT NOT NULL,
  session_id TEXT NOT NULL, key TEXT NOT NULL, ttl_at REAL, locked_by TEXT, lock_expires REAL, embedding BLOB,
  document TEXT NOT NULL, UNIQUE (tenant_id, key));
CREATE INDEX IF NOT EXISTS agent_memory_by_scope ON agent_memory (tenant_id, scope, user_id, session_id)
  WHERE embedding IS NOT NULL;
CREATE INDEX IF NOT EXISTS agent_memory_by_end ON agent_memory (ttl_at) WHERE ttl_at IS NOT NULL;
CREATE VIRTUAL TABLE IF NOT EXISTS agent_memory_words USING fts5 (text);
CREATE TRIGGER IF NOT EXISTS agent_memory_deleted AFTER DELETE ON agent_memory
  BEGIN DELETE FROM agent_memory_words WHERE rowid = OLD.seq; END;
CREATE TABLE IF NOT EXISTS agent_souls (
  tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY (tenant_id, user_id));
CREATE VIEW IF NOT EXISTS agent_sessions AS
  SELECT s.id AS session_id, s.tenant_id, s.user_id,
    CASE WHEN sum(t.status = 'running') THEN 'running' WHEN (SELECT status FROM turns n WHERE n.session_id = s.id
      AND +n.tenant_id = s.tenant_id AND +n.user_id = s.user_id ORDER BY n.number DESC LIMIT 1) = 'paused' THEN 'paused'
      ELSE 'idle' END AS state,
    min(t.started_at) AS started_at,
    max(max(t.started_at + coalesce(t.seconds, 0)),
      coalesce((SELECT max(at) FROM notes n WHERE n.session_id = s.id), 0)) AS last_active
  FROM sessions s JOIN turns t ON t.session_id = s.id AND +t.tenant_id = s.tenant_id AND +t.user_id
  = s.user_id GROUP BY s.id;
CREATE TABLE IF NOT EXISTS agent_plans (
  tenant_id TEXT NOT NULL, plan_id TEXT NOT NULL, user_id TEXT NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
  lease_expires REAL, document TEXT NOT NULL, PRIMARY KEY (tenant_id, plan_id));
CREATE INDEX IF NOT EXISTS agent_plans_open ON agent_plans (lease_expires) WHERE status NOT IN ('complete', 'failed');
CREATE INDEX IF NOT EXISTS agent_plans_by_user ON agent_plans (tenant_id, user_id);
CREATE TABLE IF NOT EXISTS agent_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL, event_id TEXT NOT NULL, session_id TEXT, plan_id TEXT,
  task_id TEXT, event_type TEXT NOT NULL, skill_id TEXT, large_response_triggered INTEGER NOT NULL, ts REAL NOT NULL,
  document TEXT NOT NULL, UNIQUE (tenant_id, event_id));
CREATE INDEX IF NOT EXISTS agent_events_by_time ON agent_events (tenant_id, ts);
CREATE INDEX IF NOT EXISTS agent_events_by_session ON agent_events (tenant_id, session_id);
CREATE INDEX IF NOT EXISTS agent_events_by_plan ON agent_events (tenant_id, plan_id);
CREATE TRIGGER IF NOT EXISTS agent_events_changed BEFORE UPDATE ON agent_events
  BEGIN SELECT RAISE(ABORT, 'events are added, never changed'); END;
"""
"""One statement each, ending in `;` and a line break, as in kit.stores.tables."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a file, with the clock by which what is in them expires."""

    database: Database
    clock: Callable[[], float]

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Does work in one transaction. While another process writes, the loop goes on; after a
        while StoreBusy is raised."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.database.commit(wait=False) as db:
                    return work(db)
            except StoreBusy:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(PAUSE)


def lay_out_documents(database: Database) -> None:
    """Gives a file the tables of documents where it lacks them. Raises StoreError."""
    with database.commit() as db:
        if db.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'agent_sessions' AND type = 'table'"
        ).fetchone():
            db.execute("DROP TABLE agent_sessions")  # no turn wrote there
        for statement in TABLES.strip().split(";\n"):
            db.execute(statement)
