"""write_memory and read_memory: keys that the tool makes, contracts before the write, locks until
the reader confirms."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from itertools import product
from typing import Any

import pytest

from kit import Kit, open_kit
from kit.core.bodies.call import ToolEnded
from kit.core.card import AgentCard
from kit.core.context import Principal
from kit.core.errors import MemoryLockError, ShapeError, StorageSchemaError
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import Reply
from kit.stores.bus.bus import LocalBus
from kit.stores.documents.protocol import Documents, EventFilter
from kit.stores.documents.sql import open_documents
from kit.stores.sqlite import SqliteStore
from kit.tools.task_memory import (
    HOLD,
    READ,
    TOOLS,
    WAIT,
    WRITE,
    MemoryConfig,
    Task,
    TaskMemory,
    memory_key,
    memory_stream,
)
from tests.kits import OFFLINE, asks, bodies, lead_over, stitched

ANN, EVE = Principal(tenant_id="acme", user_id="ann"), Principal(tenant_id="other", user_id="ann")
IDS = {"outlet_ids": "array<string>"}
USER = MemoryConfig(scope="user")


def a_task(number: int = 1) -> Task:
    return Task(ANN, "s1", f"t{number}", "scout")


def documents() -> Documents:
    return open_documents(SqliteStore(":memory:"), clock=lambda: asyncio.get_running_loop().time())


def memory_over(stores: Documents) -> TaskMemory:
    return TaskMemory(stores, lambda: asyncio.get_running_loop().time())


async def events(stores: Documents, kind: str) -> list[Any]:
    return [
        event.payload
        for event in await stores.events.query(EventFilter(tenant_id="acme", event_type=kind))
    ]


@pytest.mark.req("AS-8", "AS-18")
async def test_the_tool_makes_the_key_and_only_its_principal_reads_by_it():
    memory = memory_over(documents())
    report = await memory.write(a_task(), "outlet_ids", {"outlet_ids": ["o1"]}, IDS)
    assert report == {"status": "written", "key": "acme:s1:t1:outlet_ids"}
    item = await memory.read(ANN, report["key"])
    assert item and (item.value, item.source, item.task_id) == (
        {"outlet_ids": ["o1"]},
        "scout",
        "t1",
    )
    assert await memory.read(EVE, report["key"]) is None
    assert (await memory.write(a_task(), "taste", "dry", "string", USER))[
        "key"
    ] == "acme:user:ann:taste"
    odd = await memory.write(a_task(), "a:b c", "dry", "string")
    assert odd["key"] == "acme:s1:t1:a%3Ab%20c", "four parts, whatever a model calls it"
    with pytest.raises(StorageSchemaError):
        await memory.write(a_task(), "", "dry", "string")


@pytest.mark.req("AS-8")
def test_no_two_tasks_make_the_same_key():
    """Whatever ids and labels hold, colons among them: a label cannot reach into another task, user or tenant."""
    names = ("", "ann", "user", ":", "ann:", "%3A")
    keys: set[str] = set()
    for tenant, session, task, label in product(names, repeat=4):
        who = Principal(tenant_id=tenant, user_id="ann")
        keys.add(memory_key(Task(who, session, task, "a"), label, "session"))
    for tenant, user, label in product(names, repeat=3):
        who = Principal(tenant_id=tenant, user_id=user)
        keys.add(memory_key(Task(who, "s", "t", "a"), label, "user"))
    assert len(keys) == len(names) ** 4 + len(names) ** 3


@pytest.mark.req("AS-8")
async def test_a_memory_is_kept_as_long_as_the_card_says():
    memory = memory_over(documents())
    config = MemoryConfig(seconds=60)
    key = (await memory.write(a_task(), "taste", "dry", "string", config))["key"]
    await asyncio.sleep(59)
    assert await memory.read(ANN, key)
    await asyncio.sleep(1)
    assert await memory.read(ANN, key) is None


@pytest.mark.req("AS-8", "AS-18")
async def test_what_breaks_the_contract_is_not_written_and_the_report_says_what_it_was():
    stores = documents()
    memory, task = memory_over(stores), a_task()
    report = await memory.write(task, "ids", {"outlet_ids": [1], "more": "x"}, IDS)
    assert report == {
        "status": "contract_violation",
        "expected": IDS,
        "actual": {"outlet_ids": "array<integer>", "more": "string"},
    }
    assert await memory.read(ANN, memory_key(task, "ids", "session")) is None
    violation = {"expected_shape": IDS, "actual_shape": report["actual"], "step_index": None}
    assert await events(stores, "contract_violation") == [violation]
    with pytest.raises(ShapeError):
        await memory.write(task, "ids", [], {"outlet_ids": "list"})


@pytest.mark.req("AS-8", "AS-18")
async def test_another_task_waits_five_seconds_for_the_reader_to_confirm():
    stores, loop = documents(), asyncio.get_running_loop()
    memory = memory_over(stores)
    key = (await memory.write(a_task(1), "taste", "dry", "string", USER))["key"]
    with pytest.raises(MemoryLockError, match="t1"):
        await memory.write(a_task(2), "taste", "sweet", "string", USER)
    assert WAIT == 5 and loop.time() == pytest.approx(5)
    item = await memory.read(ANN, key)
    assert item and item.value == "dry"
    loop.call_later(2.2, lambda: asyncio.ensure_future(memory.confirm(ANN, item)))
    await memory.write(a_task(2), "taste", "sweet", "string", USER)
    assert loop.time() == pytest.approx(7.2, abs=0.01)
    waits = [
        event.lock_wait_ms
        for event in await stores.events.query(
            EventFilter(tenant_id="acme", event_type="memory.written")
        )
    ]
    assert waits == [0, pytest.approx(2200, abs=10)]
    given_up = EventFilter(tenant_id="acme", event_type="memory.lock_timeout")
    (timeout,) = await stores.events.query(given_up)
    assert (timeout.lock_wait_ms, timeout.task_id, timeout.payload) == (
        *(pytest.approx(5000, abs=10), "t2", {"key": key}),
    )
    await memory.confirm(
        ANN, item
    )  # a late word of the first reader frees nothing of the second task's
    with pytest.raises(MemoryLockError):
        await memory.write(a_task(3), "taste", "sour", "string", USER)
    await asyncio.sleep(HOLD)
    await memory.write(
        a_task(3), "taste", "sour", "string", USER
    )  # whose reader died holds nobody up for good


async def ask(
    config: dict[str, Any], scout: Sequence[Any], clerk: Sequence[Any] = (), store: str = ":memory:"
) -> Reply:
    """A turn in which `scout` works first and then, in a second round, `clerk`."""
    async with opened(config, scout, clerk, store) as kit:
        return await kit.ask("find outlets", kit.session("s", "acme", "ann"))


def opened(
    config: dict[str, Any], scout: Sequence[Any], clerk: Sequence[Any] = (), store: str = ":memory:"
) -> AbstractAsyncContextManager[Kit]:
    """The kit of such a turn."""
    cards = [
        AgentCard(
            id="scout",
            description="Finds.",
            model="offline",
            tools=(WRITE,),
            tool_config={WRITE: config},
        ),
        AgentCard(id="clerk", description="Reads.", model="offline", tools=(READ,)),
    ]
    rounds = [asks("scout"), *([asks("clerk")] if clerk else []), stitched]
    models = {
        "lead": ScriptedModel(*rounds),
        "scout": ScriptedModel(*scout),
        "clerk": ScriptedModel(*clerk),
    }
    deck = lead_over(*cards, tools=[TOOLS])
    return open_kit(OFFLINE.with_(store=store), deck=deck, models=models)


def results(reply: Reply, tool: str) -> list[Any]:
    return [body for body in bodies(reply, ToolEnded) if body.tool == tool]


@pytest.mark.req("AS-8")
async def test_a_card_writes_and_another_reads_and_the_data_stays_behind_after_the_turn(
    tmp_path: Any,
):
    path = tmp_path / "kit.sqlite"

    def reads(messages: Sequence[Any]) -> Line:
        store = SqliteStore(path)  # what the orchestrator would pass on
        ((key,),) = store.read("SELECT key FROM agent_memory")
        store.close()
        return Line(calls=[(READ, {"key": key})])

    write = Line(calls=[(WRITE, {"key": "ids", "data": '{"outlet_ids": ["o1"]}'})])
    reply = await ask(
        {"shape": IDS}, [write, Line("Done.")], [reads, Line("They are o1.")], str(path)
    )
    ((written,), (read,)) = results(reply, WRITE), results(reply, READ)
    assert (
        json.loads(written.result)["key"].endswith(".scout:ids")
        and read.result == '{"outlet_ids": ["o1"]}'
    )
    store = SqliteStore(path)
    assert store.read("SELECT locked_by, document ->> 'source' FROM agent_memory") == [
        (None, "scout")
    ]  # reading confirmed
    store.close()


async def test_the_bus_says_which_key_was_written_once_it_can_be_read_and_nothing_of_what_is_in_it():
    bus, stores = LocalBus(), documents()
    memory = TaskMemory(stores, bus=bus)
    waiting = asyncio.create_task(bus.read(memory_stream(ANN), wait=60))
    await asyncio.sleep(1)
    assert (await memory.write(a_task(), "ids", ["o1"], IDS))["status"] == "contract_violation"
    await asyncio.sleep(1)
    assert not waiting.done()
    key = (await memory.write(a_task(), "ids", {"outlet_ids": ["o1"]}, IDS))["key"]
    (entry,) = await waiting
    assert entry.body == {"event": "memory.upsert", "key": key}
    assert (item := await memory.read(ANN, entry.body["key"])) and item.value == {
        "outlet_ids": ["o1"]
    }


@pytest.mark.req("AS-8")
async def test_a_model_cannot_loosen_the_contract_of_its_card_and_reads_what_was_expected():
    loose = {"key": "ids", "data": {"x": 1}, "return_spec": {"shape": {"x": "integer"}}}
    reply = await ask({"shape": IDS}, [Line(calls=[(WRITE, loose)]), Line("I could not keep it.")])
    (result,) = results(reply, WRITE)
    assert json.loads(result.result) == {
        "status": "contract_violation",
        "expected": IDS,
        "actual": {"x": "integer"},
    }
    assert "bad_arguments" in (result.error or "")


async def test_a_shape_on_a_card_that_is_none_is_refused_when_the_kit_opens():
    with pytest.raises(ShapeError, match="field 'ids'"):
        await ask({"shape": {"ids": "list"}}, [])
