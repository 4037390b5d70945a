"""`kit worker` as a process of its own."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kit import open_kit
from kit.service.queued_plans import open_queued_plans
from kit.settings import Settings
from tests.cli.test_cli import type_command
from tests.forks import started
from tests.plan_kits import Rows, opened_plans
from tests.planning.test_own_skills import deck
from tests.planning.test_run_executor import RUN
from tests.redis_server import RedisServer, redis, redis_server
from tests.service.hungry_worker import HUNGRY, work_with_little_memory
from tests.service.servers import serving_kit

__all__ = ["deck", "redis"]
WHERE = """
import json, os

async def executor(message):
    return json.dumps({"samples": [{"sample_id": f"from process {os.getpid()}"}]})
"""


@pytest.mark.realtime
@pytest.mark.req("AS-14")
async def test_a_worker_whose_memory_is_used_up_fails_that_plan_and_goes_on_with_the_next(
    tmp_path: Path, redis: RedisServer
) -> None:
    worker = started(work_with_little_memory, tmp_path, redis.url)
    try:
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            here = await enter(opened_plans(tmp_path, Rows(), redis=redis.url))
            queued = await enter(open_queued_plans(here.settings))
            api = await enter(serving_kit(here, queued_plans=queued))
            failed = (await api.run(f"find {HUNGRY}")).json()
            assert failed["status"] == "failed"
            assert failed["failure"]["reason"] and failed["failure"]["completed_steps"] == []
            assert failed["failure"]["last_failure"]["step"] == 1
            assert "MemoryError" not in failed["response"]
            complete = (await api.run("find a little", session="s2")).json()
            assert complete["status"] == "ok"
        assert worker.is_alive(), "the same process has done both"
    finally:
        worker.kill()
        worker.join()


@pytest.mark.realtime
async def test_a_worker_has_an_agent_of_ones_own_carry_out_a_plan_and_ends_when_it_is_told_to(
    deck: Path, tmp_path: Path
) -> None:
    (deck / "executor.yaml").write_text(RUN.format("./agents.py:executor"))
    (deck / "agents.py").write_text(WHERE)
    with redis_server(tmp_path) as server:
        settings = Settings(
            deck=deck,
            store=str(tmp_path / "kit.db"),
            redis=server.url,
            model="offline",
            pace=0,
            variables={"PATH": os.environ["PATH"]},
        )
        own = {
            "KIT_DECK": str(deck),
            "KIT_STORE": str(settings.store),
            "KIT_REDIS": server.url,
            "KIT_MODEL": "offline",
        }
        worker = started(type_command, ("worker",), {**os.environ, **own}, tmp_path)
        try:
            async with (
                open_kit(settings) as kit,
                open_queued_plans(settings) as queued,
                serving_kit(kit, pattern="plan_execute", queued_plans=queued) as api,
            ):
                result = (await api.run("List the samples of maize")).json()
            assert result["status"] == "ok", result
            assert f"from process {worker.pid}" in result["response"]
            worker.terminate()
            await asyncio.to_thread(worker.join, 60)
            assert worker.exitcode == 0
        finally:
            worker.kill()
