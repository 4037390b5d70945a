"""What an executor is asked."""

import json
from collections.abc import Mapping
from typing import Any

from kit.stores.documents.document import PlanStep


def executor_query(step: PlanStep, manifests: Mapping[str, Mapping[str, Any]], value: Any) -> str:
    """The step's task, the skills it may call, what it returns and works on; the last paragraph is one JSON object."""
    brief = {"task": step.task, "allowed_skills": manifests, "return_spec": step.return_spec, "input": value}
    return f"Do this step of a plan.\n\n{json.dumps(brief, ensure_ascii=False, indent=1)}"
