"""What the store promises: kept turns, plain SQL, and sentences that say what to do."""

import itertools
import os
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from kit.core.bodies.speech import Component
from kit.core.context import OPERATOR, Reader, Session, SessionKey
from kit.core.errors import SessionError, StoreError
from kit.core.event import Event
from kit.core.outcome import Usage
from kit.core.record import Feedback, Measures, Message, Note, PurposeUsage
from kit.core.secret import is_url
from kit.stores import live_logs
from kit.stores.opening import open_store
from kit.stores.rows import row_of
from kit.stores.sqlite import SqliteStore, open_for_reading
from kit.stores.statements import BEGIN_TURN, INSERT_MESSAGE
from kit.stores.tables import SCHEMA
from kit.stores.turn_store import MANY, TurnStore
from tests.effort import effort
from tests.forks import FORKS, exit_code, started
from tests.sample_turn import ANN, a_turn, finish, some_events
from tests.stores.conftest import DATABASES, new_place

S1 = SessionKey("acme", "s1")
NONE = SessionKey("acme", "x")


def test_everything_comes_back_as_it_was_after_reopening(place: str) -> None:
    session = Session(id="s1", principal=ANN, locale="de-DE", location="Ulm")
    store: TurnStore = open_store(place)
    store.open_session(session)
    store.open_session(session.model_copy(update={"locale": "en-US"}))
    ended = finish(store, a_turn())
    store.give_feedback(Feedback(turn_id="t1", score=0, note="no"))
    store.give_feedback(Feedback(turn_id="t1", score=1))
    store.close()
    again = open_store(place)
    assert again.session(S1) == session
    assert again.turn("t1", OPERATOR) == ended
    assert again.events("t1", OPERATOR) == some_events()
    assert [(m.role, m.text) for m in again.history(S1)] == [("user", "hi"), ("assistant", "yo")]
    assert again.feedback("t1") == Feedback(turn_id="t1", score=1)
    again.close()


@pytest.mark.parametrize(
    ("reader", "may_read"),
    [
        (ANN, True),
        (OPERATOR, True),
        (ANN.replace(tenant_id="other"), False),
        (ANN.replace(user_id="other"), False),
    ],
)
def test_a_turn_is_read_by_its_own_principal_and_by_an_operator(
    store: TurnStore, reader: Reader, may_read: bool
) -> None:
    finish(store, a_turn())
    assert bool(store.turn("t1", reader)) == bool(store.events("t1", reader)) == may_read


def test_history_is_the_newest_lines_of_one_reader_oldest_first(store: TurnStore) -> None:
    for n in range(4):
        turn = a_turn(f"t{n}", at=float(n))
        lines = [
            Message(turn_id=turn.id, role="user", text=f"q{n}"),
            Message(turn_id=turn.id, role="user", text=f"s{n}", agent="shop"),
        ]
        store.end_turn(turn, [], lines)
    store.end_turn(
        a_turn("other", "s2"), [], [Message(turn_id="other", role="user", text="elsewhere")]
    )
    assert [m.text for m in store.history(S1, limit=2)] == ["q2", "q3"]
    assert [m.text for m in store.history(S1, agent="shop")] == ["s0", "s1", "s2", "s3"]


def test_the_queries_of_the_documentation_run(file: SqliteStore) -> None:
    deciding = PurposeUsage(purpose="decide", usage=Usage(input_tokens=5, output_tokens=2))
    finish(file, a_turn().replace(measures=Measures(spent=(deciding,))))
    text = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()
    queries = [part.split("```")[0] for part in text.split("```sql\n")[1:]]
    assert len(queries) >= 4
    with open_for_reading(file.path) as reader:
        found = [reader.execute(query).fetchall() for query in queries]
    reader.close()
    assert all(found), "each example finds something in a turn with a failure"


@pytest.mark.parametrize("odd", [object(), {1: b"\xff"}, "\ud83d"])
def test_what_no_store_can_hold_costs_nobody_the_turn(store: TurnStore, odd: object) -> None:
    """An odd payload, half a surrogate pair, and the character zero."""
    events = some_events()
    component = Component(agent="shop", type="offer", payload={"odd": odd, "sku": "B1"})
    events[7] = events[7].model_copy(update={"body": component})
    turn = a_turn().replace(message="a\0b")
    store.begin_turn(turn)
    ended = turn.replace(status="ok", text="so \ud83d", invoked=("shop\ud83d",))
    said = Message(turn_id="t1", role="assistant", text="so \ud83d\0")
    store.end_turn(ended, events, [said], {"summary": Note(value="\ud83d", at=1.0)})
    kept = store.turn("t1", OPERATOR)
    assert kept is not None and (kept.status, kept.text) == ("ok", "so ?")
    (line,) = store.history(S1)
    assert line.text in ("so ?\0", "so ?\N{REPLACEMENT CHARACTER}")
    component = store.events("t1", OPERATOR)[7].body
    assert isinstance(component, Component) and component.payload["sku"] == "B1"


