"""What the API needs is gone for a while: it says so, and goes on by itself once that is back."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from kit.wire import open_kit
from kit.worlds.outlets.server import skill_app
from kit.worlds.outlets.skill_service import SkillService
from kit.worlds.service.serve import serving
from tests.service.servers import ACME, KEYS, TASK, chat, outlet_settings, serving_kit

pytestmark = pytest.mark.realtime


async def test_while_somebody_else_writes_the_store_what_reads_goes_on_and_what_writes_is_told_to_come_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kit.db"
    soul = {"persona": {"name": "Ada"}}
    async with chat(store=path) as api:
        first = (await api.run()).json()

        async def put_soul() -> int:
            return (await api.http.put("/agent/souls/acme", json=soul, headers=ACME)).status_code

        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            refused = asyncio.create_task(
                api.http.put("/agent/souls/acme", json=soul, headers=ACME)
            )
            turns = await api.http.get("/agent/sessions/s1/turns", headers=ACME)
            assert turns.json()["turns"][0]["turn_id"] == first["turn_id"]
            assert (await api.http.get("/agent/plans", headers=ACME)).status_code == 200
            assert (await api.http.get("/ready")).status_code == 200
            # Neither of them waited for the one that writes.
            assert not refused.done()
            reply = await refused
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
            answered = asyncio.create_task(api.run(session="s2"))
            await asyncio.sleep(0.3)
            writer.execute("ROLLBACK")
        assert (await answered).json()["status"] == "ok"
        assert await put_soul() == 200
        assert len(api.kit.store.turns()) == 2


async def test_a_plan_whose_skill_service_is_gone_fails_and_the_next_one_finds_it_again(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        app = skill_app(SkillService(), KEYS)
        async with serving(app) as url:
            port = int(url.rpartition(":")[2])
            settings = outlet_settings(tmp_path, url)
            api = await stack.enter_async_context(
                serving_kit(await stack.enter_async_context(open_kit(settings)))
            )
            keyed = {"X-Api-Key": KEYS["acme"]}
            assert (await api.run(TASK, headers=keyed)).json()["status"] == "ok"
        gone = await api.run(TASK, headers=keyed, session="s2")
        assert (gone.status_code, gone.json()["status"]) == (200, "failed")
        assert gone.json()["response"]
        assert (await api.http.get("/ready")).status_code == 200
        async with serving(skill_app(SkillService(), KEYS), port=port):
            assert (await api.run(TASK, headers=keyed, session="s3")).json()["status"] == "ok"
