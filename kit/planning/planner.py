"""The planner: tools that find skills, read them and hand in a plan, which is verified before it
counts; and its brief."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import TypeAdapter, ValidationError

from kit.core.documents.document import PlanStep
from kit.core.errors import field_faults
from kit.core.record import Message
from kit.planning.draft import MOST_STEPS, Draft, DraftStep, Infeasible, faults
from kit.planning.scope import PlannerScope, planner_scope
from kit.planning.services import (
    REASONS,
    PlanServices,
    ToolAnswer,
    no_data,
    plan_tool,
    result,
)
from kit.tools.skill import FIND, LOAD, SkillFault

SUBMIT = "submit_plan"
PLANNER_TOOLS = (FIND, LOAD, SUBMIT)
"""Their ids."""
MOST_SKILLS = 12
"""Skills that one planner loads at most; two to six are usual."""
MOST_FOUND = 20
MOST_WORDS = 1_000
MOST_CHARACTERS = 50_000
"""Skills that it is told of at once, letters of what each says it does, and of a whole manifest: a model reads them.
The executor of a step is shown the manifests of its skills whole (`executor_query`)."""
MOST_MESSAGES = 10
"""Messages of the conversation before the task that a planner reads, the newest."""
MOST_DRAFTS = 3
"""Plans that it may hand in until one holds."""
REMINDER = (
    f"You were asked this before, and answered in words; nobody reads those. Hand in the plan by calling {SUBMIT}, "
    "or call it with the reason why there can be none as infeasible."
)
"""What a planner is told that has handed in nothing, before it is asked once more."""
LONGEST_TYPE = 40
"""Characters of what a planner calls the kind of a task."""
MOST_REASONS = 8
"""Reasons that it is told of one draft; the rest follows from them, or comes with the next."""
STEP = {
    "type": "object",
    "properties": {
        "step": {
            "type": "integer",
            "description": "Its number; steps are numbered in order.",
        },
        "task": {
            "type": "string",
            "description": "What its executor is to do, in words that stand alone.",
        },
        "skills": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of loaded skills it may call; none where it only works on the outputs of earlier "
            "steps.",
        },
        "input_from_steps": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "The earlier steps whose outputs it works on, if any. Steps that wait "
            "for nothing run at the same time.",
        },
        "return_spec": {
            "type": "object",
            "description": 'What it returns, such as {"shape": {"rows": "array<{id: string, '
            'score: number}>"}, "reason": "..."}.',
            "properties": {
                "shape": {"type": "object"},
                "reason": {"type": "string"},
                "derived": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Fields of the shape that no skill gives and the executor works out, such as a "
                    "count or a sum.",
                },
            },
            "required": ["shape", "reason"],
        },
    },
    "required": ["step", "task", "skills", "return_spec"],
}
_STEPS = TypeAdapter(tuple[DraftStep, ...])


def planner_tools(services: PlanServices) -> Mapping[str, BaseTool]:
    """Makes the tools of a planner card, by their ids. Outside of a plan each answers that it is not allowed."""

    async def find(scope: PlannerScope, arguments: dict[str, Any]) -> ToolAnswer:
        skills = await scope.skills.find(str(arguments.get("query", "")))
        _note_reach(scope, skills)
        if isinstance(skills, SkillFault):
            return no_data(skills)
        rows: list[dict[str, str]] = []
        for skill in skills[:MOST_FOUND]:
            description = skill.description[:MOST_WORDS]
            rows.append({"skill_name": skill.skill_name, "description": description})
        return result(json.dumps({"skills": rows}, ensure_ascii=False))

    async def load(scope: PlannerScope, arguments: dict[str, Any]) -> ToolAnswer:
        return await _load(scope, str(arguments.get("skill_name")))

    async def submit(scope: PlannerScope, arguments: dict[str, Any]) -> ToolAnswer:
        return _submit(scope, arguments)

    query = {"query": {"type": "string", "description": "What is to be done, in words."}}
    name = {"skill_name": {"type": "string", "description": f"A name that {FIND} gave."}}
    plan = {
        "steps": {"type": "array", "items": STEP, "description": "The plan, where there is one."},
        "task_type": {
            "type": "string",
            "description": "Of what kind the task is: one of task_types where there are any and one fits, "
            "else one to three words without names or numbers, such as rank_outlets.",
        },
        "infeasible": {
            "type": "string",
            "description": "Why no plan does the task with these skills, in place of steps.",
        },
    }
    make = partial(plan_tool, services)
    finding = "Find the skills that a task may need, the best first."
    reading = "Read one skill whole, with its input and output schema."
    handing_in = "Hand in the plan. It is verified, and sent back where it fails."
    return {
        FIND: make(FIND, finding, query, ("query",), planner_scope, find),
        LOAD: make(LOAD, reading, name, ("skill_name",), planner_scope, load),
        SUBMIT: make(SUBMIT, handing_in, plan, (), planner_scope, submit),
    }


def _note_reach(scope: PlannerScope, result: object) -> None:
    """Notes whether the service answered: a planner that finds no skills because nothing does has not
    found out that there is no plan."""
    scope.unreachable = None
    if isinstance(result, SkillFault) and REASONS[result.reason] in ("unavailable", "timeout"):
        scope.unreachable = f"{result.reason}: {result.detail}"


async def _load(scope: PlannerScope, name: str) -> ToolAnswer:
    skill = await scope.skills.load(name)
    _note_reach(scope, skill)
    if isinstance(skill, SkillFault):
        if skill.reason == "unknown_skill":
            return result(
                f"There is no skill {name!r}; load one that {FIND} gave.", "bad_arguments"
            )
        return no_data(skill)
    text = skill.model_dump_json()
    if len(text) > MOST_CHARACTERS:
        return no_data(
            SkillFault(
                skill=name, reason="oversized", detail=f"its manifest has {len(text):,} characters"
            )
        )
    # Looked at after the load, for a model asks for several at the same time.
    if len(scope.manifests) >= MOST_SKILLS and name not in scope.manifests:
        return result(f"You have loaded {MOST_SKILLS} skills; plan with those.", "not_allowed")
    scope.manifests[skill.id] = skill.model_dump(mode="json")
    return result(text)


def _submit(scope: PlannerScope, arguments: Mapping[str, Any]) -> ToolAnswer:
    """Takes a plan that holds, or that there is none; sends back every other, with the reasons."""
    if len(scope.refusals) >= MOST_DRAFTS:
        return result("No further plan is taken.", "not_allowed")
    try:
        scope.result = _read(scope, arguments)
    except ValueError as error:
        reasons = str(error)
        scope.refusals.append(reasons)
        tries = MOST_DRAFTS - len(scope.refusals)
        text = f"This plan was sent back. {reasons}. You may hand in {tries} more."
        return result(text, "bad_arguments", reasons)
    if isinstance(scope.result, Infeasible):
        return result("Noted.")
    return result("The plan holds and is taken.")


def _read(scope: PlannerScope, arguments: Mapping[str, Any]) -> Draft | Infeasible:
    """Returns what was handed in. Raises ValueError, which says why it does not hold."""
    steps = arguments.get("steps")
    infeasible = str(arguments.get("infeasible") or "").strip()
    if bool(steps) == bool(infeasible):
        raise ValueError("Give either steps, or the reason why there can be none as infeasible")
    if infeasible:
        return Infeasible(reason=infeasible)
    try:
        if isinstance(steps, str):
            # Models word a nested list as a text of JSON now and then.
            draft = _STEPS.validate_json(steps)
        else:
            draft = _STEPS.validate_python(steps)
    except ValidationError as error:
        raise ValueError(_sentence(field_faults(error.errors(), "steps"))) from None
    outputs: dict[str, Mapping[str, Any]] = {}
    for name, manifest in scope.manifests.items():
        outputs[name] = manifest["output_schema"]
    if wrong := faults(draft, outputs, scope.complete):
        raise ValueError(_sentence(wrong))
    return Draft(steps=draft, task_type=_task_type(arguments.get("task_type")))


def _task_type(words: object) -> str | None:
    """Returns what a planner calls the kind of a task, in the form in which kinds are counted."""
    if words is None:
        return None
    name = re.sub(r"\W+", "_", str(words).lower()).strip("_")
    return name[:LONGEST_TYPE] or None


def _sentence(reasons: Sequence[str]) -> str:
    return "; ".join(reasons[:MOST_REASONS])


def planner_query(
    task: str,
    complete: Iterable[PlanStep] = (),
    failed: PlanStep | None = None,
    suggestion: str = "",
    remaining: Sequence[PlanStep] = (),
    conversation: Sequence[Message] = (),
    task_types: Sequence[str] = (),
    earlier: Sequence[Mapping[str, Any]] = (),
    summary: str | None = None,
) -> str:
    """What a planner is asked: the task, and in a replan what is done, what failed and why, and what was still to come.

    `suggestion` is that of the executor whose step failed; `conversation` is what was said before, oldest first,
    which the task may refer to; `task_types` are the kinds of tasks that have a name, `earlier` similar tasks
    with their answers, `summary` what was said before that conversation. The last paragraph is one JSON object.
    """
    steps = list(complete)
    brief: dict[str, Any] = {
        "original_task": task,
        "first_step": max([step.step_index for step in steps], default=0) + 1,
        "steps_left": MOST_STEPS - len(steps),
    }
    if task_types:
        brief["task_types"] = list(task_types)
    if conversation:
        brief["conversation"] = [
            {"role": message.role, "text": message.text[:MOST_WORDS]}
            for message in conversation[-MOST_MESSAGES:]
        ]
    if summary:
        brief["before_the_conversation"] = summary
    if earlier:
        brief["earlier_tasks"] = list(earlier)
    words = "Make a plan for this task."
    if failed is not None:
        words = (
            "A step of this plan failed. Write the remaining steps anew, and nothing that is "
            "complete. No new step has the number of a complete one, and those from first_step on are free; "
            "a new step may take its input from complete ones."
        )
        brief["completed_steps"] = [_complete_fields(step) for step in steps]
        brief["failed_step"] = {
            "step": failed.step_index,
            "reason": failed.failure_reason or failed.status,
            "suggestion": suggestion,
            **_draft_fields(failed),
        }
        brief["remaining_steps"] = [
            {"step": step.step_index, **_draft_fields(step)} for step in remaining
        ]
        # Not within the steps: a model hands them in again as it read them.
        brief["failed_too"] = [
            {"step": step.step_index, "reason": step.failure_reason}
            for step in remaining
            if step.failure_reason and step.step_index != failed.step_index
        ]
    elif conversation:
        words += " It may refer to the conversation before it."
    if earlier:
        words += " The answers to earlier_tasks were true when they were given; look again for what may have changed."
    return f"{words}\n\n{json.dumps(brief, ensure_ascii=False, indent=1)}"


def _complete_fields(step: PlanStep) -> dict[str, Any]:
    """What a planner is told of a complete step: its output stays where it is."""
    spec: Mapping[str, Any] = step.return_spec
    return {
        "step": step.step_index,
        "task": step.task,
        "memory_key": step.memory_key,
        "shape": spec.get("shape"),
    }


def _draft_fields(step: PlanStep) -> dict[str, Any]:
    """A step as a planner wrote it."""
    return {
        "task": step.task,
        "skills": step.skills,
        "input_from_steps": step.inputs,
        "return_spec": step.return_spec,
    }
