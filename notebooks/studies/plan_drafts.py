"""Drafts of plans that a seed spoils: tasks with a plan that holds, and a simulated planner who
hands in others before it."""

import asyncio
import json
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from kit.models.offline.executor import executor_turn
from kit.models.offline.model import OfflineModel
from kit.models.scripted import Line, ScriptedModel
from kit.models.seeded_draws import draws
from kit.planning.draft import MOST_STEPS
from kit.planning.planner import LOAD, SUBMIT
from kit.runtime.clock import run_virtual
from kit.worlds.outlets.rows import CITIES, CUISINES
from studies.plan_kit import OutletSkills, plan_examples, plan_kit, run_task

SEED = 7
MODEL_SECONDS = 1.45
"""Of each model call: the published mean of a small model. That it never varies is an assumption."""
DraftFault = Literal["eleven steps", "unknown skill", "unmet return_spec", "circular input"]
FAULTS: tuple[DraftFault, ...] = get_args(DraftFault)
KINDS = {
    "rank": "Rank the active {food} outlets in {city} by how they did in the last 8 weeks",
    "streets": "For the two best active {food} outlets in {city}: the street of each",
    "desserts": "For the two best active {food} outlets in {city}: the street of each, and the "
    "desserts on the menu of each",
}
"""Type of task -> its words."""


class Task(NamedTuple):
    """A task, the plan that does it, and what the steps of that leave."""

    kind: str
    text: str
    steps: tuple[Mapping[str, Any], ...]
    outputs: Mapping[int, Any]


async def read_tasks(cities: Iterable[str] = CITIES[:4]) -> list[Task]:
    """Has the offline stand-in plan and carry out each kind of task in each city, with nothing going wrong."""
    return await asyncio.to_thread(run_virtual, _read_tasks(tuple(cities)))


async def _read_tasks(cities: Sequence[str]) -> list[Task]:
    tasks: list[Task] = []
    planner = OfflineModel(pace=0.0, think=0.0, plan_examples=plan_examples())
    with tempfile.TemporaryDirectory() as folder:
        kit = plan_kit(Path(folder), OutletSkills(), planner, stand_in())
        for kind, (city, food) in product(KINDS, zip(cities, CUISINES, strict=False)):
            text = KINDS[kind].format(city=city, food=food)
            run = await run_task(kit, text, text)
            fields = {"task", "skills", "return_spec", "input_from_step"}
            steps = tuple(
                {"step": step.step_index, **step.model_dump(include=fields)}
                for step in run.plan.steps
            )
            assert run.plan.status == "complete" and not run.plan.replan_count
            tasks.append(Task(kind, text, steps, run.outputs))
    return tasks


def stand_in() -> ScriptedModel:
    """The offline stand-in as an executor, at the speed of a model."""

    def turn(messages: list[BaseMessage]) -> Line:
        move = executor_turn(messages)
        return (
            Line(move, delay=MODEL_SECONDS)
            if isinstance(move, str)
            else Line(calls=move, delay=MODEL_SECONDS)
        )

    return ScriptedModel(turn)


def spoiled(
    steps: Sequence[Mapping[str, Any]], fault: DraftFault, which: float
) -> list[dict[str, Any]]:
    """The steps with a fault in one of them; `which` is an even draw from 0 to 1 that says in which."""
    draft = [dict(step) for step in steps]
    if fault == "eleven steps":
        last = draft[-1]
        return [
            *draft,
            *({**last, "step": number} for number in range(last["step"] + 1, MOST_STEPS + 2)),
        ]
    takers = (
        [step for step in draft if step["input_from_step"]] if fault == "circular input" else draft
    )
    step = (takers or draft)[int(which * len(takers or draft))]
    match fault:
        case "unknown skill":
            step["skills"] = (f"{step['skills'][0]}_plus",)
        case "unmet return_spec":
            spec = step["return_spec"]
            step["return_spec"] = {
                **spec,
                "shape": {**spec["shape"], "forecast": "array<{week: integer, orders: integer}>"},
            }
        case _:
            step["input_from_step"] = step["step"]
    return draft


class SimulatedPlanner:
    """Hands in the plan of a task, spoiled as the seed has it; when it is asked again it draws again."""

    def __init__(self, first: float, again: float, seed: int = SEED):
        """`first`: how often its first draft for a task has a fault; `again`: each later one, whoever sent it back."""
        self._first, self._again, self._seed = first, again, seed
        self._task, self._case, self._drafts = Task("", "", (), {}), "", 0

    def begin(self, task: Task, case: str) -> None:
        """Turns to another task. Drafts depend on seed, case and how many there were, and on nothing else."""
        self._task, self._case, self._drafts = task, case, 0

    def fault(self, case: str, draft: int) -> DraftFault | None:
        """What is wrong with one of the drafts for a case."""
        drawn = draws(self._seed, case, f"draft {draft}")
        chance = self._again if draft else self._first
        return FAULTS[int(drawn.choice * len(FAULTS))] if drawn.drop < chance else None

    def model(self) -> ScriptedModel:
        """It as a model."""
        return ScriptedModel(self._turn)

    def _turn(self, messages: list[BaseMessage]) -> Line:
        asked_at = max(
            at for at, message in enumerate(messages) if isinstance(message, HumanMessage)
        )
        results = [message for message in messages[asked_at:] if isinstance(message, ToolMessage)]
        if not results:
            names = sorted({skill for step in self._task.steps for skill in step["skills"]})
            return Line(calls=[(LOAD, {"skill_name": name}) for name in names], delay=MODEL_SECONDS)
        if "is taken" in str(results[-1].content):
            return Line("Handed in.", delay=MODEL_SECONDS)
        brief = json.loads(str(messages[asked_at].content).partition("\n\n")[2])
        complete = {step["step"] for step in brief.get("completed_steps", [])}
        return Line(calls=[(SUBMIT, {"steps": self._draft(complete)})], delay=MODEL_SECONDS)

    def _draft(self, complete: Collection[int]) -> list[dict[str, Any]]:
        steps = [step for step in self._task.steps if step["step"] not in complete]
        fault, which = (
            self.fault(self._case, self._drafts),
            draws(self._seed, self._case, f"place {self._drafts}").choice,
        )
        self._drafts += 1
        return spoiled(steps, fault, which) if fault and steps else [dict(step) for step in steps]
