"""Files of earlier schemas: what they hold is there in the tables of today."""

import json
import os
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.event import listen

from kit.core.context import OPERATOR, Principal, Session, SessionKey
from kit.core.documents.document import AgentEvent
from kit.core.errors import StoreError
from kit.core.record import Note
from kit.metrics.summary import metrics
from kit.planning.plan import new_plan
from kit.stores.documents.protocol import EventFilter, PlanFilter
from kit.stores.engines.connection import StoreConnection
from kit.stores.rows import log_of, row_of
from kit.stores.sqlite import SqliteStore
from kit.stores.tables import APPLICATION
from kit.stores.turn_filter import TurnFilter
from tests.forks import exit_code
from tests.sample_turn import ANN, a_turn, finish, some_events

SCHEMA_2 = """
CREATE TABLE turns (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL,
  message TEXT NOT NULL, pattern TEXT NOT NULL, model TEXT NOT NULL, started_at REAL NOT NULL,
  seconds REAL, status TEXT NOT NULL, text TEXT NOT NULL, invoked TEXT NOT NULL, failed TEXT NOT NULL,
  intent_count INTEGER NOT NULL, cap INTEGER NOT NULL, cap_behavior TEXT NOT NULL, ttft REAL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL, cost REAL, owner TEXT NOT NULL);
CREATE TABLE events (
  turn_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL,
  span_id TEXT NOT NULL, parent_span_id TEXT, event TEXT NOT NULL, PRIMARY KEY (turn_id, seq));
CREATE VIEW spans AS SELECT turn_id FROM events;
"""

SCHEMA_8 = (
    SCHEMA_2
    + """
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, locale TEXT NOT NULL, location TEXT);
INSERT INTO sessions VALUES ('s1', 'acme', 'ann', 'en', NULL);
ALTER TABLE turns ADD COLUMN measures TEXT NOT NULL DEFAULT '{}';
ALTER TABLE turns ADD COLUMN log TEXT;
DROP VIEW spans;
DROP TABLE events;
CREATE INDEX turns_by_visitor ON turns (tenant_id, user_id, started_at, session_id, seconds, pattern, model);
CREATE INDEX turns_running ON turns (owner) WHERE status = 'running';
CREATE TRIGGER turn_deleted AFTER DELETE ON turns BEGIN SELECT 1; END;
CREATE VIEW events AS SELECT t.id AS turn_id, e.value AS event FROM turns t, json_each(t.log) e;
"""
)
SCHEMA_12 = (
    "UPDATE logs SET log = sqlar_uncompress(log, size)",
    "DROP INDEX IF EXISTS turns_by_visitor",
    "ALTER TABLE logs DROP COLUMN size",
    "ALTER TABLE turns DROP COLUMN ending",
    "ALTER TABLE turns DROP COLUMN axes",
)
SCHEMA_13 = """
DROP VIEW components;
DROP VIEW events;
DROP VIEW IF EXISTS agent_sessions;
ALTER TABLE sessions RENAME TO of_today;
CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, locale TEXT NOT NULL,
  location TEXT) WITHOUT ROWID;
INSERT INTO sessions SELECT id, tenant_id, user_id, locale, location FROM of_today;
DROP TABLE of_today;
DROP INDEX messages_by_reader;
ALTER TABLE messages DROP COLUMN tenant_id;
CREATE INDEX messages_by_reader ON messages (session_id, agent);
ALTER TABLE notes RENAME TO of_today;
CREATE TABLE notes (
  session_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (session_id, name));
INSERT INTO notes SELECT session_id, name, value, at FROM of_today;
DROP TABLE of_today;
"""
SCHEMA_15 = {
    "agent_plans": (
        *("session_id", "replan_count", "created_at", "completed_at", "task_type", "failure_kind"),
    ),
    "agent_events": ("user_id", "agent", "status", "duration_ms", "lock_wait_ms"),
}
STATUSES = {"t1": "ok", "t2": "running", "t3": "failed"}


def old_file(
    path: Path, script: str, schema: int, rows: dict[str, Sequence[dict[str, Any]]]
) -> None:
    """Makes a file of an earlier schema."""
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(script)
        for table, table_rows in rows.items():
            for row in table_rows:
                marks = ", ".join(f":{name}" for name in row)
                old.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
        old.execute(f"PRAGMA application_id = {APPLICATION}")
        old.execute(f"PRAGMA user_version = {schema}")


def back_to_schema_12(db: StoreConnection) -> None:
    """Takes away what the file of an earlier schema does not have."""
    back_to_schema_13(db)
    for statement in SCHEMA_12:
        db.execute(statement)


def back_to_schema_13(db: StoreConnection) -> None:
    """Makes the ids of sessions those of the whole file."""
    back_to_schema_15(db)
    for statement in SCHEMA_13.split(";"):
        db.execute(statement)


