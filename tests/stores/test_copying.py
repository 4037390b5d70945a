"""A store is copied: everything of it is in the other one, or the command ends in 1 and says what is not."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.core.context import OPERATOR
from kit.stores.documents.protocol import EventFilter
from kit.stores.opening import open_store
from tests.cli.test_cli import refused, run
from tests.postgres import ENCODED, PASSWORD, server
from tests.sample_turn import a_turn, finish
from tests.stores.conftest import DATABASES, new_place
from tests.stores.test_documents import ANN, BY, a_memory, a_plan, a_soul, an_event
from tests.stores.test_forget import fill

VECTOR = tuple(float(number == 3) for number in range(256))


@pytest.fixture
def filled(path: Path) -> Path:
    """A file with turns of three people, and with documents."""
    fill(path)
    with closing(open_store(str(path))) as store:
        for name in ("z", "a"):  # lines are in the order in which turns ended, whatever their ids
            finish(store, a_turn(name))
        asyncio.run(_add_documents(store.open_documents()))
    return path


async def _add_documents(documents: Any) -> None:
    for number in (2, 0, 1):
        await documents.memory.write(
            a_memory(f"k{number}", text=f"a red door\0{number}", embedding=VECTOR)
        )
        await documents.plans.create(a_plan(f"p{number}"))
        await documents.events.append(
            an_event(f"e{number}", large_response_triggered=number == 1, payload="\0")
        )
    await documents.souls.put(a_soul(name="Ada"))


def everything(place: str) -> list[Any]:
    """What a store gives to whoever reads it, the newest first where it has an order."""
    with closing(open_store(place)) as store:
        turns = store.turns()
        read = [turns, store.tally().dump(), store.feedbacks(1)]
        for turn in turns:
            read += [store.events(turn.id, OPERATOR), store.history(turn.session_key)]
            read += [store.recall(turn.session_key), store.shown_components(turn.session_key)]
        read += asyncio.run(_documents(store.open_documents()))
    return read


async def _documents(documents: Any) -> list[Any]:
    return [
        await documents.memory.nearest(ANN, "session", VECTOR, BY, session_id="s1"),
        {
            memory.key
            for memory in await documents.memory.search(ANN, "session", "red", session_id="s1")
        },
        await documents.souls.of(ANN),
        await documents.plans.of(ANN),
        await documents.events.query(EventFilter(tenant_id="acme")),
        await documents.events.query(EventFilter(tenant_id="acme", large_response_triggered=True)),
    ]


@pytest.mark.req("K-35")
def test_a_file_moves_into_postgresql_and_back_and_nothing_is_lost(
    filled: Path, tmp_path: Path
) -> None:
    url, back = server().new_url(secret=True), tmp_path / "back.db"
    into = run("migrate", str(filled), url)
    assert into.returncode == 0, into.stdout + into.stderr
    assert "turns: 8 rows, the same in both" in into.stdout
    assert everything(url) == everything(str(filled))
    out = run("migrate", url, str(back))
    assert out.returncode == 0 and everything(str(back)) == everything(str(filled))
    again = run("migrate", str(filled), url)
    refused(again, "not empty: there are rows in")
    refused(run("migrate", str(tmp_path / "none.db"), url), "there is no store at")
    refused(run("migrate", str(filled), ":memory:"), "ends with this command")
    told = "".join(one.stdout + one.stderr for one in (into, out, again))
    assert PASSWORD not in told and ENCODED not in told


@pytest.mark.parametrize("database", DATABASES)
def test_a_copy_goes_on_with_numbers_of_its_own(
    database: str, filled: Path, tmp_path: Path
) -> None:
    (tmp_path / "copy").mkdir()
    place = new_place(database, tmp_path / "copy")
    assert run("migrate", str(filled), place).returncode == 0
    with closing(open_store(place)) as store:
        finish(store, a_turn("newer"))
        documents = store.open_documents()
        asyncio.run(documents.events.append(an_event("newer")))
        asyncio.run(documents.memory.write(a_memory("newer", text="a red roof")))
        numbers = store.read("SELECT id FROM turns ORDER BY number DESC LIMIT 1")
        newest = asyncio.run(documents.events.query(EventFilter(tenant_id="acme")))[-1]
    assert [tuple(row) for row in numbers] == [("newer",)] and newest.event_id == "newer"


@pytest.mark.req("K-35")
def test_a_copy_that_is_not_the_same_ends_in_1_and_says_where(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "other.db"
    open_store(str(target)).close()
    with closing(sqlite3.connect(target)) as other, other:
        other.execute(
            "CREATE TRIGGER spoil AFTER INSERT ON notes BEGIN UPDATE notes SET value = 'spoilt'; END"
        )
    result = run("migrate", str(filled), str(target))
    assert result.returncode == 1
    assert "notes: 3 rows, NOT the same in both" in result.stdout
    assert "turns: 8 rows, the same in both" in result.stdout
