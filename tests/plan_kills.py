"""A plan whose process is killed at each of its points, and taken up again: `python -m tests.plan_kills` prints the counts.

A point is a statement of SQLite that is about to run, and a moment before, in and after each call of the service. Each run is a
fork of a process that has no loop, thread, client or connection yet.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.patterns.plan_execute import resumed
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.runtime.turn import run_turn
from tests.kits import ALICE
from tests.plan_kits import PlanKit, draft, plan_kit

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
    """A skill service that acts: each call it carries out is a line of its log, which outlives every process."""

    def __init__(self, log: Path, points: Points):
        self.log, self.points = log, points

    def act(self, key: str) -> None:
        """Acts, unless it has done so for this key."""
        self.points.reach()
        if key not in self.calls():
            with self.log.open("a") as log:
                log.write(f"{key}\n")
        self.points.reach()

    def calls(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


def open_plan(folder: Path, points: Points) -> tuple[PlanKit, Service]:
    """Opens the kit of a plan whose steps act once, put something into a file, and write their output."""
    service = Service(folder / "calls.log", points)

    async def acts(scope: StepScope, services: PlanServices) -> None:
        points.reach()
        service.act(f"{scope.task.id}:act:1")
        points.reach()
        services.files.write(scope.task, "put away")
        await services.memory.write(scope.task, "rows", {"rows": [scope.step.task]}, scope.step.return_spec["shape"])

    kit = plan_kit(folder, draft(*TASKS), doing=acts, lease=LEASE)
    with kit.store.commit() as db:
        db.set_trace_callback(points.reach)
    return kit, service


def run(folder: Path, at: int) -> dict[str, Any]:
    """Runs the plan and kills the process at a point; returns the number of points where it lived."""
    points = Points(at)
    kit, _ = open_plan(folder, points)

    async def scene() -> None:
        await run_turn("Do all six parts.", ALICE, kit, turn_id=TURN)

    asyncio.run(scene())
    return {"points": points.count}


def resume(folder: Path) -> dict[str, Any]:
    """Takes the plan up and returns what is found when it has ended."""
    kit, service = open_plan(folder, Points())
    began = time.monotonic()

    async def scene() -> dict[str, Any]:
        plans = kit.services.documents.plans
        plan = await plans.read(ALICE.principal, PLAN)
        if plan is None or plan.status != "complete":
            reply = await run_turn("Do all six parts.", ALICE, kit, resumed(PLAN))
            text, error = reply.text, reply.events[-1].body.error  # type: ignore[union-attr]
        else:
            text, error = "", None
        plan = await plans.read(ALICE.principal, PLAN)
        assert plan is not None
        return {
            "status": plan.status,
            "steps": [step.status for step in plan.steps],
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


def faults(report: dict[str, Any]) -> list[str]:
    """Returns which promises a report breaks."""
    promises = {
        "complete": report["status"] == "complete" and report["steps"] == ["complete"] * len(TASKS),
        "each step ran once": [count for _, count in report["calls"]] == [1] * len(TASKS),
        "nothing planned anew": report["replans"] == 0,
        "no file is left": report["files"] == 0,
        "no lease is left": report["lease"] is None,
        "answered": report["answered"] and report["error"] is None,
    }
    return [promise for promise, kept in promises.items() if not kept]


def kill_at(point: int) -> tuple[bool, list[str]]:
    """Kills a plan at a point and takes it up; returns whether the point was reached, and what was broken."""
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    try:
        killed = in_fork(lambda: run(folder, point), folder) is None
        report = in_fork(lambda: resume(folder), folder)
        assert report is not None
        return killed, faults(report)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def points_of_a_plan() -> int:
    """Returns how many points a plan has that nobody kills."""
    folder = Path(tempfile.mkdtemp(prefix="plan-kill-"))
    try:
        report = in_fork(lambda: run(folder, 0), folder)
        assert report is not None
        return report["points"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(most: int = 300) -> int:
    """Kills plans at as many points, evenly over all there are, and prints what became of them."""
    every = points_of_a_plan()
    step = max(1, every / most)
    chosen = sorted({1 + int(step * number) for number in range(most)} & set(range(1, every + 1)))
    results = {point: kill_at(point) for point in chosen}
    broken = {point: reasons for point, (_, reasons) in results.items() if reasons}
    reached = sum(killed for killed, _ in results.values())
    print(f"a plan of {len(TASKS)} steps has {every} points; {reached} of {len(chosen)} processes were killed")
    whole = len(chosen) - len(broken)
    print(f"{whole} plans complete after resume, each step ran once, no lease and no file left; {len(broken)} broken")
    for point, reasons in broken.items():
        print(f"  point {point}: {', '.join(reasons)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
