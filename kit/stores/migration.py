"""Brings a file to the schema of today: a new one gets its tables, and one of any earlier schema
keeps every row."""

import json
import sqlite3
from typing import Any

import orjson

from kit.core.display.turn_parts import TurnParts, turn_parts
from kit.core.outcome import RoutingDecision
from kit.stores.tables import APPLICATION, SCHEMA, TABLES

PARTS = 10
"""The schema from which on `measures` says what became of the parts of a message."""

# Before schema 9 a turn had no number and held its own log; before that, events stood in a table.
_RESHAPED = ("turns", "sessions", "events")

_MADE_ANEW = """
SELECT type, name FROM sqlite_master
WHERE type = 'view'
  OR type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name IN ('turns', 'messages')
"""

_KEEP_LOGS = "INSERT INTO logs SELECT rowid, log FROM earlier_turns WHERE log IS NOT NULL"

_KEEP_SESSIONS = "INSERT INTO sessions SELECT * FROM earlier_sessions"

_GATHER_EVENTS = """
INSERT INTO logs
SELECT number, (
  SELECT '[' || group_concat(event) || ']'
  FROM (SELECT event FROM earlier_events WHERE turn_id = id ORDER BY seq)
)
FROM turns
WHERE status <> 'running' AND EXISTS (SELECT 1 FROM earlier_events WHERE turn_id = id)
"""

_TURNS_TO_COUNT = "SELECT number, invoked, failed, log FROM turns LEFT JOIN logs USING (number)"

_KEEP_PARTS = """
UPDATE turns
SET measures = json_set(json_remove(measures, '$.left_out'), '$.parts', json(?))
WHERE number = ? AND json_valid(measures)
"""


def lay_out(db: sqlite3.Connection) -> None:
    """Gives a new file its tables; the rows of an earlier one are in them afterwards."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    reshaped = _make_way(db)
    existing = _tables(db)
    for name, statement in TABLES.items():
        if name not in existing:
            db.execute(statement)
    if "turns" in reshaped:
        _keep_turns(db)
    if "sessions" in reshaped:
        db.execute(_KEEP_SESSIONS)
    if "events" in reshaped:
        db.execute(_GATHER_EVENTS)
    for table in reshaped:
        db.execute(f"DROP TABLE earlier_{table}")
    if version < PARTS:
        _count_parts(db)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")


def _make_way(db: sqlite3.Connection) -> list[str]:
    """Removes what is made anew and renames the tables that had another shape; returns the names
    that these had."""
    for kind, name in db.execute(_MADE_ANEW).fetchall():
        db.execute(f"DROP {kind} {name}")
    db.execute("DROP TABLE IF EXISTS rollups")  # its sums are made of `turns`
    if "number" in _columns(db, "turns"):
        return []
    existing = _tables(db)
    reshaped = [table for table in _RESHAPED if table in existing]
    for table in reshaped:
        db.execute(f"ALTER TABLE {table} RENAME TO earlier_{table}")
    return reshaped


def _keep_turns(db: sqlite3.Connection) -> None:
    names = _columns(db, "earlier_turns")
    if "log" in names:
        db.execute(_KEEP_LOGS)
        names.remove("log")
    columns = ", ".join(names)
    db.execute(f"INSERT INTO turns (number, {columns}) SELECT rowid, {columns} FROM earlier_turns")


def _count_parts(db: sqlite3.Connection) -> None:
    """Adds to the measures of each turn what became of the parts of its message."""
    changes: list[tuple[str, int]] = []
    for number, invoked, failed, log in db.execute(_TURNS_TO_COUNT):
        try:
            parts = _parts_of(log, invoked, failed)
        except (ValueError, TypeError, LookupError):
            # Somebody else wrote the row: it must not keep the file from being opened.
            parts = TurnParts()
        changes.append((parts.model_dump_json(), number))
    db.executemany(_KEEP_PARTS, changes)


def _parts_of(log: str | None, invoked: str, failed: str) -> TurnParts:
    """Counts the parts of a turn in its log, or in its columns where the log has no routing decision."""
    events: list[dict[str, Any]] = orjson.loads(log or "[]")
    for event in reversed(events):
        if event["body"]["kind"] == "routing":
            return turn_parts(RoutingDecision.model_validate(event["body"]["decision"]))
    failures = set(json.loads(failed))
    answered = set(json.loads(invoked)) - failures
    return TurnParts(whole=len(answered), failed=len(failures))


def _tables(db: sqlite3.Connection) -> set[str]:
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows}


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
