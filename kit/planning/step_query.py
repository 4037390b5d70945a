"""What an executor is asked."""

import json
from typing import Any

from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.tools.large_result import write_sample
from kit.tools.skill import canonical_text, text_size

LONGEST = 16_000
"""Bytes of an input that an executor reads whole, and characters of what its script prints; what is
longer goes into a file."""


def executor_query(scope: StepScope, value: Any, services: PlanServices) -> str:
    """What an executor is asked: the task, the skills it may call, the return spec, and the output
    of the step it works on.

    `value`: that output, None where the step works on none; a long one goes into a file of the
    task. The last paragraph is one JSON object. Raises OSError.
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
    if value is not None:
        brief["input"] = value
        if (size := text_size(canonical_text(value))) >= LONGEST:
            text = json.dumps(value, indent=1, ensure_ascii=False)
            file_id, sample = write_sample(text, scope.task, services.files)
            brief["input"] = {"file_id": file_id, "size_bytes": size, "begins": sample}
    return f"Do this step of a plan: {scope.step.task}\n\n{json.dumps(brief, ensure_ascii=False)}"
