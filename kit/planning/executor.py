"""The executor: tools that work on one step of a plan, each within what the step allows."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from kit.core.schema.json_value import is_list, is_object
from kit.planning.scope import StepScope, step_scope
from kit.planning.services import PlanServices, PlanTool, ToolAnswer, plan_tool, result
from kit.planning.skill_call import call_skill
from kit.planning.step_query import LONGEST
from kit.runtime.act_ledger import DECLINED
from kit.tools import task_memory, temp_files
from kit.tools.arguments import fitted
from kit.tools.exec_python import Review, ScriptRun, boundary_or_fault, exec_python
from kit.tools.large_result import put_away
from kit.tools.task_memory import KEY, write_data
from kit.tools.tool import EXEC_PYTHON, Toolbox, ToolResult

CALL = "call_skill"
INSUFFICIENT = "insufficient"
EXECUTOR_TOOLS = (
    CALL,
    INSUFFICIENT,
    task_memory.WRITE,
    task_memory.READ,
    temp_files.WRITE,
    temp_files.READ,
    EXEC_PYTHON,
)
"""Their ids."""
LONGEST_WORDS = 1_000
"""Characters of a reason and of a suggestion that the planner reads."""
FILE = {"type": "string", "description": "A file of this task, whose id a tool has named."}


def executor_tools(services: PlanServices) -> Toolbox:
    """Makes the tools of an executor card, by their ids. Outside of a plan none of its own is allowed."""
    return {
        CALL: _call_tool(services),
        INSUFFICIENT: _insufficient_tool(services),
        task_memory.WRITE: _write_tool(services),
        task_memory.READ: _read_tool(services),
        temp_files.WRITE: temp_files.write_tool(services.files),
        temp_files.READ: temp_files.read_tool(services.files),
        EXEC_PYTHON: exec_python(boundary_or_fault(), services.files, _review(services)),
    }


def _call_tool(services: PlanServices) -> PlanTool:
    async def call(scope: StepScope, values: dict[str, Any]) -> ToolAnswer:
        skill = str(values.get("skill", ""))
        if scope.is_declined:
            return result(DECLINED)
        try:
            arguments = await _arguments(scope, services, skill, values)
        except ValueError as error:
            return result(str(error), "bad_arguments")
        outcome = await call_skill(scope, services, skill, arguments)
        return outcome.text, outcome

    async def read_arguments(values: Mapping[str, Any]) -> Mapping[str, Any]:
        scope = step_scope()
        skill = str(values.get("skill", ""))
        if scope is None or skill not in scope.manifests:
            return values
        arguments = await _arguments(scope, services, skill, values)
        schema = scope.manifests[skill].input_schema
        return {"skill": skill, "arguments": await fitted(schema, arguments)}

    asks = {
        "skill": {"type": "string", "description": "A skill that this step allows."},
        "arguments": {
            "type": "object",
            "description": "What it asks for, as its input_schema says.",
        },
        "file_id": {
            **FILE,
            "description": "A file with a JSON object whose fields are arguments too, where they are many.",
        },
    }
    description = "Call a skill. A long result comes as a file."
    required = ("skill", "arguments")
    return plan_tool(
        services, CALL, description, asks, required, step_scope, call, _act_words, read_arguments
    )


def _act_words(arguments: Mapping[str, Any]) -> str | None:
    """Returns what a call of `call_skill` does in the world, which is the step; None where it does nothing there, by
    the manifest of the skill."""
    scope = step_scope()
    if scope is None:
        return None
    manifest = scope.manifests.get(str(arguments.get("skill", "")))
    # A skill that the step does not allow is refused, and nobody need be asked about it, nor after a no.
    if manifest is None or manifest.idempotent or scope.is_declined:
        return None
    return scope.step.task


def _insufficient_tool(services: PlanServices) -> PlanTool:
    async def call(scope: StepScope, words: dict[str, Any]) -> ToolAnswer:
        if scope.is_declined:
            return result(DECLINED)
        # The planner reads these words; an executor must not fill its prompt.
        reason = str(words.get("reason", ""))[:LONGEST_WORDS]
        suggestion = str(words.get("suggestion", ""))[:LONGEST_WORDS]
        scope.insufficient = (reason, suggestion)
        await scope.journal.write("subagent.insufficient", reason=reason, suggestion=suggestion)
        signal = {
            "status": INSUFFICIENT,
            "completed": None,
            "reason": reason,
            "suggestion": suggestion,
        }
        return result(json.dumps(signal))

    asks = {
        "reason": {"type": "string", "description": "Why this cannot be done in one step."},
        "suggestion": {
            "type": "string",
            "description": "What would have to be planned in its place.",
        },
    }
    description = "Say that the step cannot be done as it is, why, and what could be."
    return plan_tool(services, INSUFFICIENT, description, asks, tuple(asks), step_scope, call)


def _write_tool(services: PlanServices) -> PlanTool:
    async def call(scope: StepScope, values: dict[str, Any]) -> ToolAnswer:
        if scope.is_declined:
            return result(DECLINED)
        data = values.get("data")
        if file_id := values.get("file_id"):
            try:
                data = await asyncio.to_thread(_read_json, scope, services, str(file_id))
            except ValueError as error:
                return result(str(error), "bad_arguments")
        # The shape is the step's own, whatever the model says that it is.
        shape = scope.step.return_spec["shape"]
        return await write_data(services.memory, scope.task, values.get("key"), data, shape)

    asks = {
        "key": KEY,
        "data": {"description": "The result, as JSON of exactly the shape in return_spec."},
        "file_id": {**FILE, "description": "The file that holds it, in the place of data."},
    }
    description = "Hand in the result of this step. It is held against return_spec; with that the step is done."
    return plan_tool(services, task_memory.WRITE, description, asks, ("key",), step_scope, call)


def _read_tool(services: PlanServices) -> PlanTool:
    async def call(scope: StepScope, values: dict[str, Any]) -> ToolAnswer:
        memory = await services.memory.read(scope.task.principal, str(values.get("key", "")))
        if memory is None:
            return result("Nothing is kept under this key.")
        await services.memory.confirm(scope.task.principal, memory)
        if memory.task_id != scope.task.id:
            scope.has_read = True
        return result(json.dumps(memory.value, ensure_ascii=False))

    asks = {"key": {"type": "string", "description": "The whole key, as write_memory returned it."}}
    description = "Read what a step has kept."
    return plan_tool(services, task_memory.READ, description, asks, ("key",), step_scope, call)


async def _arguments(
    scope: StepScope, services: PlanServices, skill: str, call: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of a skill, those in a file that it takes among them.

    Raises ValueError, which says what to do, where they cannot be read.
    """
    arguments: Any = call.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    file_arguments: Any = {}
    if file_id := call.get("file_id"):
        file_arguments = await asyncio.to_thread(_read_json, scope, services, str(file_id))
    if not is_object(arguments) or not is_object(file_arguments):
        raise ValueError("Arguments are a JSON object.")
    manifest = scope.manifests.get(skill)
    properties: Mapping[str, Any] = {}
    if manifest is not None:
        properties = manifest.input_schema.get("properties", {})
    file_values: dict[str, Any] = {}
    for name, value in file_arguments.items():
        # A file is the output of an earlier step as often as not, and holds more than the skill takes.
        if name in properties:
            file_values[name] = value
    return file_values | arguments


