"""Plays the planner for the offline stand-in, by real tool calls: finds skills, loads them, chains
them, hands in a plan.

A labelled template: it matches words and schemas. What it plans says nothing of what a language model would.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kit.models.offline.conversation import Conversation, Tool
from kit.models.offline.plan.chain import StepChain
from kit.models.offline.plan.revision import revised_steps
from kit.models.offline.plan.skill import Skill, skill_of

FIND, LOAD, SUBMIT = TOOLS = ("find_relevant_skills", "load_skill", "submit_plan")
MOST_LOADED = 6
"""Skills that it reads; those of steps that are still to come are read anyway."""
Call = tuple[str, dict[str, Any]]


def plays_planner(tools: Sequence[Tool]) -> bool:
    """Whether these are a planner's tools."""
    return {tool.name for tool in tools}.issuperset(TOOLS)


def planner_turn(talk: Conversation) -> str | list[Call]:
    """What the planner does next: calls, or its last words."""
    brief = _brief(talk.request)
    results = {
        tool: [result for result in talk.all_results if result.tool == tool] for tool in TOOLS
    }
    if not results[FIND]:
        failed = cast("Mapping[str, Any]", brief.get("failed_step", {}))
        return [(FIND, {"query": str(failed.get("task", brief["original_task"]))[:500]})]
    if not results[LOAD] and (
        names := _names(brief, [_json(result.text) for result in results[FIND]])
    ):
        return [(LOAD, {"skill_name": name}) for name in names]
    attempts = results[SUBMIT]
    if attempts and not attempts[-1].failed:
        return "The plan is handed in."
    if len(attempts) > 2:
        return "No plan of mine holds."
    if all(result.failed for result in results[LOAD] or results[FIND]):
        return [(SUBMIT, {"infeasible": "the skills cannot be read right now"})]
    skills: list[Skill] = []
    for result in results[LOAD]:
        if not result.failed and (manifest := _json(result.text)):
            skills.append(skill_of(manifest))
    return [(SUBMIT, _proposal(brief, skills, len(attempts)))]


def _proposal(brief: Mapping[str, Any], skills: Sequence[Skill], refusals: int) -> dict[str, Any]:
    """A plan; after a refusal one that asks for whole outputs, and after another one none."""
    if brief.get("failed_step"):
        steps = revised_steps(brief, skills)
    else:
        steps = StepChain(str(brief["original_task"]), skills).steps(brief)
    if isinstance(steps, str) or refusals > 1:
        return {
            "infeasible": steps
            if isinstance(steps, str)
            else "what the skills promise cannot be told from their schemas"
        }
    return {"steps": [_whole(step, skills) for step in steps] if refusals else steps}


def _whole(step: Mapping[str, Any], skills: Sequence[Skill]) -> dict[str, Any]:
    """The step with the whole of each field, whatever is in it."""
    outputs: list[Mapping[str, Any]] = []
    for skill in skills:
        if skill.name == step["skills"][0]:
            outputs.append(skill.output)
    shape = dict.fromkeys(
        (name for output in outputs for name in output.get("required") or ()), "any"
    )
    return {**step, "return_spec": {**step["return_spec"], "shape": shape}}


def _names(brief: Mapping[str, Any], answers: Sequence[Any]) -> list[str]:
    """The skills to load: those of the remaining steps, then the best that were found."""
    own: list[str] = []
    for step in brief.get("remaining_steps") or ():
        for name in step["skills"]:
            own.append(str(name))
    rows: list[Any] = []
    for answer in answers:
        if isinstance(answer, Mapping):
            for row in cast("Mapping[str, Any]", answer).get("skills", ()):
                rows.append(row)
    return list(dict.fromkeys((*own, *(str(row["skill_name"]) for row in rows[:MOST_LOADED]))))


def _brief(request: str) -> dict[str, Any]:
    """What the planner was asked; a text without such an object is the task itself."""
    if "{" in request:
        brief = _json(request[request.find("{") :])
    else:
        brief = None
    plain = {"original_task": request, "first_step": 1, "steps_left": 10}
    if isinstance(brief, dict):
        return {**plain, **brief}
    return plain


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
