"""The offline stand-in as a planner: it hands in the steps of a deck's worked example, by the tool
calls of any planner. A task that no example fits needs a model, and it says so."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kit.core.card import PlanExample
from kit.core.language.request_template import filled, values_in
from kit.models.offline.conversation import Conversation, Tool
from kit.models.offline.json_schema import kind_of, properties_of, without_references

FIND = "find_relevant_skills"
LOAD = "load_skill"
SUBMIT = "submit_plan"
NO_EXAMPLE = "I cannot plan this without a model"
NO_OTHER_WAY = "I know no other way without a model"
UNREADABLE = "the skills cannot be read right now"
Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""

_PASSING = re.compile(r"time-?out|timed out|unavailable|gone|exception|not reached", re.I)
"""Reasons of a failure that may be gone at the next attempt."""


def plays_planner(tools: Sequence[Tool]) -> bool:
    """Whether these are a planner's tools."""
    return {tool.name for tool in tools} >= {FIND, LOAD, SUBMIT}


def planner_turn(talk: Conversation, examples: Sequence[PlanExample]) -> str | list[Call]:
    """Returns the planner's next calls, or its last words."""
    brief = _brief(talk.request)
    task = str(brief["original_task"])
    found = [result for result in talk.results if result.tool == FIND]
    loaded = [result for result in talk.results if result.tool == LOAD]
    attempts = [result for result in talk.results if result.tool == SUBMIT]
    if not found:
        # The steps of an example name their skills, but only a search shows whether the service is there.
        return [(FIND, {"query": task[:500]})]
    if len(attempts) > 1 or (attempts and not attempts[-1].failed):
        return "The plan is handed in."
    if attempts:
        return _infeasible(f"the plan of the example was sent back: {attempts[-1].text[:300]}")
    if found[-1].failed:
        return _infeasible(UNREADABLE)

    values: Mapping[str, str] = {}
    example: PlanExample | None = None
    if "failed_step" in brief:
        steps = _remaining_steps(brief)
    else:
        example, steps, values = _steps_of_example(task, examples)
    if isinstance(steps, str):
        return _infeasible(steps)
    if not loaded:
        names = dict.fromkeys(name for step in steps for name in step["skills"])
        return [(LOAD, {"skill_name": name}) for name in names]
    if any(result.failed for result in loaded):
        return _infeasible(UNREADABLE)
    unknown = _unknown_value(values, [json.loads(result.text) for result in loaded])
    if unknown is not None:
        return _infeasible(f"I don't know {unknown}")
    plan: dict[str, Any] = {"steps": steps}
    if example is not None and example.task_type:
        plan["task_type"] = example.task_type
    return [(SUBMIT, plan)]


def _infeasible(reason: str) -> list[Call]:
    return [(SUBMIT, {"infeasible": reason})]


def _steps_of_example(
    task: str, examples: Sequence[PlanExample]
) -> tuple[PlanExample | None, list[dict[str, Any]] | str, Mapping[str, str]]:
    """Returns the first example whose words are those of the task, its steps, and the words that
    stand for its slots; or why there are none."""
    for example in examples:
        values = values_in(example.request, task)
        if values is None:
            continue
        steps: list[dict[str, Any]] = []
        for number, step in enumerate(example.steps, 1):
            document: dict[str, Any] = {
                "step": number,
                "task": filled(step.task, values),
                "skills": list(step.skills),
                "return_spec": {"shape": step.shape, "reason": step.reason},
            }
            if step.inputs:
                document["input_from_steps"] = list(step.inputs)
            steps.append(document)
        return example, steps, values
    return None, NO_EXAMPLE, {}


def _unknown_value(values: Mapping[str, str], manifests: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the first word of a request that no skill with an argument of that name takes."""
    for name, value in values.items():
        specs: list[Mapping[str, Any]] = []
        for manifest in manifests:
            fields = properties_of(without_references(manifest["input_schema"]))
            if name in fields:
                specs.append(fields[name])
        if specs and not any(_takes(spec, value) for spec in specs):
            return value
    return None


def _takes(spec: Mapping[str, Any], value: str) -> bool:
    if "enum" in spec:
        return value.lower() in [str(option).lower() for option in spec["enum"]]
    if "pattern" in spec:
        try:
            return re.search(str(spec["pattern"]), value) is not None
        except re.error:
            # Only the service can say: Python does not read every pattern of JavaScript.
            return True
    return kind_of(spec) != "integer" or value.isdigit()


def _remaining_steps(brief: Mapping[str, Any]) -> list[Mapping[str, Any]] | str:
    """Returns the rest of a plan to be tried once more where its failure may pass; else why not."""
    failed = cast("Mapping[str, Any]", brief["failed_step"])
    remaining = cast("Sequence[Mapping[str, Any]]", brief["remaining_steps"])
    reason = str(failed["reason"])
    if not remaining or not _PASSING.search(reason):
        return f"{NO_OTHER_WAY}: step {failed['step']} failed, {reason}"
    return list(remaining)


def _brief(request: str) -> Mapping[str, Any]:
    """What the planner was asked; a text without a JSON object is the task itself."""
    try:
        brief = json.loads(request[request.index("{") :])
    except ValueError:
        brief = {}
    return {"original_task": request, **brief}
