"""What an executor is asked."""

import json
import re
from collections.abc import Mapping
from typing import Any

from kit.core.schema.shape import Shape, schema_of
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.tools.large_result import write_sample
from kit.tools.skill import canonical_text, text_size

LONGEST = 16_000
"""Bytes of an input that an executor reads whole, and characters of what its script prints; what is
longer goes into a file."""
ANSWER = "answer"
"""The key of an output that is an executor's answer."""
_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


def executor_query(scope: StepScope, outputs: Mapping[int, Any], services: PlanServices) -> str:
    """What an executor is asked: the task, the skills it may call, the return spec, and the outputs
    of the steps it works on.

    `outputs`: step -> its output; a long one goes into a file of the task. The output of one step is
    the `input`; those of several stand in it by the names of their steps. The last paragraph is one
    JSON object. Raises OSError.
    """
    asks = {"id", "description", "capabilities", "limitations", "input_schema", "output_schema"}
    skills: list[dict[str, Any]] = []
    for manifest in scope.manifests.values():
        skills.append(manifest.model_dump(mode="json", include=asks))
    brief: dict[str, Any] = {
        "task": scope.step.task,
        "skills": skills,
        "return_spec": scope.step.return_spec,
    }
    inputs: dict[str, Any] = {}
    for number, output in outputs.items():
        inputs[f"step_{number}"] = _input(output, scope, services)
    brief |= _named(inputs)
    return f"Do this step of a plan: {scope.step.task}\n\n{json.dumps(brief, ensure_ascii=False)}"


def request_of(scope: StepScope, outputs: Mapping[int, Any]) -> str:
    """What an executor is asked that runs by itself: the same without skills and files, of which it has none.

    The inputs stand in it whole.
    """
    words = f"Do this step of a plan: {scope.step.task}"
    shape = scope.step.return_spec["shape"]
    brief: dict[str, Any] = {}
    if shape != "string":
        words += "\n\nAnswer with JSON of exactly the shape in return_spec, and nothing else."
        brief["return_spec"] = scope.step.return_spec
    brief |= _named({f"step_{number}": output for number, output in outputs.items()})
    if not brief:
        return words
    return f"{words}\n\n{json.dumps(brief, ensure_ascii=False)}"


def output_of(text: str, shape: Shape) -> Any:
    """Reads what such an executor answered: JSON, fenced or not; else the text, as the one field of a shape that has
    no other."""
    if shape == "string":
        return text
    fenced = _FENCE.search(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except ValueError:
        pass
    fields: Mapping[str, Any] = schema_of(shape).get("properties", {})
    if len(fields) == 1:
        (name,) = fields
        return {name: text}
    return text


def _named(inputs: dict[str, Any]) -> dict[str, Any]:
    """The field of a brief in which its inputs stand: one alone, or several by the names of their steps."""
    if len(inputs) > 1:
        return {"input": inputs}
    for value in inputs.values():
        return {"input": value}
    return {}


def _input(output: Any, scope: StepScope, services: PlanServices) -> Any:
    """Returns an output as an executor reads it: whole, or where it is long, how the file begins that it stands in."""
    size = text_size(canonical_text(output))
    if size < LONGEST:
        return output
    text = json.dumps(output, indent=1, ensure_ascii=False)
    file_id, sample = write_sample(text, scope.task, services.files)
    return {"file_id": file_id, "size_bytes": size, "begins": sample}
