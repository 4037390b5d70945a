"""`kit worker` as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kit import open_kit
from kit.service.queued_plans import open_queued_plans
from kit.settings import Settings
from tests.plan_kits import Rows, opened_plans
from tests.planning.test_own_skills import deck
from tests.planning.test_run_executor import RUN
from tests.redis_server import RedisServer, redis, redis_server
from tests.service.hungry_worker import HUNGRY
from tests.service.servers import serving_kit

__all__ = ["deck", "redis"]
WHERE = """
import json, os

async def executor(message):
    return json.dumps({"samples": [{"sample_id": f"from process {os.getpid()}"}]})
"""


@pytest.mark.realtime
def test_a_worker_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        own = {"KIT_STORE": str(tmp_path / "kit.db"), "KIT_REDIS": server.url}
        command = [sys.executable, "-m", "kit", "worker"]
        with subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE) as worker:
            try:
                assert worker.stderr is not None
                assert any(line == b"working\n" for line in worker.stderr)
                # The queue is listened to by then.
                while not server.keys("streaq:*"):
                    time.sleep(0.05)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(60) == 0
            finally:
                worker.kill()


@pytest.mark.realtime
@pytest.mark.req("AS-14")
async def test_a_worker_whose_memory_is_used_up_fails_that_plan_and_goes_on_with_the_next(
    tmp_path: Path, redis: RedisServer
) -> None:
    command = [sys.executable, "-m", "tests.service.hungry_worker", str(tmp_path), redis.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None and worker.stdout.readline() == "working\n"
            async with AsyncExitStack() as stack:
                enter = stack.enter_async_context
                here = await enter(opened_plans(tmp_path, Rows(), redis=redis.url))
                queued = await enter(open_queued_plans(here.settings))
                api = await enter(serving_kit(here, queued_plans=queued))
                failed = (await api.run(f"find {HUNGRY}")).json()
                assert failed["status"] == "failed"
                assert failed["failure"]["reason"]
                assert "MemoryError" not in failed["response"]
                complete = (await api.run("find a little", session="s2")).json()
                assert complete["status"] == "ok"
            assert worker.poll() is None, "the same process has done both"
        finally:
            worker.kill()


@pytest.mark.realtime
async def test_a_worker_has_an_agent_of_ones_own_carry_out_a_plan(
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
        command = [sys.executable, "-m", "kit", "worker"]
        with subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE) as worker:
            try:
                async with (
                    open_kit(settings) as kit,
                    open_queued_plans(settings) as queued,
                    serving_kit(kit, pattern="plan_execute", queued_plans=queued) as api,
                ):
                    result = (await api.run("List the samples of maize")).json()
                assert result["status"] == "ok", result
                assert f"from process {worker.pid}" in result["response"]
            finally:
                worker.kill()
