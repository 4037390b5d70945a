"""Plans whose process is killed at each of their points, and taken up again: `python -m
tests.plan_kills` prints the counts."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from kit.core.value import Value
from kit.settings import HOME
from tests.plan_points import TASKS, kill_at, points_of_a_plan

KEY = "a-key-of-a-test-0001"
ASKED = "For the two best active outlets in Oakfield: the street of each, and the desserts on the menu of each"


def kill_evenly(most: int, honours_keys: bool) -> int:
    """Kills plans at so many points, evenly over all there are; prints what became of them, and
    returns how many were broken."""
    every = points_of_a_plan(honours_keys)
    most = min(most, every)
    chosen = sorted({1 + every * number // most for number in range(most)})
    results = {point: kill_at(point, honours_keys) for point in chosen}
    ends = Counter(status for _, status, _ in results.values())
    broken = {point: reasons for point, (_, _, reasons) in results.items() if reasons}
    service = "honours keys" if honours_keys else "honours no keys"
    print(f"{len(TASKS)} steps over a service that {service}: {every} points", end="; ")
    print(
        f"{sum(killed for killed, _, _ in results.values())} of {len(chosen)} processes killed",
        end="; ",
    )
    print(
        f"{ends['complete']} plans complete, {ends['failed']} uncertain, {len(broken)} with a broken promise",
        flush=True,
    )
    for point, reasons in broken.items():
        print(f"  point {point}: {', '.join(reasons)}")
    return len(broken)


def kill_processes(count: int) -> int:
    """Kills `kit ask` so many times, each at another event of its plan, over a service in a process of its own.

    Prints what became of the plans, and returns how many broke a promise.
    """
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    keys = {"SKILL_SERVICE_KEYS": f"acme={KEY}", "SKILL_SERVICE_LOG": str(folder / "calls.log")}
    command = [sys.executable, "-m", "kit.worlds.outlets", "--port", str(port := free_port())]
    service = subprocess.Popen(command, env={**os.environ, **keys}, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None)
        whole = ask_and_kill(folder / "whole", port, None)
        ends = [
            ask_and_kill(folder / str(number), port, 2 + number * (whole.events - 4) // count)
            for number in range(count)
        ]
    finally:
        service.terminate()
        service.wait()
        shutil.rmtree(folder, ignore_errors=True)
    broken = [
        end
        for end in ends
        if end.replace(killed=False, events=0) != whole.replace(killed=False, events=0)
    ]
    killed = sum(end.killed for end in ends)
    print(
        f"{killed} of {count} whole processes killed; {count - len(broken)} plans complete, with "
        f"the answer of one left alone"
    )
    for end in broken:
        print(f"  {end}")
    return len(broken)


class End(Value):
    """What is found of a plan that has ended."""

    killed: bool
    events: int
    status: str
    steps: tuple[str, ...]
    """States of the steps, each with how often it became complete."""
    answer: str
    files: int


def ask_and_kill(folder: Path, port: int, at: int | None) -> End:
    """Asks for a plan in a process, kills that once so many events are stored, and takes the plan up in another."""
    (folder / "tmp").mkdir(parents=True)
    store = folder / "kit.db"
    variables = {
        "KIT_DECK": str(HOME / "cards" / "outlets"),
        "KIT_STORE": str(store),
        "KIT_MODEL": "offline",
        "TMPDIR": str(folder / "tmp"),
        "SKILL_SERVICE_URL": f"http://127.0.0.1:{port}/api/acme",
        "SKILL_SERVICE_KEY": KEY,
    }
    environment, pipe = {**os.environ, **variables}, subprocess.PIPE
    command = [sys.executable, "-m", "kit", "ask", "--pattern", "plan_execute", ASKED]
    process = subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )
    if at is not None:
        wait_for(lambda: process.poll() is not None or counted(store) >= at)
        process.kill()
    text = process.communicate()[0]
    killed = process.returncode == -signal.SIGKILL
    if killed:
        ((plan_id,),) = rows(store, "SELECT plan_id FROM agent_plans")
        again = [sys.executable, "-m", "kit", "resume", plan_id]
        text = subprocess.run(
            again, env=environment, capture_output=True, text=True, check=False
        ).stdout
    ((document,),) = rows(store, "SELECT document FROM agent_plans")
    plan = json.loads(document)
    ends = Counter(kind for (kind,) in rows(store, "SELECT event_type FROM agent_events"))
    steps = [
        (step["status"], ends[f"step_{step['step_index']}.complete"] <= 1) for step in plan["steps"]
    ]
    return End(
        killed=killed,
        events=counted(store),
        status=plan["status"],
        steps=tuple(f"{status}, once: {once}" for status, once in steps),
        answer="\n".join(line for line in text.splitlines() if line.startswith("**Step")),
        files=sum(1 for path in (folder / "tmp").rglob("tmp_*") if path.is_file()),
    )


def rows(store: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(store)) as db:
        return db.execute(sql).fetchall()


def counted(store: Path) -> int:
    """Returns how many events of plans are stored so far."""
    try:
        return rows(store, "SELECT count(*) FROM agent_events")[0][0] if store.exists() else 0
    except sqlite3.Error:
        return 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError):
            if holds():
                return
        time.sleep(0.005)
    raise TimeoutError("it did not come to that")


if __name__ == "__main__":
    every_point = 1_000_000  # more than there are
    numbers = [*map(int, sys.argv[1:]), *(every_point, every_point, 12)[len(sys.argv) - 1 :]]
    sys.exit(
        any(
            [
                kill_evenly(numbers[0], True),
                kill_evenly(numbers[1], False),
                kill_processes(numbers[2]),
            ]
        )
    )
