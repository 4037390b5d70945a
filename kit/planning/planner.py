"""The planner: tools that find skills, read them and hand in a plan, which is verified before it
counts; and its brief."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import TypeAdapter, ValidationError

from kit.core.record import Message
from kit.planning.draft import MOST_STEPS, Draft, DraftStep, Infeasible, faults
from kit.planning.scope import PlannerScope, planner_scope
from kit.planning.services import OUTSIDE, REASONS, PlanServices, no_data, plan_tool, result
from kit.stores.documents.document import PlanStep
from kit.tools.skill import FIND, LOAD, SkillFault
from kit.tools.tool import ToolResult

SUBMIT = "submit_plan"
PLANNER_TOOLS = (FIND, LOAD, SUBMIT)
"""Their ids."""
MOST_SKILLS = 12
"""Skills that one planner loads at most; two to six are usual."""
MOST_FOUND = 20
MOST_WORDS = 1_000
MOST_CHARACTERS = 50_000
"""Skills that it is told of at once, letters of what each says it does, and of a whole manifest: a model reads them."""
MOST_MESSAGES = 10
"""Messages of the conversation before the task that a planner reads, the newest."""
MOST_DRAFTS = 3
"""Plans that it may hand in until one holds."""
MOST_REASONS = 8
"""Reasons that it is told of one draft; the rest follows from them, or comes with the next."""
STEP = {
    "type": "object",
    "properties": {
        "step": {
            "type": "integer",
            "description": "Its number; steps are numbered in order and without a gap.",
        },
        "task": {
            "type": "string",
            "description": "What its executor is to do, in words that stand alone.",
        },
        "skills": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of loaded skills it may call.",
        },
        "input_from_step": {
            "type": "integer",
            "description": "The earlier step whose output it works on, if any.",
        },
        "return_spec": {
            "type": "object",
            "description": 'What it returns, such as {"shape": {"rows": "array<{id: string, '
            'score: number}>"}, "reason": "..."}.',
            "properties": {"shape": {"type": "object"}, "reason": {"type": "string"}},
            "required": ["shape", "reason"],
        },
    },
    "required": ["step", "task", "skills", "return_spec"],
}
_STEPS = TypeAdapter(tuple[DraftStep, ...])
Answer = tuple[str, ToolResult]


def planner_tools(services: PlanServices) -> Mapping[str, BaseTool]:
    """Makes the tools of a planner card, by their ids. Outside of a plan each answers that it is not allowed."""

    async def find(**arguments: Any) -> Answer:
        scope = planner_scope()
        if scope is None:
            return result(OUTSIDE, "not_allowed")
        skills = await services.skills.find(str(arguments.get("query", "")))
        _note_reach(scope, skills)
        if isinstance(skills, SkillFault):
            return no_data(skills)
        rows: list[dict[str, str]] = []
        for one in skills[:MOST_FOUND]:
            rows.append({"skill_name": one.skill_name, "description": one.description[:MOST_WORDS]})
        return result(json.dumps({"skills": rows}, ensure_ascii=False))

    async def load(**arguments: Any) -> Answer:
        scope = planner_scope()
        if scope is None:
            return result(OUTSIDE, "not_allowed")
        return await _load(services, scope, str(arguments.get("skill_name")))

    async def submit(**arguments: Any) -> Answer:
        scope = planner_scope()
        if scope is None:
            return result(OUTSIDE, "not_allowed")
        return _submit(scope, arguments)

    query = {"query": {"type": "string", "description": "What is to be done, in words."}}
    name = {"skill_name": {"type": "string", "description": f"A name that {FIND} gave."}}
    plan = {
        "steps": {"type": "array", "items": STEP, "description": "The plan, where there is one."},
        "infeasible": {
            "type": "string",
            "description": "Why no plan does the task with these skills, in place of steps.",
        },
    }
    return {
        FIND: plan_tool(
            services,
            FIND,
            "Find the skills that a task may need, the best first.",
            query,
            ("query",),
            find,
        ),
        LOAD: plan_tool(
            services,
            LOAD,
            "Read one skill whole, with its input and output schema.",
            name,
            ("skill_name",),
            load,
        ),
        SUBMIT: plan_tool(
            services,
            SUBMIT,
            "Hand in the plan. It is verified, and sent back where it fails.",
            plan,
            (),
            submit,
        ),
    }


def _note_reach(scope: PlannerScope, result: object) -> None:
    """Notes whether the service answered: a planner that finds no skills because nothing does has not
    found out that there is no plan."""
    scope.unreachable = None
    if isinstance(result, SkillFault) and REASONS[result.reason] in ("unavailable", "timeout"):
        scope.unreachable = f"{result.reason}: {result.detail}"


async def _load(services: PlanServices, scope: PlannerScope, name: str) -> Answer:
    skill = await services.skills.load(name)
    _note_reach(scope, skill)
    if isinstance(skill, SkillFault):
        unknown = skill.reason == "unknown_skill"
        if unknown:
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
    if (
        len(scope.manifests) >= MOST_SKILLS and name not in scope.manifests
    ):  # here: loads run at the same time
        return result(f"You have loaded {MOST_SKILLS} skills; plan with those.", "not_allowed")
    scope.manifests[skill.id] = skill.model_dump(mode="json")
    return result(text)


def _submit(scope: PlannerScope, arguments: Mapping[str, Any]) -> Answer:
    """Takes a plan that holds, or that there is none; sends back every other, with the reasons."""
    if len(scope.refusals) >= MOST_DRAFTS:
        return result("No further plan is taken.", "not_allowed")
    draft = _read(scope, arguments)
    if isinstance(draft, str):
        scope.refusals.append(draft)
        rest = MOST_DRAFTS - len(scope.refusals)
        return result(
            f"This plan was sent back. {draft}. You may hand in {rest} more.",
            "bad_arguments",
            draft,
        )
    scope.result = draft
    return result("Noted." if isinstance(draft, Infeasible) else "The plan holds and is taken.")


def _read(scope: PlannerScope, arguments: Mapping[str, Any]) -> Draft | Infeasible | str:
    """Returns what was handed in, or why it does not hold."""
    steps = arguments.get("steps")
    infeasible = str(arguments.get("infeasible") or "").strip()
    if bool(steps) == bool(infeasible):
        return "Give either steps, or the reason why there can be none as infeasible"
    if infeasible:
        return Infeasible(reason=infeasible)
    try:
        if isinstance(steps, str):
            draft = _STEPS.validate_json(steps)
        else:
            draft = _STEPS.validate_python(steps)
    except ValidationError as error:
        return _sentence(
            f"{'.'.join(map(str, one['loc'])) or 'steps'}: {one['msg']}"
            for one in error.errors(include_input=False)
        )
    outputs = {name: manifest["output_schema"] for name, manifest in scope.manifests.items()}
    if reasons := faults(draft, outputs, scope.first):
        return _sentence(reasons)
    return Draft(steps=draft)


def _sentence(reasons: Iterable[str]) -> str:
    return "; ".join(list(reasons)[:MOST_REASONS])


def planner_query(
    task: str,
    complete: Iterable[PlanStep] = (),
    failed: PlanStep | None = None,
    suggestion: str = "",
    remaining: Iterable[PlanStep] = (),
    conversation: Sequence[Message] = (),
) -> str:
    """What a planner is asked: the task, and in a replan what is done, what failed and why, and what was still to come.

    `suggestion` is that of the executor whose step failed; `conversation` is what was said before, oldest first,
    which the task may refer to. The last paragraph is one JSON object.
    """
    steps = [*complete]
    brief: dict[str, Any] = {
        "original_task": task,
        "first_step": len(steps) + 1,
        "steps_left": MOST_STEPS - len(steps),
    }
    if conversation:
        brief["conversation"] = [
            {"role": message.role, "text": message.text[:MOST_WORDS]}
            for message in conversation[-MOST_MESSAGES:]
        ]
    if failed is None:
        words = "Make a plan for this task."
        if conversation:
            words += " It may refer to the conversation before it."
        return f"{words}\n\n{json.dumps(brief, ensure_ascii=False, indent=1)}"
    brief["completed_steps"] = [
        {
            "step": one.step_index,
            "task": one.task,
            "memory_key": one.memory_key,
            "shape": _shape(one),
        }
        for one in steps
    ]
    reason = failed.failure_reason or failed.status
    brief["failed_step"] = {
        "step": failed.step_index,
        "reason": reason,
        "suggestion": suggestion,
        **_of(failed),
    }
    brief["remaining_steps"] = [{"step": one.step_index, **_of(one)} for one in remaining]
    words = (
        "A step of this plan failed. Write the remaining steps anew, and nothing that is "
        "complete. Number them from first_step; "
        "a new step may take its input from a complete one."
    )
    return f"{words}\n\n{json.dumps(brief, ensure_ascii=False, indent=1)}"


def _of(step: PlanStep) -> dict[str, Any]:
    return {
        "task": step.task,
        "skills": step.skills,
        "input_from_step": step.input_from_step,
        "return_spec": step.return_spec,
    }


def _shape(step: PlanStep) -> Any:
    spec: Mapping[str, Any] = step.return_spec
    return spec.get("shape")
