"""Plans over HTTP: what is told of them, and how their user stops them, answers and lets them go on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.plan_kits import Rows, Waits, opened_plans
from tests.service.servers import ACME, Api, frames, serving_kit

pytestmark = pytest.mark.realtime


@asynccontextmanager
async def planning(folder: Path, rows: Rows, **settings: Any) -> AsyncGenerator[Api]:
    async with opened_plans(folder, rows, **settings) as kit, serving_kit(kit) as api:
        yield api


@pytest.mark.req("AS-22")
async def test_a_plan_goes_on_though_nobody_reads_it_and_after_a_stop_when_its_user_says_so(
    tmp_path: Path,
) -> None:
    rows = Waits()
    async with planning(tmp_path, rows) as api:
        api.service.turns._limits = api.service.limits.__class__(reader_seconds=0.1)
        async with api.stream("the best three") as response:
            turn_id = response.headers["x-turn-id"]
            await anext(frames(response))
        await asyncio.sleep(0.3)
        assert len(api.kit.turns) == 1
        rows.is_slow = False
        path = f"/agent/plans/plan_{turn_id}"
        for _ in range(2):
            stopped = (await api.http.post(f"{path}/cancel", headers=ACME)).json()
            assert stopped == {"plan_id": f"plan_{turn_id}", "status": "cancelled"}
        resumed = (await api.http.post(f"{path}/resume", json={}, headers=ACME)).json()
        assert (resumed["status"], resumed["plan_id"]) == ("ok", f"plan_{turn_id}")
        ended = await api.http.post(f"{path}/cancel", headers=ACME)
        assert ended.json()["status"] == "complete"
