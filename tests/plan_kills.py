"""A plan whose process is killed at each of its points, and taken up again: `python -m tests.plan_kills` prints the counts.

A point is a statement of SQLite that is about to run, and a moment before, in and after each call of the service. Each run is a
fork of a process that has no loop, thread, client or connection yet.
"""

import asyncio
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
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.core.value import Value
from kit.patterns.plan_execute import resumed
from kit.planning.plan import OVER
from kit.runtime.turn import run_turn
from kit.settings import HOME
from kit.tools.skill import SkillManifest, SkillResult, SkillSummary, canonical_text
from tests.kits import ALICE
from tests.plan_kits import PlanKit, draft, manifest, plan_kit

TASKS = tuple(f"Do part {number}." for number in range(1, 7))
LEASE = 0.1
TURN, PLAN = "kills", "plan_kills"
KEY = "a-key-of-a-test-0001"
ASKED = "For the two best active outlets in Oakfield: the street of each, and the desserts on the menu of each"


@dataclass
class Points:
    """Counts the points that a plan passes, and kills its process at one of them."""

    at: int = 0
    """0 for none."""
    count: int = 0
    begun: bool = False

    def reach(self, statement: str = "") -> None:
        """Notes a point; those before the plan is first written are none of a plan."""
        self.begun = self.begun or "INTO agent_plans" in statement
        if self.begun:
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


