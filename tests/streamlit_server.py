"""The app served for real, on a port of this machine."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Served:
    """A running `streamlit run app.py`."""

    url: str
    store: Path
    started: float
    ready: float
    """Seconds from start to the first answer on the health route."""
    process: "subprocess.Popen[bytes]"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(
    folder: Path,
    environment: Mapping[str, str] | None = None,
    entry: str = "app.py",
    port: int | None = None,
) -> Generator[Served]:
    """Serves the app on a free port, or this one, with a store of its own in `folder`; its output
    goes to `folder`/app.log."""
    port, store, began = port or free_port(), folder / "kit.db", time.monotonic()
    own = {
        "KIT_STORE": str(store),
        "KIT_MODEL": "offline",
        "OPENAI_API_KEY": "",
        "OPENAI_BASE_URL": "",
        "OPIK_URL_OVERRIDE": "",
    }
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        entry,
        "--server.port",
        str(port),
        "--server.headless",
        "true",
    ]
    with (folder / "app.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **own, **(environment or {})},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _await_health(url, process, folder / "app.log")
            yield Served(url, store, began, time.monotonic() - began, process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def _await_health(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"the app did not start:\n{log.read_text()[-2000:]}")
