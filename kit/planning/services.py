"""What the tools of planners and executors work with, and the kind of tool in which the loop of a plan finds it."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.tools import StructuredTool
from pydantic import Field

from kit.core.outcome import Reason
from kit.planning.record import LEASE
from kit.stores.documents.protocol import Documents
from kit.tools.skill import SkillFault, SkillReason, SkillService
from kit.tools.task_memory import TaskMemory
from kit.tools.temp_files import TempFiles
from kit.tools.tool import UNAVAILABLE, ToolResult

S = TypeVar("S")
ToolAnswer = tuple[str, ToolResult]
"""A text for a model, and how the call went."""
ActWords = Callable[[Mapping[str, Any]], str | None]
"""Says what a call with these arguments does in the world; None where it is a lookup: its user is not asked first."""
ReadArguments = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Reads the arguments of a call that acts, before its user is asked. Raises ValueError, which says what is wrong."""
OUTSIDE = "This tool works inside a plan, and there is none here."
REASONS: Mapping[SkillReason, Reason] = {
    "unknown_skill": "bad_arguments",
    "skill_not_allowed": "not_allowed",
    "bad_arguments": "bad_arguments",
    "key_reused": "bad_arguments",
    "superseded": "not_allowed",
    "unauthorized": "unavailable",
    "timeout": "timeout",
    "gone": "unavailable",
    "schema_mismatch": "contract_violation",
    "oversized": "contract_violation",
    "failed": "exception",
}
"""What the fault of a skill is among the faults of tools."""


@dataclass(frozen=True, slots=True)
class PlanServices:
    """Opened once for a Kit, shared by all of its plans."""

    documents: Documents
    skills: SkillService
    files: TempFiles
    memory: TaskMemory
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    lease: float = LEASE
    """Seconds without a write after which a plan's holder counts as dead."""


class PlanTool(StructuredTool):
    """A tool of a planner or an executor."""

    services: Any = Field(exclude=True, repr=False)
    """The PlanServices it works with."""
    act_words: ActWords | None = Field(default=None, exclude=True, repr=False)
    read_arguments: ReadArguments | None = Field(default=None, exclude=True, repr=False)


def plan_tool(
    services: PlanServices,
    name: str,
    description: str,
    properties: Mapping[str, Any],
    required: tuple[str, ...],
    current_scope: Callable[[], S | None],
    call: Callable[[S, dict[str, Any]], Awaitable[ToolAnswer]],
    act_words: ActWords | None = None,
    read_arguments: ReadArguments | None = None,
) -> PlanTool:
    """Makes a tool from a plain schema.

    `call` gets the scope of the run that the tool is called in, and the arguments; outside of a plan
    there is no scope, and the tool is not allowed.
    """

    async def call_in_scope(**arguments: Any) -> ToolAnswer:
        scope = current_scope()
        if scope is None:
            return result(OUTSIDE, "not_allowed")
        return await call(scope, arguments)

    schema = {
        "type": "object",
        "title": name,
        "properties": dict(properties),
        "required": list(required),
    }
    return PlanTool(
        services=services,
        act_words=act_words,
        read_arguments=read_arguments,
        name=name,
        description=description,
        args_schema=schema,
        coroutine=call_in_scope,
        response_format="content_and_artifact",
    )


def result(text: str, fault: Reason | None = None, detail: str = "") -> ToolAnswer:
    """What a tool of a plan returns: a text for its model, and how the call went."""
    if fault is not None:
        detail = detail or text
    return text, ToolResult(text=text, fault=fault, detail=detail)


def no_data(fault: SkillFault) -> ToolAnswer:
    """What it returns where a skill, or its service, gave nothing."""
    detail = f"{fault.skill}: {fault.reason}: {fault.detail}"
    return result(UNAVAILABLE, REASONS[fault.reason], detail)