class Service:
    """Skills whose service acts: each call it carries out is a line of its log, which outlives every process."""

    def __init__(self, log: Path, points: Points, *, honours_keys: bool):
        self.log, self.points = log, points
        self.manifest = manifest("rows", honours_keys=honours_keys)

    async def find(self, query: str) -> tuple[SkillSummary, ...]:
        return (SkillSummary(skill_name="rows", description=self.manifest.description),)

    async def load(self, name: str) -> SkillManifest:
        self.points.reach()
        return self.manifest

    @asynccontextmanager
    async def step(self, allowed: Collection[str]) -> AsyncGenerator["Service"]:
        self.points.reach()
        yield self
        self.points.reach()

    async def call(self, skill: str, arguments: Mapping[str, Any], idempotency_key: str) -> SkillResult:
        """Acts, unless it honours keys and has done so for this one."""
        self.points.reach()
        if not (self.manifest.honours_keys and idempotency_key in self.calls()):
            with self.log.open("a") as log:
                log.write(f"{idempotency_key}\n")
        self.points.reach()
        content = {"rows": [arguments["task"]]}
        text = canonical_text(content)
        self.points.reach()
        return SkillResult(skill=skill, content=content, text=text, size_bytes=len(text), input_size_bytes=0, duration_ms=0)

    def calls(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


def open_plan(folder: Path, points: Points, honours_keys: bool) -> tuple[PlanKit, Service]:
    """Opens the kit of a plan whose executors call the service once a step, and write what it gave."""
    service = Service(folder / "calls.log", points, honours_keys=honours_keys)
    kit = plan_kit(folder, draft(*TASKS), doing=None, skills=service, lease=LEASE)
    with kit.store.commit() as db:
        db.set_trace_callback(points.reach)
    return kit, service


def run(folder: Path, at: int, honours_keys: bool) -> dict[str, Any]:
    """Runs the plan and kills the process at a point; returns the number of points where it lived."""
    points = Points(at)
    kit, _ = open_plan(folder, points, honours_keys)

    async def scene() -> None:
        await run_turn("Do all six parts.", ALICE, kit, turn_id=TURN)

    asyncio.run(scene())
    return {"points": points.count}


def resume(folder: Path, honours_keys: bool) -> dict[str, Any]:
    """Takes the plan up and returns what is found when it has ended."""
    kit, service = open_plan(folder, Points(), honours_keys)
    began = time.monotonic()

    async def scene() -> dict[str, Any]:
        plans = kit.services.documents.plans
        plan = await plans.read(ALICE.principal, PLAN)
        if plan is None or plan.status not in OVER:
            reply = await run_turn("Do all six parts.", ALICE, kit, resumed(PLAN))
            text, error = reply.text, reply.events[-1].body.error  # type: ignore[union-attr]
        else:
            text, error = "", None
        plan = await plans.read(ALICE.principal, PLAN)
        assert plan is not None
        return {
            "status": plan.status,
            "steps": [step.status for step in plan.steps],
            "failure": plan.failure and plan.failure["reason"],
            "replans": plan.replan_count,
            "calls": Counter(service.calls()).most_common(),
            "files": len(list((folder / "tasks").iterdir())),
            "lease": plan.lease_owner,
            "answered": all(task.rstrip(".") in text for task in TASKS) or not text,
            "error": error,
            "seconds": time.monotonic() - began,
        }

    return asyncio.run(scene())


def in_fork(work: Callable[[], dict[str, Any]], folder: Path) -> dict[str, Any] | None:
    """Runs work in a fork of this process; None where that was killed. Raises where it failed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            (folder / "report.json").write_text(json.dumps(work()))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    assert os.waitstatus_to_exitcode(status) == 0, "the fork failed; its error stands above"
    return json.loads((folder / "report.json").read_text())


def faults(report: dict[str, Any], honours_keys: bool) -> list[str]:
    """Returns which promises a report breaks; a plan over a service that honours no keys may also end uncertain."""
    counts = [count for _, count in report["calls"]]
    common = {
        "no file is left": report["files"] == 0,
        "no lease is left": report["lease"] is None,
        "nothing planned anew": report["replans"] == 0,
        "no step ran twice": all(count == 1 for count in counts),
    }
    if not honours_keys and report["status"] == "failed":
        ends = report["failure"] == "uncertain" and report["steps"].count("uncertain") == 1
        return [promise for promise, kept in {**common, "uncertain": ends}.items() if not kept]
    promises = {
        **common,
        "complete": report["status"] == "complete" and report["steps"] == ["complete"] * len(TASKS),
        "each step ran once": counts == [1] * len(TASKS),
        "answered": report["answered"] and report["error"] is None,
    }
    return [promise for promise, kept in promises.items() if not kept]


def kill_at(point: int, honours_keys: bool = True) -> tuple[bool, str, list[str]]:
    """Kills a plan at a point and takes it up; returns whether the point was reached, how the plan ended, what was broken."""
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    try:
        killed = in_fork(lambda: run(folder, point, honours_keys), folder) is None
        report = in_fork(lambda: resume(folder, honours_keys), folder)
        assert report is not None
        return killed, report["status"], faults(report, honours_keys)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def points_of_a_plan(honours_keys: bool = True) -> int:
    """Returns how many points a plan has that nobody kills."""
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    try:
        report = in_fork(lambda: run(folder, 0, honours_keys), folder)
        assert report is not None
        return report["points"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kill_evenly(most: int, honours_keys: bool) -> int:
    """Kills plans at so many points, evenly over all there are; prints what became of them, and returns how many were broken."""
    every = points_of_a_plan(honours_keys)
    chosen = sorted({1 + every * number // most for number in range(most)})
    results = {point: kill_at(point, honours_keys) for point in chosen}
    ends = Counter(status for _, status, _ in results.values())
    broken = {point: reasons for point, (_, _, reasons) in results.items() if reasons}
    service = "honours keys" if honours_keys else "honours no keys"
    print(f"{len(TASKS)} steps over a service that {service}: {every} points", end="; ")
    print(f"{sum(killed for killed, _, _ in results.values())} of {len(chosen)} processes killed", end="; ")
    print(f"{ends['complete']} plans complete, {ends['failed']} uncertain, {len(broken)} with a broken promise", flush=True)
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
        ends = [ask_and_kill(folder / str(number), port, 2 + number * (whole.events - 4) // count) for number in range(count)]
    finally:
        service.terminate()
        service.wait()
        shutil.rmtree(folder, ignore_errors=True)
    broken = [end for end in ends if end.replace(killed=False, events=0) != whole.replace(killed=False, events=0)]
    killed = sum(end.killed for end in ends)
    print(f"{killed} of {count} whole processes killed; {count - len(broken)} plans complete, with the answer of one left alone")
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
    process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    if at is not None:
        wait_for(lambda: process.poll() is not None or counted(store) >= at)
        process.kill()
    text = process.communicate()[0]
    killed = process.returncode == -signal.SIGKILL
    if killed:
        ((plan_id,),) = rows(store, "SELECT plan_id FROM agent_plans")
        again = [sys.executable, "-m", "kit", "resume", plan_id]
        text = subprocess.run(again, env=environment, capture_output=True, text=True, check=False).stdout
    ((document,),) = rows(store, "SELECT document FROM agent_plans")
    plan = json.loads(document)
    ends = Counter(kind for (kind,) in rows(store, "SELECT event_type FROM agent_events"))
    steps = [(step["status"], ends[f"step_{step['step_index']}.complete"] <= 1) for step in plan["steps"]]
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
    numbers = [*map(int, sys.argv[1:]), *(300, 30, 12)[len(sys.argv) - 1 :]]
    sys.exit(any([kill_evenly(numbers[0], True), kill_evenly(numbers[1], False), kill_processes(numbers[2])]))