def test_a_turn_that_begins_again_is_a_new_one(store: TurnStore) -> None:
    finish(store, a_turn())
    store.begin_turn(a_turn().model_copy(update={"message": "again"}))
    turn = store.turn("t1", OPERATOR)
    assert turn is not None and (turn.status, turn.message, store.events("t1", OPERATOR)) == (
        "running",
        "again",
        [],
    )


def test_feedback_needs_a_stored_turn(store: TurnStore) -> None:
    with pytest.raises(StoreError, match="no turn 'nope'"):
        store.give_feedback(Feedback(turn_id="nope", score=1))


# What can go wrong with the file


def refused(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    return str(caught.value)


def test_what_is_no_store_of_this_version_is_left_alone(path: Path, tmp_path: Path) -> None:
    assert "choose another file" in refused(tmp_path), "a folder"
    notes, mine, newer = (tmp_path / name for name in ("notes", "mine", "newer"))
    notes.write_text("these are my notes\n" * 200)
    with closing(sqlite3.connect(mine)) as other:
        other.execute("CREATE TABLE mine (x)")
    SqliteStore(newer).close()
    with closing(sqlite3.connect(newer)) as later:
        later.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    for file, words in (
        (notes, "move it away, or choose another file"),
        (mine, "a database of another program"),
        (newer, f"schema {SCHEMA + 1}, this one knows {SCHEMA}"),
    ):
        before = file.read_bytes()
        assert words in refused(file)
        assert file.read_bytes() == before


def refused_to_nobody(*files: Path) -> None:
    """What a process does that may not write there."""
    if os.geteuid() == 0:
        os.seteuid(65534)
    for file in files:
        assert "give this user write permission on it and on the folder" in refused(file)


def test_no_write_permission_is_said_for_folder_and_file(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    SqliteStore(tmp_path / "old.sqlite").close()
    (tmp_path / "old.sqlite").chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        files = [tmp_path / name for name in ("new.sqlite", "old.sqlite")]
        assert exit_code(refused_to_nobody, *files) == 0
    finally:
        tmp_path.chmod(0o755)


def test_a_closed_store_says_so_to_every_thread_and_so_does_one_whose_folder_is_gone(
    path: Path,
) -> None:
    """A thread that never used it would open it by its path: a page's, or the one that keeps the
    logs of running turns."""
    folder = path.parent / "gone"
    folder.mkdir()
    closed, lost = SqliteStore(path), SqliteStore(folder / "kit.db")
    closed.close()
    closed.close()
    assert not list(path.parent.glob(f"{path.name}?*")), "nothing is left beside the file"
    shutil.rmtree(folder)
    with ThreadPoolExecutor(1) as other:
        with pytest.raises(StoreError, match="open it again"):
            closed.turns()
        for store, words in ((closed, "open it again"), (lost, "create the folder")):
            with pytest.raises(StoreError, match=words):
                other.submit(store.turns).result()
            with pytest.raises(StoreError, match=words):
                other.submit(store.keep_log, "t1", []).result()
    lost.close()


# Processes that die, and processes that live


def write_turns(place: str, tells: Connection) -> None:
    """Stores three turns, and tells the id of each. Then has one that goes on for ever; after twenty of its events it
    begins again, as after an alarm."""
    live_logs.EVERY /= 5
    store = open_store(place)
    for number in range(3):
        finish(store, a_turn(f"w{number}", at=float(number)))
        tells.send(f"w{number}")
    event = some_events()[0]
    log: list[Event] = []
    for number in itertools.count():
        log.append(event.model_copy(update={"seq": number}))
        if number in (0, 20):
            store.begin_turn(a_turn("open"), events=log)
        time.sleep(0.02)


@pytest.mark.req("K-21")
def test_of_a_killed_process_what_it_acknowledged_is_there_and_its_turn_but_for_the_last_second(
    place: str,
) -> None:
    mine = open_store(place)
    mine.begin_turn(a_turn("mine"))
    hears, tells = FORKS.Pipe(duplex=False)
    process = started(write_turns, place, tells)
    assert [hears.recv() for _ in range(3)] == ["w0", "w1", "w2"]
    # The thread that writes the log looks ten times a second here, on a busy machine less often: the
    # process is killed when it has looked after its turn was begun again.
    until = time.monotonic() + 120
    written = 0
    while written <= 25 and time.monotonic() < until:
        time.sleep(0.05)
        written = len(mine.events("open", OPERATOR))
    third = open_store(place)
    statuses = {turn.id: turn.status for turn in third.turns()}
    assert (statuses["mine"], statuses["open"]) == ("running", "running")
    process.kill()
    process.join()
    # A server of PostgreSQL lets go of what a process held once it has seen that its connection is gone.
    until = time.monotonic() + 60
    while (interrupted := third.mark_interrupted()) == 0 and time.monotonic() < until:
        time.sleep(0.05)
    assert interrupted == 1
    statuses = {turn.id: turn.status for turn in mine.turns()}
    assert (statuses["mine"], statuses["open"]) == ("running", "interrupted")
    for name in ("w0", "w1", "w2"):
        assert len(third.events(name, OPERATOR)) == len(some_events()), "acknowledged, it is there"
    events = third.events("open", OPERATOR)
    assert [event.seq for event in events] == list(range(len(events)))
    assert live_logs.EVERY <= 0.5 and len(events) >= written > 25
    third.close()
    mine.close()
    assert is_url(place) or not list(Path(place).parent.glob("*-owner-*"))


@pytest.mark.req("K-24")
def test_a_session_is_read_as_quickly_whatever_else_its_user_has(file: SqliteStore) -> None:
    """An idle tab asks for the newest turn of its session every few seconds."""

    def add_turns(first: int, last: int) -> None:
        rows: list[dict[str, Any]] = []
        for number in range(first, last):
            turn = a_turn(f"old{number}", f"s{number // 40}", at=float(number))
            rows.append(row_of(turn, ""))
        with file.commit() as db:
            db.execute_many(BEGIN_TURN, rows)

    def read_newest() -> None:
        newest = file.turns("s7", "acme", "ann", limit=1)
        assert [turn.id for turn in newest] == ["old319"]

    add_turns(0, 400)
    with_few = effort(read_newest)
    add_turns(400, 2_400)
    assert effort(read_newest) < 4 * with_few


def test_what_follows_a_summary_is_read_as_quickly_however_long_the_session_is(
    file: SqliteStore,
) -> None:
    def add_lines(first: int, last: int) -> None:
        rows: list[dict[str, Any]] = []
        for number in range(first, last):
            row = {"turn_id": f"t{number}", "position": 0, "tenant_id": "acme", "session_id": "s1"}
            rows.append(row | {"agent": "", "role": "user", "text": f"q{number}"})
        with file.commit() as db:
            db.execute_many(INSERT_MESSAGE, rows)

    def read_lines(after: int) -> None:
        for _ in range(20):
            lines = file.history(S1, since=f"t{after}")
            assert [line.text for line in lines] == [f"q{after + 1}", f"q{after + 2}"]

    add_lines(0, 60)
    with_few = effort(partial(read_lines, 57), plays=7)
    add_lines(60, 3_000)
    assert effort(partial(read_lines, 2_997), plays=7) < 4 * with_few


@pytest.mark.parametrize("database", DATABASES)
def test_many_may_open_one_new_store_at_the_same_moment(database: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        for n in range(3 if database == "sqlite" else 1):
            (tmp_path / str(n)).mkdir()
            place, together = new_place(database, tmp_path / str(n)), Barrier(6)

            def opened(number: int, place: str = place, together: Barrier = together) -> None:
                together.wait()
                store = open_store(place)
                store.end_turn(a_turn(f"t{number}", "s1"), [], [])
                store.close()

            for waiting in [pool.submit(opened, number) for number in range(6)]:
                waiting.result()
            store = open_store(place)
            assert sorted(turn.id for turn in store.turns()) == [
                f"t{number}" for number in range(6)
            ]
            store.close()


# growth


def test_a_second_thread_works_the_log_into_the_file_before_a_turn_has_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so as soon as there is enough, whenever it looks for other things."""
    monkeypatch.setattr("kit.stores.live_logs.EVERY", 999.0)
    store = SqliteStore(path)
    empty = path.stat().st_size
    for n in range(MANY - 1):
        finish(store, a_turn(f"t{n}"))
    assert path.stat().st_size == empty, "no turn worked it in"
    finish(store, a_turn("last"))
    until = time.monotonic() + 60
    while path.stat().st_size == empty and time.monotonic() < until:
        time.sleep(0.05)
    assert path.stat().st_size > empty
    store.close()


def test_the_log_beside_the_file_shrinks_again_once_a_long_reader_is_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.stores.sqlite.AHEAD", 50)
    store, log = SqliteStore(path), path.with_name(path.name + "-wal")
    finish(store, a_turn("first"))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM turns").fetchone()
    for n in range(200):
        finish(store, a_turn(f"t{n}"))
    grown = log.stat().st_size
    reader.close()
    for n in range(3):
        finish(store, a_turn(f"after{n}"))
    assert grown > 2 * 50 * 4096 and log.stat().st_size <= 50 * 4096
    store.close()


@pytest.mark.req("AS-14")
def test_a_turn_that_another_process_has_taken_over_is_written_by_that_one_alone(
    path: Path,
) -> None:
    """Its first process was cut off, came back, and knows nothing of that."""
    first, second = SqliteStore(path), SqliteStore(path)
    turn = a_turn()
    first.begin_turn(turn, Session(id=turn.session_id, principal=turn.principal), some_events())
    with first.commit() as db:
        db.execute("UPDATE turns SET status = 'interrupted'")
    assert second.claim_turn(turn.id)
    with pytest.raises(StoreError, match="another process has taken it"):
        first.keep_log(turn.id, some_events())
    with pytest.raises(SessionError, match="to another process"):
        first.end_turn(turn.replace(text="late"), some_events(), [])
    second.end_turn(turn.replace(text="theirs", status="ok"), some_events(), [])
    stored = second.turn(turn.id, OPERATOR)
    assert stored is not None and stored.text == "theirs"
    first.close()
    second.close()
