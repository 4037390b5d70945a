"""Plans over HTTP: what is told of them, and how their user stops them, answers and lets them go on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.core.documents.document import Soul
from kit.tools.skill import SkillResult
from kit.tools.tool import ToolLimits
from tests.plan_kits import Rows, Waits, opened_plans
from tests.service.servers import ACME, Api, frames, serving_kit

pytestmark = pytest.mark.realtime


@asynccontextmanager
async def planning(folder: Path, rows: Rows, **settings: Any) -> AsyncGenerator[Api]:
    async with opened_plans(folder, rows, **settings) as kit, serving_kit(kit) as api:
        yield api


@pytest.mark.req("AS-22", "AS-23")
async def test_a_plan_that_fails_is_answered_with_its_failure(tmp_path: Path) -> None:
    class Broken(Rows):
        async def call(self, *arguments: Any, **fields: Any) -> SkillResult:
            raise OSError("E_BROKEN")

    async with planning(tmp_path, Broken(idempotent=True)) as api:
        response = await api.run("the best three")
    assert response.status_code == 200
    failure = response.json()["failure"]
    assert failure["status"] == "failed" and failure["completed_steps"] == []
    assert failure["reason"] == "max replan attempts reached"
    assert failure["last_failure"]["step"] == 1 and failure["last_failure"]["reason"]


@pytest.mark.req("AS-22")
async def test_a_plan_that_its_user_stops_goes_on_when_they_say_so(tmp_path: Path) -> None:
    rows = Waits()
    async with planning(tmp_path, rows) as api:
        asked = asyncio.create_task(api.run("the best three"))
        await rows.at_work.wait()
        (listed,) = (await api.http.get("/agent/plans", headers=ACME)).json()["plans"]
        path = f"/agent/plans/{listed['plan_id']}"
        stopped = await api.http.post(f"{path}/cancel", headers=ACME)
        assert stopped.json() == {"plan_id": listed["plan_id"], "status": "cancelled"}
        assert (await asked).json()["status"] == "cancelled"
        assert (await api.http.post(f"{path}/cancel", headers=ACME)).json()["status"] == "cancelled"
        rows.is_slow = False
        resumed = await api.http.post(f"{path}/resume", json={}, headers=ACME)
        assert resumed.json()["status"] == "ok" and resumed.json()["plan_id"] == listed["plan_id"]
        assert (await api.http.post(f"{path}/cancel", headers=ACME)).json()["status"] == "complete"


@pytest.mark.req("AS-22")
async def test_a_plan_goes_on_though_nobody_reads_it(tmp_path: Path) -> None:
    rows = Waits()
    async with planning(tmp_path, rows) as api:
        api.service.turns._limits = api.service.limits.__class__(reader_seconds=0.1)
        async with api.stream("the best three") as response:
            turn_id = response.headers["x-turn-id"]
            await anext(frames(response))
        await asyncio.sleep(0.5)
        assert len(api.kit.turns) == 1
        rows.is_slow = False
        path = f"/agent/plans/plan_{turn_id}"
        await api.http.post(f"{path}/cancel", headers=ACME)
        await api.http.post(f"{path}/resume", json={}, headers=ACME)
        assert (await api.http.get(path, headers=ACME)).json()["status"] == "complete"


@pytest.mark.req("AS-22", "K-12")
async def test_a_plan_that_asks_its_user_waits_for_the_answer(tmp_path: Path) -> None:
    confirm = {"call_skill": ToolLimits(confirm="Call {skill}?")}
    rows = Rows()
    async with planning(tmp_path, rows, tool_limits=confirm) as api:
        asked = (await api.run("the best three")).json()
        assert asked["status"] == "paused" and list(asked["questions"].values()) == ["Call rows?"]
        path = f"/agent/plans/{asked['plan_id']}"
        assert (await api.http.get(path, headers=ACME)).json()["status"] == "paused"
        early = await api.http.post(f"{path}/resume", json={}, headers=ACME)
        assert early.status_code == 409 and "waits for an answer" in early.json()["detail"]
        answers = dict.fromkeys(asked["questions"], True)
        second = await api.http.post(f"{path}/answer", json={"answers": answers}, headers=ACME)
        assert second.json()["status"] == "paused" and len(rows.tasks) == 1
        last = await api.http.post(f"{path}/answer", json={"answers": True}, headers=ACME)
        assert last.json()["status"] == "ok" and len(rows.tasks) == 2


@pytest.mark.req("AS-17", "AS-22")
async def test_a_soul_that_is_put_is_that_of_the_next_turn(tmp_path: Path) -> None:
    async with planning(tmp_path, Rows(idempotent=True)) as api:
        put = {"persona": {"name": "Ada", "tone": "dry"}, "policies": {"prices": "in euros"}}
        reply = await api.http.put("/agent/souls/acme", json=put, headers=ACME)
        soul = Soul.model_validate(reply.json())
        assert (soul.persona.name, soul.policies) == ("Ada", {"prices": "in euros"})
        own = {"user_id": "alice", "persona": {"tone": "warm"}}
        assert (await api.http.put("/agent/souls/acme", json=own, headers=ACME)).status_code == 200
        other = {**own, "user_id": "bob"}
        assert (
            await api.http.put("/agent/souls/acme", json=other, headers=ACME)
        ).status_code == 400
        result = (await api.run("the best three")).json()
        session = api.kit.session("s1", "acme", "alice")
        log = str(api.kit.store.events(result["turn_id"], session.principal))
        with_souls = api.kit.store.with_souls(session)
        assert "You are called Ada." in with_souls.tenant_persona and "warm" in with_souls.persona
        assert "warm" in log