def _read_json(scope: StepScope, services: PlanServices, file_id: str) -> Any:
    """Returns the JSON in a file of the task. Raises ValueError, which says what to do, where there is none."""
    path = services.files.path(scope.task, file_id)
    if path is None:
        raise ValueError(f"There is no file {file_id!r} in this task.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(
            f"The file {file_id} is no JSON: have a script print json.dumps of what is needed."
        ) from None


def _review(services: PlanServices) -> Review:
    """Writes down each script that a step runs, and puts away what it prints where that is long."""

    async def review(run: ScriptRun, outcome: ToolResult) -> ToolResult:
        scope = step_scope()
        if scope is None:
            return outcome
        data = run.data.decode("utf-8", "replace")
        await scope.journal.write(
            "python_script.executed",
            script_hash=run.script_hash,
            input_rows=await asyncio.to_thread(rows_of, data),
            output_rows=await asyncio.to_thread(rows_of, run.result.stdout),
            duration_ms=round(run.seconds * 1000),
            exit_code=run.result.exit,
            status=run.result.reason or "ok",
        )
        large = outcome.fault is None and len(outcome.text) > LONGEST
        if large:
            return await put_away(outcome, scope.task, services.files)
        return outcome

    return review


def rows_of(text: str) -> int:
    """Returns how many rows a text has: of JSON the items of its longest list, else its lines."""
    try:
        value = json.loads(text)
    except ValueError:
        return len(text.splitlines())
    values: list[Any] = [value]
    if is_object(value):
        values += value.values()
    lengths = [len(item) for item in values if is_list(item)]
    return max(lengths, default=1)
