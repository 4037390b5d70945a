"""Turns that run at once share their commits, and each of them keeps what a turn alone is promised."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from langchain_core.messages import BaseMessage

from kit.core.context import OPERATOR, Session
from kit.core.errors import SessionError
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Turn
from kit.runtime.turn import run_turn
from kit.stores.engines.database import CROWD
from kit.stores.engines.sqlite_connection import SqliteConnection
from kit.stores.sqlite import SqliteStore, open_for_reading
from kit.stores.turn_store import TurnStore
from tests.kits import SmallKit, small_kit
from tests.sample_turn import ANN, a_turn, some_events

MANY = 20
STRANGER = ANN.replace(user_id="bob")


def crowd(store: TurnStore) -> None:
    """Has so many turns run that those which come share their commits."""
    for number in range(CROWD):
        store.begin_turn(a_turn(f"first{number}", f"first{number}"), events=some_events())


def beginning(store: TurnStore, name: str, session: Session | None = None) -> asyncio.Task[None]:
    """Begins a turn as its runner does."""
    turn = a_turn(name, name)
    begin = partial(store.begin_turn, turn, session, some_events(), wait=False)
    return asyncio.ensure_future(store.write_together(begin))


async def test_turns_that_begin_at_once_share_a_commit(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        crowd(store)
        statements: list[str] = []
        cast("SqliteConnection", store._db).driver.set_trace_callback(statements.append)
        await asyncio.gather(*(beginning(store, f"t{number}") for number in range(MANY)))
        assert statements.count("COMMIT") == 1
        with closing(open_for_reading(path)) as reader:
            count = reader.execute("SELECT count(*) FROM turns WHERE status = 'running'")
            assert count.fetchone() == (CROWD + MANY,)


async def test_a_turn_that_is_refused_costs_no_other_one_its_beginning(store: TurnStore) -> None:
    crowd(store)
    store.open_session(Session(id="t3", principal=STRANGER))
    tasks: list[asyncio.Task[None]] = []
    for number in range(6):
        session = Session(id=f"t{number}", principal=ANN)
        tasks.append(beginning(store, f"t{number}", session))
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in errors if error is not None] == [SessionError]
    assert isinstance(errors[3], SessionError)
    stored = [store.turn(f"t{number}", OPERATOR) is not None for number in range(6)]
    assert stored == [True, True, True, False, True, True]


async def test_what_is_cancelled_while_it_waits_is_not_written(store: TurnStore) -> None:
    crowd(store)
    stopped = beginning(store, "stopped")
    kept = beginning(store, "kept")
    # Both are in the queue now, and it is written after this.
    await asyncio.sleep(0)
    stopped.cancel()
    await kept
    assert store.turn("kept", OPERATOR) is not None
    assert store.turn("stopped", OPERATOR) is None


async def test_every_turn_of_a_crowd_is_stored_before_its_model_is_called(path: Path) -> None:
    """A process that is killed while models answer leaves all of these turns behind."""
    stored: list[bool] = []

    def answer(messages: Sequence[BaseMessage]) -> Line:
        with closing(open_for_reading(path)) as reader:
            row = reader.execute(
                "SELECT status FROM turns WHERE message = ?", (messages[-1].content,)
            ).fetchone()
        stored.append(row == ("running",))
        return Line("Hello.", delay=0.01)

    with closing(SqliteStore(path)) as store:
        kit = SmallKit(small_kit([answer], {"a": ScriptedModel("A")}).team, store)
        turns: list[Turn] = []
        for number in range(MANY):
            session = Session(id=f"s{number}", principal=ANN)
            turns.append(run_turn(f"hello number {number}", session, kit))
        replies = await asyncio.gather(*turns)
        assert stored == [True] * MANY
        assert {reply.saved for reply in replies} == {True}
        statuses = {turn.status for turn in store.turns(limit=-1)}
        assert (len(store.turns(limit=-1)), statuses) == (MANY, {"ok"})


@pytest.mark.parametrize("turns", [1, MANY])
async def test_a_turn_that_is_stopped_as_it_begins_is_stored_as_stopped(
    path: Path, turns: int
) -> None:
    with closing(SqliteStore(path)) as store:
        slow = Line("Hello.", delay=60)
        kit = SmallKit(small_kit([slow] * turns, {"a": ScriptedModel("A")}).team, store)
        running: list[Turn] = []
        for number in range(turns):
            session = Session(id=f"s{number}", principal=ANN)
            running.append(run_turn("hello", session, kit))
        await asyncio.sleep(0)
        for turn in running:
            turn.cancel()
        replies = await asyncio.gather(*running)
        assert {reply.status for reply in replies} == {"cancelled"}
        assert {turn.status for turn in store.turns(limit=-1)} == {"cancelled"}
        assert len(store.turns(limit=-1)) == turns
