"""The shape of a deployment on this machine: `python -m tests.stack` starts a database, the API, a worker
and the app, plays a plan and a turn through them over HTTP, says what it saw, and stops them all."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from joserfc import jwt
from joserfc.jwk import OctKey

from tests.browser.raw import raw_visitor
from tests.postgres import Server, programs
from tests.redis_server import redis_server
from tests.streamlit_server import ROOT, free_port, serve

SECRET = "what the proxy of this stack signs with"
HEADER = "X-Visitor"
TASK = "Rank the active outlets in Rivermont by how they did in the last 8 weeks"
QUESTION = "Which outlets in Oakfield earned the most"
ASKER = {"X-Tenant-Id": "acme", "X-User-Id": "ada"}
KIT = [sys.executable, "-m", "kit"]


@contextmanager
def running(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None
) -> Generator[None]:
    """Runs a process for as long as the block does; it has to end by itself when it is asked to."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
        assert process.poll() is None, (
            f"{log.stem} has ended with {process.poll()}:\n{log.read_text()[-2000:]}"
        )
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def wait_for(ready: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"{what} is not ready after {seconds:.0f} s"
        time.sleep(0.1)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def say(what: str, seen: str) -> None:
    print(f"{what:<28} {seen}", flush=True)


def start_postgres(stack: ExitStack) -> str:
    """Starts a PostgreSQL of this stack alone, and returns the URL of an empty schema in it."""
    # A folder of its own: the server runs as another user, who may not look into that of the stack.
    server = Server(Path(tempfile.mkdtemp(prefix="kit-stack-postgres-")))
    stack.callback(server.remove)
    server.make()
    return server.new_url(secret=True)


def play_plan(api: str) -> None:
    """Has the API answer a task, which the deck makes a plan of, and reads the plan afterwards."""
    body = {
        "tenant_id": ASKER["X-Tenant-Id"],
        "user_id": ASKER["X-User-Id"],
        "session_id": "over-the-api",
        "message": TASK,
    }
    result = httpx.post(f"{api}/agent/run", json=body, headers=ASKER, timeout=120).json()
    assert result["status"] == "ok", result
    plan = httpx.get(f"{api}/agent/plans/{result['plan_id']}", headers=ASKER, timeout=30).json()
    assert plan["status"] == "complete", plan
    say("plan over the API", f"{plan['status']}, {len(plan['steps'])} steps, {plan['plan_id']}")
    say("its answer", result["response"][:60].replace("\n", " "))


def play_turn(app: str) -> None:
    """Asks in the chat as somebody whom the proxy knows, and reads the turn on the page Traces."""
    with raw_visitor(app) as nobody:
        nobody.run()
        assert "Nobody is signed in" in nobody.text
    say("the app, without a token", "refused")
    claims = {"sub": ASKER["X-User-Id"], "exp": int(time.time()) + 600}
    token = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET))
    with raw_visitor(app, {HEADER: token}) as ada:
        ada.run()
        ada.run(QUESTION)
        assert QUESTION in ada.text
    with raw_visitor(app, {HEADER: token}) as ada:
        ada.run(page="traces")
        # The plan of the API is this user's as well, and stands in the same store.
        assert "2 of 2 turns" in ada.text, ada.text[-3000:]
    say("turn in the chat", "asked, answered, and on the page Traces")


def turn_lines(log: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for line in log.read_text().splitlines():
        if line.startswith('{"time"'):
            lines.append(json.loads(line))
    return lines


def main() -> int:
    """Starts, plays and stops the stack."""
    with tempfile.TemporaryDirectory(prefix="kit-stack-") as name, ExitStack() as stack:
        folder = Path(name)
        environment = {
            "KIT_DECK": "cards/outlets",
            "KIT_MODEL": "offline",
            "KIT_PACE": "0.1",
            "KIT_TENANT": ASKER["X-Tenant-Id"],
            "KIT_STORE": str(folder / "kit.db"),
            "KIT_SEAL_KEY": secrets.token_hex(32),
            "KIT_TURN_LINES": "1",
        }
        if programs() is not None:
            environment["KIT_STORE"] = start_postgres(stack)
            say("postgresql", environment["KIT_STORE"].rpartition("@")[2])
        if shutil.which("redis-server") is not None:
            environment["KIT_REDIS"] = stack.enter_context(redis_server(folder)).url
            say("redis", environment["KIT_REDIS"])
        port = free_port()
        api = f"http://127.0.0.1:{port}"
        stack.enter_context(
            running([*KIT, "serve", "--port", str(port)], folder / "api.log", environment)
        )
        wait_for(lambda: answers(f"{api}/ready"), "the API")
        say("api", api)
        if "KIT_REDIS" in environment:
            log = folder / "worker.log"
            stack.enter_context(running([*KIT, "worker"], log, environment))
            wait_for(lambda: "working" in log.read_text(), "the worker")
            say("worker", "working")
        visitor = {"KIT_VISITOR": f"header:{HEADER}", "KIT_VISITOR_KEY": SECRET}
        app = stack.enter_context(serve(folder, {**environment, **visitor}))
        say("app", app.url)
        play_plan(api)
        play_turn(app.url)
        for log in sorted(folder.glob("*.log")):
            for line in turn_lines(log):
                say(
                    f"line of {log.stem}", f"{line['pattern']} {line['status']} {line['seconds']} s"
                )
    say("stopped", "all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
