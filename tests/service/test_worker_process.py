"""`kit worker` as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.redis_server import redis_server


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
