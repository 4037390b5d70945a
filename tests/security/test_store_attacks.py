"""A store that is locked or full delays and costs its own turn alone; a turn that was not saved says so."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.core.bodies.speech import Component
from kit.core.context import OPERATOR, SessionKey
from kit.core.errors import SessionError, StoreError
from kit.core.event import Event
from kit.core.record import Message
from kit.runtime import turn as turn_module
from kit.runtime.turn import run_turn
from kit.stores import live_logs
from kit.stores.engines import database
from kit.stores.recall import recall_before
from kit.stores.sqlite import SqliteStore
from tests.effort import effort
from tests.kits import ALICE, SmallKit, answering, small_kit
from tests.sample_turn import a_turn, finish

pytestmark = pytest.mark.realtime
MALLORY = ALICE.replace(principal=ALICE.principal.replace(user_id="mallory"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "kit.db")) as store:
        yield store


@pytest.fixture
def kit(store: SqliteStore) -> SmallKit:
    return kit_over(store)


def kit_over(store: SqliteStore) -> SmallKit:
    kit = small_kit(answering("Hello."), {"shop": answering("Beans.")})
    kit.store.close()
    kit.store = store
    return kit


A_MINUTE = 60.0


def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a lock waits for a minute and more: no load is taken for such a wait."""
    monkeypatch.setattr(database, "PATIENCE", A_MINUTE)
    monkeypatch.setattr(turn_module, "PATIENCE", 10 * A_MINUTE)


class Locked:
    """Another process' write that does not end."""

    def __init__(self, store: SqliteStore):
        self._db = sqlite3.connect(store.path, isolation_level=None)
        self._db.execute("BEGIN IMMEDIATE")

    def release(self) -> None:
        self._db.close()


