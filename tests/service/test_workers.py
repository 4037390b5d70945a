"""Plans that a worker runs, over Redis and a store that it shares with the API."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from kit import open_kit
from kit.core.documents.document import Plan
from kit.core.errors import StoreError
from kit.planning.record import LEASE
from kit.runtime.handle import Reply
from kit.service.queued_plans import QueuedPlans, open_queued_plans
from kit.service.remote_turn import RemoteTurn
from kit.service.worker import work
from kit.settings import Settings
from kit.stores.documents.sql import SqlPlans
from kit.wire import Kit
from kit.worlds.outlets.server import skill_app
from kit.worlds.outlets.skill_service import SkillService
from kit.worlds.service.serve import serving
from tests.cli.test_cli import run
from tests.kits import content_of
from tests.plan_kits import Rows, Waits, opened_plans
from tests.redis_server import RedisServer, redis, redis_server
from tests.service.servers import (
    ACME,
    KEYS,
    TASK,
    Api,
    Frame,
    deck_of_plans,
    frames,
    outlet_settings,
    serving_kit,
    until,
)
from tests.service.test_client import client_of
from tests.worker_kills import Workers

__all__ = ["redis"]
pytestmark = pytest.mark.realtime
KEY = {"Idempotency-Key": "k-1"}
SEAL = "00112233445566778899aabbccddeeff" * 2


@asynccontextmanager
async def working(kit: Kit, plans: QueuedPlans | None) -> AsyncGenerator[None]:
    """Has a kit work on what is queued, as `kit worker` does."""
    assert plans is not None
    task = asyncio.create_task(work(kit, plans, 4))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


@asynccontextmanager
async def two_processes(
    folder: Path, rows: Rows, address: str, lease: float = LEASE
) -> AsyncGenerator[Api]:
    """An API that runs no plan, and a worker with a kit of its own."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        here = await enter(opened_plans(folder, Rows(), redis=address))
        there = await enter(opened_plans(folder, rows, redis=address, lease=lease))
        await enter(working(there, await enter(open_queued_plans(there.settings))))
        queued = await enter(open_queued_plans(here.settings))
        yield await enter(serving_kit(here, queued_plans=queued))


@pytest.mark.req("AS-13", "AS-22")
async def test_a_plan_is_run_by_a_worker_and_streamed_as_it_happens_and_stopped_by_the_api(
    tmp_path: Path, redis: RedisServer
) -> None:
    rows = Waits()
    async with two_processes(tmp_path, rows, redis.url) as api:
        seen: list[Frame] = []
        async with api.stream("the best three") as response:
            async for frame in frames(response):
                seen.append(frame)
                if rows.at_work.is_set() and rows.is_slow:
                    assert frame.kind != "result", "it is told while it happens"
                    rows.is_slow = False
                    await asyncio.sleep(0)
                    rows.may_end.set()
        assert rows.tasks and seen[-1].data["status"] == "ok"
        numbers = [frame.id for frame in seen[:-1]]
        assert numbers == sorted(set(numbers), key=lambda number: number or 0)
        again = (await api.run("the best three", session="s2")).json()
        assert again["status"] == "ok" and again["response"] == seen[-1].data["response"]
        rows.is_slow = True
        rows.at_work.clear()
        rows.may_end.clear()
        asking = asyncio.create_task(api.run("the best three", session="s3"))
        await rows.at_work.wait()
        plans = (await api.http.get("/agent/plans", headers=ACME)).json()["plans"]
        (running,) = [plan["plan_id"] for plan in plans if plan["status"] != "complete"]
        stopped = await api.http.post(f"/agent/plans/{running}/cancel", headers=ACME)
        assert stopped.json()["status"] == "cancelled"
        assert (await asking).json()["status"] == "cancelled"