def back_to_schema_15(db: StoreConnection) -> None:
    """Takes away the columns that plans and events are counted by."""
    for index in ("agent_plans_by_time", "agent_plans_by_end", "agent_events_by_kind"):
        db.execute(f"DROP INDEX IF EXISTS {index}")
    for table, columns in SCHEMA_15.items():
        if db.has_table(table):
            for column in columns:
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


def old_turn(turn_id: str, **columns: Any) -> dict[str, Any]:
    turn = a_turn(turn_id).replace(status=STATUSES[turn_id], text="yo", seconds=1.0)
    row = row_of(turn, "x")
    for column in ("measures", "ending", "axes"):
        del row[column]
    return {**row, **columns}


def of_schema_2(path: Path) -> None:
    """Its events stand in a table of their own, in any order."""
    rows: list[dict[str, Any]] = []
    for event in reversed(some_events()):
        row = {"turn_id": "t1", "seq": event.seq, "at": event.at, "kind": event.kind}
        row |= {"span_id": event.span_id, "parent_span_id": event.parent_span_id}
        rows.append({**row, "event": event.model_dump_json()})
    turns = [old_turn(turn_id) for turn_id in STATUSES]
    old_file(path, SCHEMA_2, 2, {"turns": turns, "events": rows})


def of_schema_8(path: Path) -> None:
    """Its turns hold their own logs."""
    log = log_of(some_events()).decode()
    turns = [old_turn("t1", log=log), old_turn("t2", log=None), old_turn("t3", log=None)]
    old_file(path, SCHEMA_8, 8, {"turns": turns})


def of_later_schema(path: Path, schema: int) -> None:
    """It has tables of today's shape, views that are folds today, and nothing of Alembic."""
    with closing(SqliteStore(path)) as store:
        finish(store, a_turn())
        store.begin_turn(a_turn("t2").replace(seconds=1.0))
        store.end_turn(a_turn("t3").replace(status="failed", seconds=1.0), [], [])
        with store.commit() as db:
            back_to_schema_12(db)
            if schema < 12:
                db.execute("DROP TABLE alembic_version")
            db.execute("CREATE VIEW spans AS SELECT turn_id FROM events")
            db.execute("CREATE VIEW tool_messages AS SELECT turn_id FROM events")
            db.execute(f"PRAGMA user_version = {schema}")


EARLIER = [
    pytest.param(of_schema_2, id="schema 2"),
    pytest.param(of_schema_8, id="schema 8"),
    *(
        pytest.param(
            lambda path, schema=schema: of_later_schema(path, schema), id=f"schema {schema}"
        )
        for schema in (9, 12)
    ),
]


@pytest.mark.parametrize("make", EARLIER)
def test_an_earlier_file_keeps_every_turn_and_has_the_tables_of_a_new_one(
    path: Path, make: Any
) -> None:
    make(path)
    for _ in range(2):
        with closing(SqliteStore(path)) as store:
            statuses = {turn.id: turn.status for turn in store.turns()}
            assert statuses == {"t1": "ok", "t2": "interrupted", "t3": "failed"}
            assert store.events("t1", OPERATOR) == some_events()
            assert store.events("t2", OPERATOR) == store.events("t3", OPERATOR) == []
            assert metrics(store).number("turns") == 3
            if make is of_schema_8:
                assert store.session(SessionKey("acme", "s1")) == Session(
                    id="s1", principal=ANN, locale="en"
                )
    with closing(SqliteStore(path)) as store, closing(SqliteStore(":memory:")) as new:
        assert shape(store) == shape(new)
        finish(store, a_turn("t4"))
        found = store.read("SELECT turn_id, count(*) FROM events GROUP BY turn_id")
        assert found == [("t1", len(some_events())), ("t4", len(some_events()))]


def shape(store: SqliteStore) -> dict[str, Any]:
    """What stands in a file beside rows: its tables by their columns, indexes, triggers and views; its marks."""
    parts: dict[str, Any] = {}
    for kind, name in store.read("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL"):
        parts[name] = kind
        if kind == "table":
            parts[name] = store.read(f"SELECT name, type FROM pragma_table_info('{name}')")
    parts["revision"] = store.read("SELECT version_num FROM alembic_version")
    parts["schema"] = store.read("PRAGMA user_version")
    return parts


def migrate_until(path: Path, point: str) -> None:
    """Opens an earlier file, and kills its own process at the statement that begins so."""

    def kill(statement: str) -> None:
        if statement.strip().startswith(point):
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(driver: sqlite3.Connection, *_: Any) -> None:
        driver.set_trace_callback(kill)

    listen(Engine, "connect", watch)
    SqliteStore(path)


@pytest.mark.parametrize("point", ["INSERT INTO turns", "CREATE VIEW components"])
def test_a_process_that_is_killed_while_it_migrates_leaves_a_file_that_opens(
    path: Path, point: str
) -> None:
    of_schema_2(path)
    assert exit_code(migrate_until, path, point) == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
    with closing(SqliteStore(path)) as store:
        assert store.events("t1", OPERATOR) == some_events() and len(store.turns()) == 3


