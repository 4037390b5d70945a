"""What is PostgreSQL's alone: a server that goes and comes back, other people's tables, a password."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import BaseMessage

from kit.core.context import OPERATOR, SessionKey
from kit.core.errors import StoreBusy, StoreError
from kit.core.record import Note
from kit.models.scripted import Line, ScriptedModel
from kit.runtime import turn
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.stores import live_logs
from kit.stores.opening import open_store
from kit.stores.tables import SCHEMA
from kit.stores.turn_store import TurnStore
from tests.cli.test_cli import run
from tests.kits import ALICE, answering, small_kit
from tests.postgres import ENCODED, PASSWORD, Server, server
from tests.sample_turn import a_turn, finish, some_events


@pytest.fixture
def url() -> str:
    return server().new_url()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that may be stopped: nobody else uses it."""
    server()  # skips where there is none
    made = Server(Path(tempfile.mkdtemp(prefix="kit-postgres-")))
    made.make()
    yield made
    made.remove()


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(StoreError) as caught:
        call()
    return str(caught.value)


@pytest.mark.req("K-35")
def test_a_server_that_was_stopped_is_used_again_as_soon_as_it_runs(own_server: Server) -> None:
    """Every thread says so meanwhile, and the process is known to live again."""
    url = own_server.new_url(secret=True)
    with closing(open_store(url)) as store:
        store.begin_turn(a_turn("mine"))
        finish(store, a_turn("t1"))
        elsewhere: list[str] = []
        own_server.stop()
        side = threading.Thread(target=lambda: elsewhere.append(refusal(store.turns)))
        side.start()
        side.join()
        told = [refusal(store.turns), refusal(lambda: store.begin_turn(a_turn("t2"))), *elsewhere]
        assert all("see that PostgreSQL runs there" in words for words in told)
        assert not any(PASSWORD in words or ENCODED in words for words in told)
        own_server.start()
        assert {turn.id for turn in store.turns()} == {"mine", "t1"}
        finish(store, a_turn("t2"))
        with closing(open_store(url)) as other:
            mine = other.turn("mine", OPERATOR)
            assert mine is not None and mine.status == "running", "its owner lives"
        own_server.stop()
        own_server.start()
        finish(store, a_turn("t3"))  # a write is the first to notice
        assert len(store.events("t3", OPERATOR)) == len(some_events())


def test_what_a_transaction_did_before_its_connection_was_lost_is_not_done_by_half(
    own_server: Server,
) -> None:
    with closing(open_store(own_server.new_url())) as store:

        def interrupted() -> None:
            with store.commit() as db:
                db.execute("INSERT INTO notes VALUES ('acme', 's1', 'first', 'x', 1)")
                own_server.stop()
                own_server.start()
                db.execute("INSERT INTO notes VALUES ('acme', 's1', 'second', 'x', 1)")

        refusal(interrupted)
        assert store.read("SELECT name FROM notes") == []
        finish(store, a_turn())


@pytest.mark.realtime
@pytest.mark.req("S-4", "K-35")
async def test_a_turn_that_ends_while_the_server_is_away_is_stored_once_it_is_back(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn, "PATIENCE", 0.2)
    monkeypatch.setattr(live_logs, "EVERY", 0.05)

    def words(_: Sequence[BaseMessage]) -> Line:
        own_server.stop()
        return Line("Hello.")

    kit = small_kit(ScriptedModel(words), {"shop": answering("Beans.")})
    kit.store.close()
    with closing(open_store(own_server.new_url())) as store:
        reply = await run_turn("hi", ALICE, replace(kit, store=cast("Any", store)))
        assert (reply.text, reply.saved) == ("Hello.", False)
        while "see that PostgreSQL runs there" not in caplog.text.partition("is not saved")[2]:
            # It has tried again, in vain.
            await asyncio.sleep(0.01)
        own_server.start()
        async with asyncio.timeout(60):
            while (stored := store.turn(reply.turn_id, OPERATOR)) is None or not stored.text:
                await asyncio.sleep(0.01)
        assert stored.status == "ok"


