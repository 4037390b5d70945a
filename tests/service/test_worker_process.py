"""`kit worker` as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kit.service.queued_plans import open_queued_plans
from tests.plan_kits import Rows, opened_plans
from tests.redis_server import RedisServer, redis, redis_server
from tests.service.hungry_worker import HUNGRY
from tests.service.servers import serving_kit

__all__ = ["redis"]


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
