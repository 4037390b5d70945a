"""Limits of a deployment: what processes that share a Redis count together."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from kit.service.limits import Limits, TurnCounts
from kit.stores.bus.shared_turns import SharedAdmission, open_shared_turns
from tests.plan_kits import Rows, Waits, opened_plans
from tests.redis_server import RedisServer, redis, redis_server
from tests.service.servers import Api, serving_kit, until

__all__ = ["redis"]
pytestmark = pytest.mark.realtime


@asynccontextmanager
async def two_servers(folder: Path, rows: Rows, address: str) -> AsyncGenerator[tuple[Api, Api]]:
    """Two servers over one store and one Redis; a tenant may have one turn at once."""
    async with AsyncExitStack() as stack:
        apis: list[Api] = []
        for _ in range(2):
            kit = await stack.enter_async_context(opened_plans(folder, rows, redis=address))
            limits = Limits(turns_at_once=1)
            apis.append(await stack.enter_async_context(serving_kit(kit, limits)))
        yield apis[0], apis[1]


@pytest.mark.req("AS-22", "S-14")
async def test_a_tenants_turns_are_counted_over_all_servers(
    tmp_path: Path, redis: RedisServer
) -> None:
    rows = Waits()
    async with two_servers(tmp_path, rows, redis.url) as (first, second):
        asking = asyncio.create_task(first.run("the best three"))
        await rows.at_work.wait()
        refused = await second.run("the best two", session="s2")
        assert refused.status_code == 429 and refused.headers["Retry-After"] == "1"
        rows.is_slow = False
        rows.may_end.set()
        assert (await asking).json()["status"] == "ok"
        await until(lambda: redis.ask("ZCARD kit:turns:running:tenant:acme") == ":0")
        assert (await second.run("the best two", session="s2")).json()["status"] == "ok"


async def test_the_turns_of_a_minute_are_counted_together(redis: RedisServer) -> None:
    limits = Limits(turns_at_once=9, turns_a_minute=3)
    async with open_shared_turns(redis.url) as here, open_shared_turns(redis.url) as there:
        counts = TurnCounts(limits, here), TurnCounts(limits, there)
        for number in range(3):
            assert not await counts[number % 2].begin("ann", f"turn {number}")
        for one in counts:
            assert 50 < await one.begin("ann", "a fourth") <= 60
        assert not await counts[0].begin("bob", "another's")


async def test_so_many_turns_of_a_deployment_work_at_once(redis: RedisServer) -> None:
    at_work = 0
    most = 0
    async with open_shared_turns(redis.url) as here, open_shared_turns(redis.url) as there:
        admissions = [SharedAdmission(shared, 2) for shared in (here, there)]

        async def turn(number: int) -> None:
            nonlocal at_work, most
            async with admissions[number % 2]:
                at_work += 1
                most = max(most, at_work)
                await asyncio.sleep(0.02)
                at_work -= 1

        await asyncio.gather(*map(turn, range(10)))
        assert most == 2
        # A turn that is stopped while it waits leaves nothing behind.
        async with admissions[0], admissions[1]:
            waiting = asyncio.create_task(turn(0))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.wait((waiting,))
        await asyncio.gather(*map(turn, range(4)))


async def test_the_slots_of_a_process_that_died_are_free_again_after_their_lease(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.stores.bus.shared_turns.LEASE", 1)
    async with open_shared_turns(redis.url) as living:
        async with open_shared_turns(redis.url) as dying:
            assert not await dying.take("carol", "lost", 1)
        began = time.monotonic()
        assert await living.take("carol", "next", 1)
        while await living.take("carol", "next", 1):
            await asyncio.sleep(0.05)
        assert time.monotonic() - began > 0.5
        # Renewed, a slot outlasts its lease.
        await asyncio.sleep(1.2)
        assert await living.take("carol", "third", 1)


async def test_while_redis_is_gone_each_process_counts_its_own(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        async with open_shared_turns(server.url) as shared:
            counts = TurnCounts(Limits(turns_at_once=1), shared)
            assert not await counts.begin("ann", "first")
            server.kill()
            assert await counts.begin("ann", "second"), "counted here"
            counts.end("ann", "first")
            assert not await counts.begin("ann", "second")
            # A slot may still be given back by a Redis that has come up in the meantime.
            giving = [task for task in asyncio.all_tasks() if "give_back" in str(task.get_coro())]
            assert giving
            await asyncio.wait(giving)
            server.start()
            assert not await counts.begin("bob", "third")
            assert await there_too(server.url, "bob") and await there_too(server.url, "ann"), (
                "what could not be given back ends with its lease"
            )


async def there_too(url: str, asker: str) -> float:
    """Returns how long another process lets that asker wait."""
    async with open_shared_turns(url) as shared:
        return await TurnCounts(Limits(turns_at_once=1), shared).begin(asker, "elsewhere")
