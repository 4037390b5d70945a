"""Plans of drawn tasks, run in virtual time and in two processes; what a shard of them does depends
on its seed alone."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from kit.metrics.plan_health import PlanHealth, counts_of, plan_health
from kit.planning.draft import Draft, DraftStep
from kit.planning.planner import SUBMIT
from kit.planning.scope import PlannerScope, planner_scope
from kit.planning.services import PlanServices, PlanTool, ToolAnswer, plan_tool, result
from kit.runtime.clock import run_virtual
from kit.tools.skill import SkillManifest
from kit.worlds.outlets.lookups import LOOKUPS
from kit.worlds.outlets.skill_service import Fault
from studies.plan_drafts import SEED, DraftFault, SimulatedPlanner, Task, stand_in
from studies.plan_kit import OutletSkills, PlanRun, plan_kit, run_task

SHARDS = 4
CALL_FAULTS: dict[Fault, float] = {"fails": 0.15, "lies": 0.08, "hangs": 0.05}
"""How often a call of a skill goes wrong, and in which way: assumptions."""
Way = Literal["verified", "taken as it is"]


class DrawnRun(NamedTuple):
    """The plan of one case."""

    case: int
    task: Task
    run: PlanRun

    @property
    def right(self) -> bool:
        """Complete, and each step of the task's own plan left what it should."""
        return (
            self.run.plan.status == "complete"
            and self.run.outputs.items() >= self.task.outputs.items()
        )


class DraftRun(NamedTuple):
    """What came of one spoiled draft in one way; a list of them is a tidy frame."""

    way: Way
    case: int
    fault: DraftFault
    """Of the first draft."""
    steps: int
    """Runs of executors."""
    in_vain: int
    """Those that left nothing which the task's own plan has as well."""
    skill_calls: int
    model_calls: int
    seconds: float
    """Virtual ones."""
    complete: bool
    right: bool
    wrong: bool
    """Complete, and not right: nobody is told."""


async def play_plans(
    tasks: Sequence[Task], count: int = 500, spoiled: float = 0.1
) -> list[DrawnRun]:
    """Plays `count` plans of drawn tasks over skills whose calls go wrong as CALL_FAULTS says.

    `spoiled`: how often a draft has a fault; all drafts are verified.
    """
    return await _in_shards(partial(_plans, tasks, spoiled), count)


async def play_drafts(tasks: Sequence[Task], count: int = 80, again: float = 0.2) -> list[DraftRun]:
    """Plays `count` plans whose first draft has a fault, each of them verified and taken as it is;
    skills do what they should.

    `again`: how often a later draft has a fault, whatever it was written for.
    """
    return await _in_shards(partial(_drafts, tasks, again), count)


def health_of(runs: Sequence[DrawnRun]) -> PlanHealth:
    """The health of plans, by type of task."""
    plans = [one.run.plan.replace(task_type=one.task.kind) for one in runs]
    return plan_health(counts_of(plans, [event for one in runs for event in one.run.events]))


async def _in_shards(play: Any, count: int) -> list[Any]:
    """Plays shards of cases in two processes, and returns what they gave in the order of the cases."""
    shards = [
        range(count * shard // SHARDS, count * (shard + 1) // SHARDS) for shard in range(SHARDS)
    ]

    def work() -> list[Any]:
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            return list(chain.from_iterable(pool.map(play, shards)))

    return await asyncio.to_thread(work)


def _plans(tasks: Sequence[Task], spoiled: float, cases: range) -> list[DrawnRun]:
    rng = Random(f"{SEED} calls {cases.start}")
    kinds, chances = [*CALL_FAULTS, "none"], [*CALL_FAULTS.values(), 1 - sum(CALL_FAULTS.values())]
    skills = OutletSkills(
        {skill: rng.choices(kinds, chances, k=50 * len(cases)) for skill in sorted(LOOKUPS)}  # type: ignore
    )
    return run_virtual(_play(tasks, cases, skills, SimulatedPlanner(spoiled, spoiled), "verified"))


def _drafts(tasks: Sequence[Task], again: float, cases: range) -> list[DraftRun]:
    planner = SimulatedPlanner(1.0, again)
    ways: tuple[Way, ...] = ("verified", "taken as it is")
    return [
        _draft_run(way, one, planner)
        for way in ways
        for one in run_virtual(_play(tasks, cases, OutletSkills(), planner, way))
    ]


async def _play(
    tasks: Sequence[Task], cases: range, skills: OutletSkills, planner: SimulatedPlanner, way: Way
) -> list[DrawnRun]:
    runs: list[DrawnRun] = []
    with tempfile.TemporaryDirectory() as folder:
        tools = {} if way == "verified" else {SUBMIT: submit_as_it_is}
        kit = plan_kit(Path(folder), skills, planner.model(), stand_in(), tools)
        for case in cases:
            [task] = Random(f"{SEED} task {case}").choices(
                tasks, [1 / len(task.steps) for task in tasks]
            )
            planner.begin(task, str(case))
            runs.append(DrawnRun(case, task, await run_task(kit, task.text, f"case {case}")))
    return runs


def submit_as_it_is(services: PlanServices) -> PlanTool:
    """Makes a submit_plan that takes every draft; of a skill that nobody has loaded it believes what the draft says."""

    async def submit(scope: PlannerScope, arguments: Mapping[str, Any]) -> ToolAnswer:
        steps = arguments.get("steps", ())
        scope.result = Draft(steps=tuple(DraftStep.model_validate(step) for step in steps))
        for name in {
            skill for step in scope.result.steps for skill in step.skills
        } - scope.manifests.keys():
            scope.manifests[name] = _imagined(name).model_dump(mode="json")
        return result("The plan is taken.")

    return plan_tool(
        services,
        SUBMIT,
        "Hand in the plan.",
        properties={"steps": {"type": "array"}},
        required=("steps",),
        current_scope=planner_scope,
        call=submit,
    )


def _imagined(name: str) -> SkillManifest:
    some = {"type": "object"}
    words: Any = {"description": name, "capabilities": (), "limitations": (), "endpoint": name}
    return SkillManifest(
        id=name,
        input_schema=some,
        output_schema=some,
        execution_mode="sync",
        idempotent=True,
        **words,
    )


def _draft_run(way: Way, one: DrawnRun, planner: SimulatedPlanner) -> DraftRun:
    kinds = [event.event_type for event in one.run.events]
    steps = sum(kind.startswith("step_") and kind.endswith(".started") for kind in kinds)
    useful = sum(
        one.run.outputs.get(number) == output for number, output in one.task.outputs.items()
    )
    fault, plan = planner.fault(str(one.case), 0), one.run.plan
    assert fault is not None and plan.completed_at is not None
    return DraftRun(
        way=way,
        case=one.case,
        fault=fault,
        steps=steps,
        in_vain=steps - useful,
        skill_calls=kinds.count("skill.called"),
        model_calls=one.run.model_calls,
        seconds=plan.completed_at - plan.created_at,
        complete=plan.status == "complete",
        right=one.right,
        wrong=plan.status == "complete" and not one.right,
    )