@pytest.mark.req("S-4")
async def test_a_locked_store_delays_its_own_turn_and_not_the_loop(
    kit: SmallKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    free = kit_over(SqliteStore(tmp_path / "other.db"))
    await run_turn("what is loaded once is loaded now", ALICE, free)
    lock = Locked(kit.store)
    patient(monkeypatch)
    waiting = run_turn("hi", ALICE, kit)
    began = time.monotonic()
    assert (await run_turn("hi", ALICE, free)).saved and time.monotonic() - began < A_MINUTE / 2
    await asyncio.sleep(0.3)
    assert not waiting.done
    lock.release()
    reply = await waiting
    assert reply.saved and kit.store.events(reply.turn_id, OPERATOR)[-1] == reply.events[-1]
    free.store.close()


@pytest.mark.req("S-4")
async def test_what_was_not_saved_is_written_before_its_process_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(turn_module, "PATIENCE", 0.0)
    monkeypatch.setattr(live_logs, "EVERY", A_MINUTE)
    kit = kit_over(SqliteStore(tmp_path / "kit.db"))
    await run_turn("what is loaded once is loaded now", ALICE, kit)
    lock = Locked(kit.store)
    reply = await run_turn("hi", ALICE, kit)
    lock.release()
    kit.store.close()
    with closing(SqliteStore(tmp_path / "kit.db")) as reopened:
        record = reopened.turn(reply.turn_id, OPERATOR)
    assert record is not None and record.text == "Hello."


@pytest.mark.req("S-4", "S-12")
async def test_a_turn_that_is_stopped_while_its_store_is_locked_waits_for_the_store(
    kit: SmallKit, caplog: pytest.LogCaptureFixture
):
    lock = Locked(kit.store)
    turn = run_turn("hi", ALICE, kit)
    await asyncio.sleep(0.1)
    turn.cancel()
    await asyncio.sleep(0.3)
    assert not turn.done
    lock.release()
    reply = await turn
    assert reply.saved and reply.status == "cancelled" and "left behind" not in caplog.text
    assert (
        kit.store.events(turn.id, OPERATOR) == list(reply.events)
        and kit.store.session(ALICE.key) is not None
    )


@pytest.mark.req("S-4")
async def test_what_a_full_disk_does_not_take_is_said(kit: SmallKit):
    pages = kit.store._db.execute("PRAGMA page_count").fetchone()[0]
    kit.store._db.execute(f"PRAGMA max_page_count = {pages + 4}")
    replies = [await run_turn("x" * 9000, ALICE, kit) for _ in range(5)]
    stored = {turn.id for turn in kit.store.turns() if kit.store.events(turn.id, OPERATOR)}
    assert {reply.turn_id for reply in replies if reply.saved} == stored
    assert len(stored) < len(replies) and all(reply.text == "Hello." for reply in replies)


@pytest.mark.req("S-2")
async def test_after_a_begin_that_failed_no_stranger_reads_what_the_turn_left(
    kit: SmallKit,
):
    begin, failures = kit.store.begin_turn, [1]

    def broken(*args: Any, **options: Any) -> None:
        if failures and failures.pop():
            raise StoreError("the disk is full")
        begin(*args, **options)

    kit.store.begin_turn = broken
    assert (await run_turn("my secret is blue", ALICE, kit)).saved
    owner = kit.store.session(ALICE.key)
    assert owner is not None and owner.principal == ALICE.principal
    with pytest.raises(SessionError):
        run_turn("what is the secret?", MALLORY, kit)


@pytest.mark.req("S-2")
async def test_a_turn_whose_session_was_taken_meanwhile_is_in_nobodys_history(
    kit: SmallKit,
):
    begin = kit.store.begin_turn

    def late(*args: Any, **options: Any) -> None:
        kit.store.open_session(MALLORY)
        raise StoreError("the disk is full")

    kit.store.begin_turn = late
    reply = await run_turn("my secret is blue", ALICE, kit)
    kit.store.begin_turn = begin
    assert reply.status == "ok" and not reply.saved
    assert kit.store.history(ALICE.key) == [] and kit.store.turns() == []


@pytest.mark.req("S-2")
async def test_the_id_of_another_tenants_turn_is_refused(kit: SmallKit):
    reply = await run_turn("mine", ALICE, kit, turn_id="t1")
    before = (kit.store.turn("t1", OPERATOR), kit.store.events("t1", OPERATOR))
    stranger = ALICE.replace(principal=ALICE.principal.replace(tenant_id="evil"))
    with pytest.raises(SessionError, match="belongs to another conversation"):
        await run_turn("overwrite", stranger, kit, turn_id="t1")
    assert (
        kit.store.turn("t1", OPERATOR),
        kit.store.events("t1", OPERATOR),
    ) == before and reply.saved


@pytest.mark.req("S-1")
async def test_the_loop_does_not_wait_until_another_thread_has_read(store: SqliteStore):
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n"
    ended = threading.Event()

    def read() -> list[Any]:
        try:
            return store.read(slow)
        finally:
            ended.set()

    reading, looks = asyncio.create_task(asyncio.to_thread(read)), 0
    await asyncio.sleep(0.02)
    while not ended.is_set():
        store.history(SessionKey("acme", "s1"))
        looks += not ended.is_set()
        await asyncio.sleep(0.02)
    assert await reading == [(1000000,)] and looks > 1, (
        "who waits for the reader looks once, when it has ended"
    )


@pytest.mark.req("S-4")
@pytest.mark.parametrize("column", ["invoked", "measures", "log"])
def test_junk_in_one_row_breaks_no_list(
    store: SqliteStore, column: str, caplog: pytest.LogCaptureFixture
):
    for n in range(3):
        finish(store, a_turn(f"t{n}", at=float(n)))
    with sqlite3.connect(store.path) as db:
        table = "logs" if column == "log" else "turns"
        db.execute(f"UPDATE {table} SET {column} = ? WHERE number = 2", ("[" * 5_000,))
    db.close()
    turns = [turn.id for turn in store.turns()]
    assert turns == (["t2", "t1", "t0"] if column == "log" else ["t2", "t0"])
    assert bool(store.turn("t1", OPERATOR)) == bool(column == "log") and bool(
        store.events("t1", OPERATOR)
    ) == (column != "log")
    assert "t1 in the store cannot be read" in caplog.text


@pytest.mark.req("S-4")
@pytest.mark.parametrize(
    ("change", "junk"),
    [
        ("UPDATE turns SET invoked = ?", "[[["),
        ("UPDATE turns SET invoked = ?", '[{"a": 1}]'),
        ("INSERT INTO notes VALUES ('acme', 's1', 'summary', ?, 1.0)", "[[["),
        ("INSERT INTO notes VALUES ('acme', 's1', 'summary', ?, 1.0)", "{}"),
        ("INSERT INTO notes VALUES ('acme', 's1', 'summary', 'x', ?)", "no time"),
        ("INSERT INTO notes VALUES ('acme', 's1', 'summary', ?, 1.0)", 7),
    ],
)
async def test_junk_in_one_row_breaks_no_later_turn_of_its_session(
    store: SqliteStore, change: str, junk: str | int
):
    session = ALICE.model_copy(update={"id": "s1"})
    await run_turn("hello there", session, kit_over(store))
    with sqlite3.connect(store.path) as db:
        db.execute(change, (junk,))
    db.close()
    reply = await run_turn("and now", session, kit_over(store))
    assert (reply.status, reply.text) == ("ok", "Hello.")
    second = store.turn(reply.turn_id, OPERATOR)
    assert second is not None
    recall_before(store, second, (), 10)


def shown_turn(name: str, at: float, payloads: list[dict[str, Any]]) -> list[Event]:
    parts = [Component(agent="shop", type="offer", payload=payload) for payload in payloads]
    return [
        Event(seq=n, at=at, turn_id=name, span_id="s2", parent_span_id="s1", body=part)
        for n, part in enumerate(parts)
    ]


@pytest.mark.req("S-1")
@pytest.mark.parametrize("of", ["many components", "large components"])
def test_what_a_session_was_shown_is_read_within_bounds(of: str):
    store = SqliteStore(":memory:")
    store.open_session(ALICE)
    payloads = (
        [{"id": str(n), "title": f"Tea {n}"} for n in range(4_000)]
        if of == "many components"
        else [{"x": "y" * 300_000}]
    )
    for n in range(20):
        turn = a_turn(f"t{n}", ALICE.id, user="alice", at=float(n)).replace(status="ok")
        events = shown_turn(
            turn.id, float(n), payloads if n < 19 else [{"id": "last", "title": "Beans"}]
        )
        store.end_turn(turn, events, [Message(turn_id=turn.id, role="user", text="offers?")])
    components = store.shown_components(ALICE.key, ALICE.principal)
    assert components[-1].title == "Beans" and len(components) > 1
    assert effort(lambda: store.shown_components(ALICE.key, ALICE.principal), enough=0.05) < 0.05


@pytest.mark.req("S-4")
async def test_an_id_that_no_store_can_hold_is_refused(kit: SmallKit):
    for session in ("half \ud83d", "a\x00b"):
        with pytest.raises(SessionError, match="control characters"):
            run_turn("hi", ALICE.model_copy(update={"id": session}), kit)