@pytest.mark.req("AS-22", "AS-19")
async def test_a_key_reaches_the_worker_sealed_is_nowhere_else_and_is_left_alone_by_one_that_cannot_open_it(
    tmp_path: Path,
    redis: RedisServer,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        url = await enter(serving(skill_app(SkillService(), KEYS)))
        settings = outlet_settings(tmp_path, url).with_(redis=redis.url, seal_key=SEAL)
        others = settings.with_(seal_key=SEAL[::-1])
        here = await enter(open_kit(settings, deck=deck_of_plans()))
        there = await enter(open_kit(others, deck=deck_of_plans()))
        queued = await enter(open_queued_plans(settings))
        api = await enter(serving_kit(here, queued_plans=queued))
        key = {"X-Api-Key": KEYS["acme"]}
        asking = asyncio.create_task(api.run(TASK, headers=key))
        # The whole of Redis while the key waits in it, and once it is used.
        await until(lambda: redis.keys("kit:key:*"))
        waiting = redis.content()
        async with open_queued_plans(settings) as plans, working(there, plans):
            result = (await asking).json()
        assert result["status"] == "ok" and "5 of 2,028 results" in result["response"]
        assert redis.keys("kit:key:*") == []
        async with open_queued_plans(others) as plans, working(there, plans):
            unread = (await api.run(TASK, headers=key)).json()
        assert unread["status"] == "needs_key"
        assert "none came" not in unread["response"], "one did"
        assert f"{unread['plan_id']} was sealed under another KIT_SEAL_KEY" in caplog.text
        path = f"/agent/plans/{unread['plan_id']}/resume"
        again = await api.http.post(path, json={}, headers={**ACME, **key})
        assert again.json()["status"] == "ok"
        told = "\n".join([str(result), str(unread), again.text, *capfd.readouterr()])
        for place in (waiting, redis.content(), content_of(tmp_path), caplog.text, told):
            assert KEYS["acme"] not in place


@pytest.mark.req("AS-22")
async def test_the_same_request_to_two_servers_at_one_moment_is_one_plan(
    tmp_path: Path, redis: RedisServer
) -> None:
    rows = Rows()
    async with (
        two_processes(tmp_path, rows, redis.url) as here,
        opened_plans(tmp_path, Rows(), redis=redis.url) as kit,
        open_queued_plans(kit.settings) as queued,
        serving_kit(kit, queued_plans=queued) as there,
    ):
        asked = [api.run("the best three", headers=KEY) for api in (here, there)]
        first, second = await asyncio.gather(*asked)
        assert first.json() == second.json() and first.json()["status"] == "ok"
    assert len(rows.tasks) == 2, "its two steps"


@pytest.mark.req("AS-14")
async def test_a_plan_that_redis_lost_is_taken_up_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place in the queue is gone; that it is there, the store says."""
    # How often a worker looks for such plans.
    monkeypatch.setattr("kit.service.worker.LEASE", 0.5)
    with redis_server(tmp_path) as server:
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            here = await enter(opened_plans(tmp_path, Rows(), redis=server.url))
            queued = await enter(open_queued_plans(here.settings))
            api = await enter(serving_kit(here, queued_plans=queued))
            asking = asyncio.create_task(api.run("the best three"))
            await until(lambda: server.keys("streaq:kit:task:*"))
            server.ask("FLUSHALL")
            there = await enter(opened_plans(tmp_path, Rows(), redis=server.url))
            await enter(working(there, await enter(open_queued_plans(there.settings))))
            assert (await asking).json()["status"] == "ok"


@pytest.mark.req("AS-13")
async def test_while_redis_is_silent_or_gone_a_plan_is_refused_and_not_run_later(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path) as server:
        rows = Rows()
        async with two_processes(tmp_path, rows, server.url) as api:

            async def is_refused() -> None:
                async with asyncio.timeout(30):
                    replies = await asyncio.gather(
                        api.run("the best two"), api.http.get("/ready", headers=ACME)
                    )
                for reply in replies:
                    assert reply.status_code == 503 and "Redis cannot be reached" in reply.text

            with server.frozen():
                await is_refused()
            server.kill()
            await is_refused()
            plans = (await api.http.get("/agent/plans", headers=ACME)).json()["plans"]
            assert plans == []
            server.start()
            async with asyncio.timeout(60):
                while (await api.run("the best three")).status_code != 200:
                    await asyncio.sleep(0.2)
        assert rows.tasks == ["find the best three", "rank the best three"]


@pytest.mark.req("K-11", "AS-22")
async def test_who_is_forgotten_while_a_plan_waits_for_a_worker_leaves_nothing_in_redis(
    tmp_path: Path, redis: RedisServer
) -> None:
    # The stores of other tests are theirs, and what they have told this server is asked of no store here.
    redis.ask("FLUSHALL")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        url = await enter(serving(skill_app(SkillService(), KEYS)))
        settings = outlet_settings(tmp_path, url).with_(redis=redis.url, seal_key=SEAL)
        here = await enter(open_kit(settings, deck=deck_of_plans()))
        queued = await enter(open_queued_plans(settings))
        api = await enter(serving_kit(here, queued_plans=queued))
        asking = asyncio.create_task(api.run(TASK, headers={"X-Api-Key": KEYS["acme"]}))
        await until(lambda: redis.keys("kit:key:*") and redis.keys("streaq:kit:task:data:*"))
        asking.cancel()
        assert "alice" in redis.content()
    where = {"KIT_STORE": settings.store, "KIT_REDIS": redis.url, "KIT_DECK": "cards/outlets"}
    forgotten = await asyncio.to_thread(run, "data", "forget", "alice", "--tenant", "acme", **where)
    assert forgotten.returncode == 0, forgotten.stderr
    assert "alice" not in redis.content() and not redis.keys("kit:key:*")
    async with (
        open_kit(settings, deck=deck_of_plans()) as there,
        open_queued_plans(settings) as plans,
        working(there, plans),
    ):
        await until(lambda: not redis.keys("streaq:kit:task:data:*"))
        assert there.store.turns() == []
        assert "alice" not in redis.content()


def test_a_seal_key_of_another_form_is_refused_without_being_repeated() -> None:
    with pytest.raises(Exception, match="KIT_SEAL_KEY cannot be used") as refused:
        Settings.read({"KIT_SEAL_KEY": "not-hexadecimal-and-secret"})
    assert "not-hexadecimal" not in str(refused.value)


@pytest.mark.req("AS-14", "AS-13", "AS-22", "K-9")
async def test_whoever_waits_for_a_plan_is_answered_though_its_worker_was_killed(
    tmp_path: Path, redis: RedisServer
) -> None:
    place = str(tmp_path / "kit.db")
    workers = Workers(tmp_path, redis.url, place, "", (0.0,), lease=1.0)
    acts = tmp_path / "acts.log"
    async with (
        opened_plans(tmp_path, Rows(), redis=redis.url) as kit,
        open_queued_plans(kit.settings) as queued,
        serving_kit(kit, queued_plans=queued) as api,
        client_of(api) as client,
    ):
        try:
            await asyncio.to_thread(workers.start_all)
            asking = asyncio.create_task(api.run("the best three", headers=KEY))
            turn = await RemoteTurn.begin(client, client.stream("s2", "the best two"))
            first_id = turn.id
            reading = asyncio.create_task(_reply_of(turn))
            await until(lambda: acts.exists() and first_id in acts.read_text(), seconds=60)
            await asyncio.to_thread(workers.kill, 0)
            result = (await asking).json()
            reply = await reading
        finally:
            workers.end()
        assert result["status"] == "ok" and "rank" in result["response"]
        assert reply.status == "ok" and reply.text == result["response"].replace("three", "two")
        assert turn.id == reply.turn_id != first_id
        plan = await client.plan(f"plan_{first_id}")
        # A job that comes twice finds the plan over.
        first = next(
            turn for turn in kit.store.turns() if turn.id == plan.plan_id.removeprefix("plan_")
        )
        late = await kit.resume(result["plan_id"].removeprefix("plan_"), who=first.principal)
        assert "already ended" in late.text
        again = await api.run("the best three", headers=KEY)
        assert again.json() == result, "whoever lost the connection is told the same end"
    assert plan.fence >= 2, "a second turn has taken it up, and on a busy machine a third"
    assert len(acts.read_text().split()) == len(set(acts.read_text().split())) == 4


@pytest.mark.req("AS-3", "AS-13", "K-9")
async def test_nobody_is_told_that_a_plan_has_failed_which_a_worker_takes_up_again(
    tmp_path: Path, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its store takes no writes for a while: the plan cannot be ended there, so it is not over."""
    monkeypatch.setattr("kit.service.worker.LEASE", 0.5)
    rows = Waits()
    replace = SqlPlans.replace
    refusals: list[str] = []

    async def refuses(plans: SqlPlans, plan: Plan) -> Plan:
        if rows.at_work.is_set() and rows.is_slow:
            refusals.append(plan.plan_id)
            raise StoreError("it takes no writes")
        return await replace(plans, plan)

    monkeypatch.setattr(SqlPlans, "replace", refuses)
    async with two_processes(tmp_path, rows, redis.url, lease=0.6) as api:
        asking = asyncio.create_task(api.run("the best three"))
        await until(lambda: bool(api.kit.store.turns()) and bool(refusals))
        (broken_off,) = [turn.id for turn in api.kit.store.turns()]
        await until(lambda: api.kit.store.turns()[-1].status != "running")
        rows.is_slow = False
        rows.may_end.set()
        result = (await asking).json()
        turns = {turn.id: turn for turn in api.kit.store.turns()}
    assert result["status"] == "ok" and result["turn_id"] != broken_off
    assert turns[broken_off].status == "interrupted"
    assert "try again" not in turns[broken_off].text
    assert rows.tasks == ["find the best three", "rank the best three"], "each is done once"


async def _reply_of(turn: RemoteTurn) -> Reply:
    return await turn
