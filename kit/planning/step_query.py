"""What an executor is asked."""

import json
from collections.abc import Mapping
from typing import Any

from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.tools.large_result import write_sample
from kit.tools.skill import canonical_text, text_size

LONGEST = 16_000
"""Bytes of an input that an executor reads whole, and characters of what its script prints; what is
longer goes into a file."""


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
    if len(inputs) == 1:
        brief["input"] = next(iter(inputs.values()))
    elif inputs:
        brief["input"] = inputs
    return f"Do this step of a plan: {scope.step.task}\n\n{json.dumps(brief, ensure_ascii=False)}"


def _input(output: Any, scope: StepScope, services: PlanServices) -> Any:
    """Returns an output as an executor reads it: whole, or where it is long, how the file begins that it stands in."""
    size = text_size(canonical_text(output))
    if size < LONGEST:
        return output
    text = json.dumps(output, indent=1, ensure_ascii=False)
    file_id, sample = write_sample(text, scope.task, services.files)
    return {"file_id": file_id, "size_bytes": size, "begins": sample}