def test_indexes_triggers_and_sums_are_made_anew(path: Path) -> None:
    store = SqliteStore(path)
    for n in range(1_050):
        store.end_turn(
            a_turn(f"t{n}", at=float(n)).model_copy(update={"seconds": 1.0, "status": "ok"}), [], []
        )
    by = TurnFilter(endings=("answered",))
    before = store.tally().counts, store.search(ANN, by, 5), store.conversations(ANN)
    with store.commit() as db:  # it waits for the thread that adds up turns
        db.execute("DROP TRIGGER turn_changed")
        db.execute("DROP TRIGGER turn_deleted")
        db.execute("DROP INDEX turns_by_tenant")
        db.execute("DROP INDEX turns_by_visitor")
        back_to_schema_12(db)
        db.execute("UPDATE rollups SET tally = 'of another version'")
        db.execute("CREATE INDEX turns_by_user ON turns (tenant_id, user_id, started_at)")
        db.execute("PRAGMA user_version = 9")
    store.close()
    store = SqliteStore(path)
    assert (
        store.tally().counts,
        store.search(ANN, by, 5),
        store.conversations(ANN),
    ) == before
    assert store.read("SELECT through FROM rollups") == [(1_000,)]
    assert not store.read("SELECT 1 FROM sqlite_master WHERE name = 'turns_by_user'")
    store.close()


@pytest.mark.req("S-2")
async def test_the_sessions_of_an_earlier_file_go_on_as_their_tenants_own(path: Path) -> None:
    bob = Principal(tenant_id="globex", user_id="bob")
    sessions = [Session(id="s1", principal=ANN), Session(id="s2", principal=bob, location="Ulm")]
    with closing(SqliteStore(path)) as store:
        for number, session in enumerate(sessions):
            store.open_session(session)
            turn = a_turn(f"t{number}", session.id).replace(**vars(session.principal))
            finish(store, turn)
            store.keep_note(session.key, "summary", Note(value=f"note {number}", at=9.0))
        store.open_documents()
        before = [everything(store, session) for session in sessions]
        with store.commit() as db:
            back_to_schema_13(db)
            db.execute("PRAGMA user_version = 13")
    with closing(SqliteStore(path)) as store:
        assert [everything(store, session) for session in sessions] == before
        assert all(lines and note for _, lines, note in before)
        # The id is another tenant's, and from now on everybody's own.
        stranger = sessions[0].replace(principal=bob)
        assert everything(store, stranger) == [None, [], None]
        store.open_session(stranger)
        finish(store, a_turn("t9").replace(**vars(bob)))
        window = await store.open_documents().sessions.read(bob, "s1")
        assert window is not None and [line.turn_id for line in window.messages] == ["t9", "t9"]
        assert everything(store, sessions[0]) == before[0]


def everything(store: SqliteStore, session: Session) -> list[Any]:
    """Returns a session, its narration and its note."""
    key = session.key
    return [store.session(key), store.history(key), store.note(key, "summary")]


FAILURE = {"reason": "max replan attempts reached", "completed_steps": [], "last_failure": None}


async def test_plans_and_events_of_an_earlier_file_are_counted_as_new_ones_are(path: Path) -> None:
    event = AgentEvent(
        event_id="e1", tenant_id="acme", event_type="skill.called", ts=5.0, agent="a"
    )
    event = event.replace(user_id="ann", status="ok", duration_ms=7, lock_wait_ms=0)
    plan = new_plan("p1", ANN, "s1", "do it", 3.0).replace(status="failed", failure=FAILURE)
    plan = plan.replace(completed_at=4.0, replan_count=3, task_type="ranking")
    with closing(SqliteStore(path)) as store:
        documents = store.open_documents()
        await documents.events.append(event)
        await documents.plans.create(plan)
        await documents.plans.create(plan.replace(plan_id="damaged"))
        with store.commit() as db:
            back_to_schema_15(db)
            earlier = json.loads(store.read("SELECT document FROM agent_plans")[0][0])
            earlier["failure"]["kind"] = "exhausted"
            del earlier["failure_kind"]
            kept = "UPDATE agent_plans SET document = :document WHERE plan_id = :plan_id"
            db.execute(kept, {"document": json.dumps(earlier), "plan_id": "p1"})
            db.execute(kept, {"document": "{", "plan_id": "damaged"})
            db.execute("PRAGMA user_version = 15")
    with closing(SqliteStore(path)) as store:
        documents = store.open_documents()
        assert await documents.plans.read(ANN, "p1") == plan.replace(failure_kind="exhausted")
        ended = PlanFilter(tenant_id="acme", ended_since=4.0)
        assert await documents.plans.count(ended, ("failure_kind", "task_type")) == {
            ("exhausted", "ranking"): 1
        }
        anns = EventFilter(tenant_id="acme", user_id="ann")
        counts = await documents.events.count(anns, ("agent", "status", "duration_ms"))
        assert counts == {("a", "ok", 7): 1}
        with pytest.raises(StoreError, match="never changed"), store.commit() as db:
            db.execute("UPDATE agent_events SET status = 'else'")
