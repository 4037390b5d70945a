"""A turn of another process over the same store: followed live, awaited and stopped, with Redis and without."""

from pathlib import Path

import pytest

from kit.core.context import Principal
from kit.core.errors import ResumeError
from kit.core.event import Event
from kit.wire import Kit
from tests.plan_kits import Rows, Waits, opened_plans
from tests.redis_server import RedisServer, redis

__all__ = ["redis"]
pytestmark = pytest.mark.realtime


@pytest.fixture(autouse=True)
def a_stop_that_nobody_hears_is_noticed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kit.patterns.elsewhere.SILENCE", 0.2)


@pytest.fixture(params=["over Redis", "over the store"])
def address(request: pytest.FixtureRequest) -> str | None:
    if request.param == "over the store":
        return None
    server: RedisServer = request.getfixturevalue("redis")
    return server.url


@pytest.mark.req("AS-13")
async def test_a_turn_of_another_process_is_followed_live_and_missed_in_nothing(
    tmp_path: Path, address: str | None
) -> None:
    gate = Waits()
    async with (
        opened_plans(tmp_path, gate, redis=address) as here,
        opened_plans(tmp_path, Rows(), redis=address) as there,
    ):
        turn = here.ask("the best three", here.session("s"))
        await gate.at_work.wait()
        stranger = there.join(turn.id, Principal(tenant_id="acme", user_id="mallory"))
        with pytest.raises(ResumeError):
            await stranger
        assert list(stranger.events) == []
        joined = there.join(turn.id, here.session("s").principal)
        seen: list[Event] = []
        async for event in joined:
            seen.append(event)
            if event.kind == "agent_started" and not gate.may_end.is_set():
                assert not turn.done, "it is told while it happens"
                gate.may_end.set()
        reply = await turn
        assert seen == [event async for event in turn.follow()]
        told = await joined
        assert (told.status, told.text, told.usage) == ("ok", reply.text, reply.usage)


@pytest.mark.req("AS-13", "AS-3")
async def test_a_turn_is_stopped_from_another_process(tmp_path: Path, address: str | None) -> None:
    gate = Waits()
    async with (
        opened_plans(tmp_path, gate, redis=address, lease=0.6) as here,
        opened_plans(tmp_path, Rows(), redis=address) as there,
    ):
        turn = here.ask("the best three", here.session("s"))
        await gate.at_work.wait()
        joined = there.join(turn.id, here.session("s").principal)
        joined.cancel()
        reply = await turn
        assert reply.status == "cancelled" and (await joined).status == "cancelled"
        plan = await here.store.open_documents().plans.read(
            here.session("s").principal, f"plan_{turn.id}"
        )
        assert plan is not None and (plan.status, plan.holder) == ("cancelled", None)


@pytest.mark.req("AS-13")
async def test_a_turn_whose_process_dies_ends_for_whoever_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.patterns.elsewhere.LOOK", 0.1)
    async with opened_plans(tmp_path, Rows()) as there:
        turn_id = await _left_behind(there)
        joined = there.join(turn_id, there.session("s").principal)
        with pytest.raises(ResumeError, match="ended before it had answered"):
            await joined
        assert [event async for event in joined] == []


async def _left_behind(kit: Kit) -> str:
    """Writes a running turn of a process that is gone."""
    reply = await kit.ask("the best three", kit.session("s"), "mediated")
    with kit.store.commit() as db:
        db.execute("UPDATE turns SET status = 'running', owner = 'gone'")
        db.execute("DELETE FROM logs")
        db.execute("DELETE FROM rollups")
    return reply.turn_id
