"""What a bus promises, whichever it is: every reader gets every entry in order, also what came while it was away."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from kit.stores.bus.bus import FIRST, Bus, BusError, LocalBus
from kit.stores.bus.redis_bus import open_redis_bus
from tests.redis_server import RedisServer, redis, redis_server

__all__ = ["redis"]

LONGEST = 400
"""Entries of a stream, here."""
OpenBus = Callable[[], AbstractAsyncContextManager[Bus]]


@pytest.fixture(params=["in the process", "over Redis"])
def open_bus(request: pytest.FixtureRequest) -> OpenBus:
    if request.param == "over Redis":
        server: RedisServer = request.getfixturevalue("redis")
        server.ask("FLUSHALL")
        return lambda: open_redis_bus(server.url)

    @asynccontextmanager
    async def local() -> AsyncGenerator[Bus]:
        yield LocalBus()

    return local


@pytest.mark.realtime
@pytest.mark.req("AS-13")
async def test_every_reader_gets_every_entry_in_order_and_goes_on_where_it_was(
    open_bus: OpenBus,
) -> None:
    async with open_bus() as bus:
        for number in range(3):
            await bus.publish("steps", {"number": number, "of": "día"})
        first, second, third = await bus.read("steps")
        assert [entry.body["number"] for entry in (first, second, third)] == [0, 1, 2]
        assert first.body["of"] == "día"
        assert await bus.read("steps", first.id) == [second, third]
        assert await bus.read("steps", third.id) == [] and await bus.read("others") == []
        assert await bus.last("steps") == third.id and await bus.last("others") == FIRST


@pytest.mark.realtime
@pytest.mark.req("AS-13")
async def test_readers_that_wait_are_woken_by_the_entry_and_by_no_other_stream(
    open_bus: OpenBus,
) -> None:
    async with open_bus() as bus:
        after = await bus.publish("steps", {"number": 0})
        waiting = [asyncio.create_task(bus.read("steps", after, wait=60)) for _ in range(80)]
        await asyncio.sleep(0.1)
        await bus.publish("others", {})
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
        await bus.publish("steps", {"number": 1})
        for entries in await asyncio.gather(*waiting):
            assert [entry.body["number"] for entry in entries] == [1]
        assert await bus.read("steps", await bus.last("steps"), wait=0.05) == []


@pytest.mark.realtime
@pytest.mark.req("AS-13")
async def test_a_stream_is_bounded(open_bus: OpenBus, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bus", "redis_bus"):
        monkeypatch.setattr(f"kit.stores.bus.{module}.LONGEST", LONGEST)
    async with open_bus() as bus:
        for number in range(LONGEST + 300):
            await bus.publish("steps", {"number": number})
        entries = await bus.read("steps")
        # Redis lets whole blocks of a stream go, of a hundred entries.
        assert LONGEST <= len(entries) < LONGEST + 200
        assert entries[-1].body["number"] == LONGEST + 299


@pytest.mark.realtime
@pytest.mark.req("AS-13")
async def test_a_redis_that_is_gone_is_said_without_its_address_and_found_again(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path) as server:
        async with open_redis_bus(server.url) as bus:
            await bus.publish("steps", {"number": 1})
            after = await bus.last("steps")
            waiting = asyncio.create_task(bus.read("steps", after, wait=60))
            await asyncio.sleep(0.1)
            server.kill()
            with pytest.raises(BusError, match="Redis cannot be reached"):
                await waiting
            async with open_redis_bus(f"redis://:s3cret@127.0.0.1:{server.port}/0") as other:
                with pytest.raises(BusError) as refused:
                    await other.publish("steps", {})
                assert "s3cret" not in str(refused.value)
            server.start()
            until = time.monotonic() + 30
            while time.monotonic() < until:
                try:
                    await bus.publish("steps", {"number": 2})
                    break
                except BusError:
                    await asyncio.sleep(0.05)
            assert [entry.body["number"] for entry in await bus.read("steps")] == [1, 2]


@pytest.mark.realtime
@pytest.mark.req("AS-13")
async def test_a_redis_that_is_full_says_so_and_nothing_of_what_it_was_told(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        async with open_redis_bus(server.url) as bus:
            server.ask("CONFIG SET maxmemory 1")
            with pytest.raises(BusError, match=r"refused: .*maxmemory") as refused:
                await bus.publish("steps", {"text": "my card is 4111"})
            assert "4111" not in str(refused.value)