def test_tables_of_another_program_are_left_alone(url: str) -> None:
    schema = url.rpartition("%3D")[2]
    server().sql(f"CREATE TABLE {schema}.sessions (mine text)")
    assert "has tables of another program: choose another database" in refusal(
        lambda: open_store(url)
    )
    server().sql(f"INSERT INTO {schema}.sessions VALUES ('still of this shape')")
    server().sql(f"CREATE TABLE {schema}.alembic_version (version_num text)")
    server().sql(f"INSERT INTO {schema}.alembic_version VALUES ('ae1027a6acf')")
    assert "has tables of another program" in refusal(lambda: open_store(url))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (16, "of a schema before 17. With the version of the kit that wrote it"),
        (SCHEMA + 1, f"schema {SCHEMA + 1}, this one knows {SCHEMA}): update the kit"),
    ],
)
def test_another_schema_is_refused_with_the_way_around_and_left_as_it_is(
    url: str, version: int, words: str
) -> None:
    def mark(number: int) -> None:
        schema = url.rpartition("%3D")[2]
        server().sql(f"UPDATE {schema}.alembic_version SET version_num = '{number:04d}'")

    open_store(url).close()
    mark(version)
    for _ in range(2):
        assert words in refusal(lambda: open_store(url))
    mark(SCHEMA)
    open_store(url).close()


@pytest.mark.req("S-3", "K-35")
@pytest.mark.parametrize(
    "fault", ["wrong password", "no such server", "no URL", "no such database"]
)
def test_no_refusal_shows_a_password(fault: str) -> None:
    url = server().new_url(secret=True)
    wrong = {
        "wrong password": url.replace(ENCODED, f"{ENCODED}2"),
        "no such server": url.replace(str(server().port), "1"),
        "no URL": url.replace(ENCODED, PASSWORD),
        "no such database": url.replace("/postgres?", "/nobody?"),
    }[fault]
    result = run("doctor", KIT_STORE=wrong)
    told = result.stdout + result.stderr + refusal(lambda: open_store(wrong))
    assert not any(part in told for part in (PASSWORD, ENCODED, "battery", "correct"))
    assert "postgresql+psycopg://" in told


def test_doctor_says_of_a_server_that_takes_no_writes_that_it_takes_none(url: str) -> None:
    with closing(open_store(url)) as store:
        store.open_documents()
    read_only = f"{url}%20-cdefault_transaction_read_only%3Don"
    checked = run("doctor", KIT_STORE=read_only)
    assert checked.returncode == 1 and "read-only transaction" in checked.stdout
    assert run("doctor", KIT_STORE=url).returncode == 0


@pytest.mark.req("S-3", "K-35")
def test_settings_know_the_password_as_a_secret_and_show_it_nowhere() -> None:
    url = server().new_url(secret=True)
    settings = Settings.read({"KIT_STORE": url})
    assert settings.secrets >= {PASSWORD, ENCODED}
    shown = f"{settings!r} {settings} {settings.store_name} {settings.grids}"
    assert not any(part in shown for part in (PASSWORD, ENCODED, "battery"))
    asked = run("ask", f"is {PASSWORD} right, and how many points do I have?", KIT_STORE=url)
    assert asked.returncode == 0, asked.stderr
    with closing(open_store(url)) as store:
        (turn,) = store.turns()
        kept = f"{turn} {store.events(turn.id, OPERATOR)}"
    assert "[secret]" in kept and PASSWORD not in kept


def test_no_store_is_kept_in_what_the_kit_does_not_know() -> None:
    assert "no store is kept in 'mysql': set KIT_STORE" in refusal(
        lambda: open_store("mysql://kit:password@localhost/kit")
    )


# Both databases


def test_who_does_not_wait_is_told_that_somebody_else_writes(place: str, store: TurnStore) -> None:
    with closing(open_store(place)) as other, other.commit():
        with pytest.raises(StoreBusy, match="another process did not finish writing"):
            store.begin_turn(a_turn("t1"), wait=False)
        assert store.turns() == [], "a reader never waits"
    finish(store, a_turn("t1"))


def test_a_transaction_within_another_is_refused_and_ends_both(store: TurnStore) -> None:
    with pytest.raises(StoreError), store.commit() as db:
        db.execute("INSERT INTO notes VALUES ('acme', 's1', 'outer', 'x', 1)")
        store.keep_note(SessionKey("acme", "s1"), "inner", Note(value="x", at=1.0))
    assert store.read("SELECT name FROM notes") == []
