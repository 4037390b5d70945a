"""One plan twice, undisturbed and over skills that fail by a script: when its steps ran, and what each run came to."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from kit.runtime.clock import run_virtual
from kit.worlds.outlets.skill_service import Fault
from studies.plan_drafts import SimulatedPlanner, Task, stand_in
from studies.plan_kit import OutletSkills, PlanRun, plan_kit, run_task


class Span(NamedTuple):
    """A stretch of time in which a plan was written, or one of its steps worked on; a list of them is a tidy frame."""

    lane: str
    start: float
    end: float
    """Virtual seconds since the plan began."""
    kind: Literal["planning", "complete", "failed"]


async def play_script(task: Task, faults: Mapping[str, Sequence[Fault]]) -> PlanRun:
    """Runs the plan of a task; `faults`: skill -> what goes wrong at its first calls."""
    return await asyncio.to_thread(run_virtual, _play_script(task, faults))


async def _play_script(task: Task, faults: Mapping[str, Sequence[Fault]]) -> PlanRun:
    planner = SimulatedPlanner(0.0, 0.0)
    planner.begin(task, "script")
    with tempfile.TemporaryDirectory() as folder:
        return await run_task(
            plan_kit(Path(folder), OutletSkills(faults), planner.model(), stand_in()),
            task.text,
            "script",
        )


def spans_of(run: PlanRun) -> Iterator[Span]:
    """When the planner and each step of a plan were at work, from its events alone."""
    starts: dict[str, float] = {}
    for event in run.events:
        at = event.ts - run.plan.created_at
        name, _, what = event.event_type.rpartition(".")
        match name, what:
            case ("subagent_a", "spawned"):
                starts["planner"] = at
            case ("plan", "persisted"):
                yield Span("planner", starts.pop("planner"), at, "planning")
            case (step, "started") if step.startswith("step_"):
                starts[step] = at
            case ("subagent", "finish") if event.agent == "executor":
                number = str(event.task_id).rpartition(".")[2]
                kind = "complete" if event.status == "complete" else "failed"
                yield Span(f"step {number}", starts.pop(f"step_{number}"), at, kind)
            case _:
                pass
