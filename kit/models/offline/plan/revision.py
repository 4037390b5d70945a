"""Writes the rest of a plan anew after a step has failed: less is asked, another skill does it, or
it is tried again."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kit.core.errors import ShapeError
from kit.core.schema.containment import lack
from kit.models.offline.plan.chain import ALIKE
from kit.models.offline.plan.skill import Skill, values_in, vocabulary
from kit.models.offline.plan.step_words import step_words
from kit.models.offline.routing import FITS
from kit.models.offline.similarity import index, spoken

_ROWS = re.compile(r"array<\{(.*)\}>")
_PASSING = re.compile(r"time-?out|timed out|unavailable|gone|exception|not reached", re.I)
_TOO_MUCH = re.compile(r"insufficient|contract|shape|return_spec|schema|large", re.I)


def revised_steps(brief: Mapping[str, Any], skills: Sequence[Skill]) -> list[dict[str, Any]] | str:
    """The remaining steps with another in the place of the one that failed; or why there is none."""
    failed = brief["failed_step"]
    rest = [dict(step) for step in brief["remaining_steps"]]
    if not rest:
        return f"step {failed['step']} failed: {failed['reason']}"
    for number, step in enumerate(rest, int(brief["first_step"])):
        step["step"] = number
        if step.get("input_from_step") is None:
            step.pop("input_from_step", None)
    step = rest[0]
    reason = f"{failed['reason']} {failed.get('suggestion') or ''}"
    by_name = {skill.name: skill for skill in skills}
    if unknown := [name for one in rest for name in one["skills"] if name not in by_name]:
        return f"the skill {unknown[0]} is not there any more"
    if _TOO_MUCH.search(reason) and (
        shape := _narrower(step["return_spec"]["shape"], rest[1:], step["step"])
    ):
        step["return_spec"] = {**step["return_spec"], "shape": shape}
    elif other := _another(step, skills, rest[1:], str(brief["original_task"])):
        step |= other
    elif not _PASSING.search(reason):
        return f"step {failed['step']} failed and no other skill can do it: {failed['reason']}"
    return rest


def _another(
    step: Mapping[str, Any], skills: Sequence[Skill], later: Sequence[Mapping[str, Any]], task: str
) -> dict[str, Any] | None:
    """Another skill that fits the task about as well and can be called with what it says, and what
    it promises of the shape."""
    scores = index(tuple((spoken(skill.name), skill.words) for skill in skills)).score(task)
    least = max(
        FITS,
        ALIKE
        * max(
            score
            for skill, score in zip(skills, scores, strict=True)
            if skill.name in step["skills"]
        ),
    )
    for skill, score in sorted(zip(skills, scores, strict=True), key=lambda pair: -pair[1]):
        values = values_in(task, skill, vocabulary(skills))
        shape = step["return_spec"]["shape"]
        if (
            skill.acts
            or skill.name in step["skills"]
            or score < least
            or not set(skill.required) <= values.keys()
        ):
            continue
        while shape is not None and not _gives(skill, shape):
            shape = _narrower(shape, later, step["step"])
        if shape is not None:
            lead = str(step["task"]).rpartition(": ")[0] or str(step["task"])
            spec = {**step["return_spec"], "shape": shape}
            return {
                "task": step_words(lead, values, {}, None),
                "skills": [skill.name],
                "return_spec": spec,
            }
    return None


def _gives(skill: Skill, shape: Any) -> bool:
    try:
        return lack(shape, skill.output) is None
    except ShapeError:
        return False


def _narrower(shape: Any, later: Sequence[Mapping[str, Any]], number: int) -> dict[str, str] | None:
    """The shape with one field less; what later steps take of it stays. None where nothing can go."""
    uses = {
        name
        for step in later
        for name in re.findall(rf"\.(\w+) of step {number}\b", str(step["task"]))
    }
    if isinstance(shape, dict):
        parts = cast("dict[str, Any]", shape)
    else:
        parts = dict[str, Any]()
    for name, part in parts.items():
        match = _ROWS.fullmatch(str(part))
        if match:
            fields = match[1].split(", ")
        else:
            fields = []
        spare: list[str | Any] = []
        for one in fields:
            if one.split(":")[0] not in uses:
                spare.append(one)
        if len(fields) > 1 and spare:
            return {
                **parts,
                name: f"array<{{{', '.join(one for one in fields if one != spare[-1])}}}>",
            }
    return None
