"""A plan whose process is killed at one of its points, and taken up again.

A point is a statement of SQLite that is about to run, and a moment before, in and after each call
of the service. Each run is a fork of a process that has no loop, thread, client or connection yet.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.patterns.plan_execute import resumed
from kit.planning.plan import OVER
from kit.runtime.turn import run_turn
from kit.tools.skill import Fence, SkillManifest, SkillResult, SkillSummary
from tests.forks import exit_code
from tests.kits import ALICE, driver_of
from tests.plan_kits import PlanKit, draft, manifest, plan_kit, row_result

TASKS = tuple(f"Do part {number}." for number in range(1, 7))
LEASE = 0.1
TURN, PLAN = "kills", "plan_kills"


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
    async def step(self, allowed: Collection[str], fence: Fence) -> AsyncGenerator["Service"]:
        self.points.reach()
        yield self
        self.points.reach()

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        """Acts, unless it honours keys and has done so for this one."""
        self.points.reach()
        if not (self.manifest.honours_keys and idempotency_key in self.calls()):
            with self.log.open("a") as log:
                log.write(f"{idempotency_key}\n")
        self.points.reach()
        result = row_result(skill, arguments["task"])
        self.points.reach()
        return result

    def calls(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


def open_plan(folder: Path, points: Points, honours_keys: bool) -> tuple[PlanKit, Service]:
    """Opens the kit of a plan whose executors call the service once a step, and write what it gave."""
    service = Service(folder / "calls.log", points, honours_keys=honours_keys)
    kit = plan_kit(folder, draft(*TASKS), doing=None, skills=service, lease=LEASE)
    driver_of(kit.store).set_trace_callback(points.reach)
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
            "holder": plan.holder,
            "answered": all(task.rstrip(".") in text for task in TASKS) or not text,
            "error": error,
            "seconds": time.monotonic() - began,
        }

    return asyncio.run(scene())


def in_fork(
    work: Callable[..., dict[str, Any]], folder: Path, *arguments: Any
) -> dict[str, Any] | None:
    """Runs work over a folder in a fork and returns its report; None where it was killed. Raises
    where it failed or hung."""
    code = exit_code(write_report, work, folder, *arguments)
    if code == -signal.SIGKILL:
        return None
    assert code == 0, "the fork failed; its error stands above"
    return json.loads((folder / "report.json").read_text())


def write_report(work: Callable[..., dict[str, Any]], folder: Path, *arguments: Any) -> None:
    (folder / "report.json").write_text(json.dumps(work(folder, *arguments)))


def faults(report: dict[str, Any], honours_keys: bool) -> list[str]:
    """Returns which promises a report breaks; a plan over a service that honours no keys may also end uncertain."""
    counts = [count for _, count in report["calls"]]
    common = {
        "no file is left": report["files"] == 0,
        "nobody holds it": report["holder"] is None,
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
    """Kills a plan at a point and takes it up; returns whether the point was reached, how the plan
    ended, what was broken."""
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    try:
        killed = in_fork(run, folder, point, honours_keys) is None
        report = in_fork(resume, folder, honours_keys)
        assert report is not None
        return killed, report["status"], faults(report, honours_keys)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def points_of_a_plan(honours_keys: bool = True) -> int:
    """Returns how many points a plan has that nobody kills."""
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    try:
        report = in_fork(run, folder, 0, honours_keys)
        assert report is not None
        return report["points"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
