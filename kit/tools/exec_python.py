"""exec_python: a model computes over data that is too long to read, by a script that runs in the sandbox."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from kit.core.bodies.call import Script
from kit.sandbox.boundary import Boundary, SandboxUnavailable
from kit.sandbox.probe import find_boundary
from kit.sandbox.process import ScriptLimits, ScriptResult, run_script
from kit.tools.enricher import fit_arguments, read_config, structured
from kit.tools.task_memory import current_task
from kit.tools.temp_files import TempFiles, open_temp_files
from kit.tools.tool import (
    EXEC_PYTHON,
    UNAVAILABLE,
    ConfiguredTool,
    Toolbox,
    ToolContext,
    ToolLimits,
    ToolResult,
    tool_context,
)
from kit.tools.tool_factory import ToolSetup, tool_factory

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

LIMITS = ToolLimits(at_once=4)
"""Where the configuration sets no others: scripts of a kit that run at the same time."""
DESCRIPTION = (
    "Run a Python script and get what it prints: to count, filter, sort or add up data exactly. "
    "`input_file` is the path of a "
    "text that the script can open: the file `file_id` or the text `data` where you give one, "
    "else the JSON list of what your "
    "tools have found, each item with its type and payload. Import json, csv, re, math, statistics, datetime, decimal, "
    "collections or another plain module of the standard library; there are no packages, no "
    "other files and no network. "
    "Print only what is needed."
)
PROPERTIES: dict[str, dict[str, Any]] = {
    "script": {"type": "string", "description": "Python that prints its result."},
    "file_id": {"type": "string", "description": "A file of this task, whose id a tool has named."},
    "data": {
        "type": "string",
        "description": "The text in input_file; leave it out for what your tools have found.",
    },
}


class ScriptRun(NamedTuple):
    """A script that ran, and on what."""

    script_hash: str
    data: bytes
    result: ScriptResult
    seconds: float


Review = Callable[[ScriptRun, ToolResult], Awaitable[ToolResult]]
"""Looks at a run, and may return another result than the model would have read."""


async def as_it_is(run: ScriptRun, result: ToolResult) -> ToolResult:
    """The review that changes nothing."""
    return result


def exec_python_tool(
    boundary: Boundary | SandboxUnavailable,
    limits: ScriptLimits,
    files: TempFiles,
    review: Review = as_it_is,
) -> "BaseTool":
    """The tool; without a boundary it refuses every script."""

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        values = fit_arguments(arguments, PROPERTIES)
        context = tool_context()
        script = values.get("script", "")
        if isinstance(boundary, SandboxUnavailable):
            result = ToolResult(text=UNAVAILABLE, fault="unavailable", detail=str(boundary))
            context.emit(_event(context, script, "unavailable"))
        elif (data := await _input(values, context, files, limits)) is None:
            text = f"There is no such file of at most {limits.input:,} bytes."
            result = ToolResult(text=text, fault="script_failed", detail=text)
        else:
            # The process' clock: a script takes real time also where a turn's clock is virtual.
            began = time.monotonic()
            output = await run_script(script, data, boundary, limits)
            seconds = time.monotonic() - began
            event = _event(context, script, output.reason).replace(
                boundary=boundary.name, exit=output.exit, output_bytes=output.size
            )
            context.emit(event)
            run = ScriptRun(event.sha256, data, output, seconds)
            result = await review(run, _result(output, limits))
        return result.text, result

    return structured(EXEC_PYTHON, DESCRIPTION, PROPERTIES, ("script",), call)


def _event(context: ToolContext, script: str, reason: Any) -> Script:
    digest = hashlib.sha256(script.encode("utf-8", "replace")).hexdigest()
    return Script(agent=context.agent, sha256=digest, reason=reason)


async def _input(
    values: Mapping[str, str], context: ToolContext, files: TempFiles, limits: ScriptLimits
) -> bytes | None:
    """What a script reads; None where it names a file that is not there, is another task's or is too large."""
    if file_id := values.get("file_id"):
        path = files.path(current_task(), file_id)
        if path and path.stat().st_size <= limits.input:
            return await asyncio.to_thread(path.read_bytes)
        return None
    text = values.get("data") or _components(context)
    return text.encode("utf-8", "replace")


def _components(context: ToolContext) -> str:
    components = [item.model_dump(include={"type", "payload"}) for item in context.found()]
    return json.dumps(components)


def _result(run: ScriptResult, limits: ScriptLimits) -> ToolResult:
    """What the model reads. A script that went wrong is its own fault and can be written anew (decisions 31)."""
    match run.reason:
        case None:
            return ToolResult(text=run.stdout or "The script printed nothing.")
        case "timeout":
            text = f"timeout: the script was stopped after {limits.seconds:g} s. Write one that does less."
        case "oversized_output":
            text = f"oversized_output: the script printed more than {limits.output:,} bytes. Print only what is needed."
        case "failed":
            text = f"The script failed with exit code {run.exit}.\n{run.stderr}".strip()
    return ToolResult(text=text, fault="script_failed", detail=text)


@tool_factory(EXEC_PYTHON)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """What deck.yaml names as `kit.tools.exec_python:TOOLS`. A card may set the limits
    (`ScriptLimits`) under `tool_config`."""
    yield {EXEC_PYTHON: exec_python(await asyncio.to_thread(boundary_or_fault), open_temp_files())}


def exec_python(
    boundary: Boundary | SandboxUnavailable, files: TempFiles, review: Review = as_it_is
) -> ConfiguredTool:
    """The tool with the limits that a card sets."""

    def make(config: Mapping[str, Any]) -> "BaseTool":
        return exec_python_tool(
            boundary, read_config(EXEC_PYTHON, config, ScriptLimits), files, review
        )

    return ConfiguredTool(make, LIMITS)


def boundary_or_fault() -> Boundary | SandboxUnavailable:
    """The boundary of this machine, or why there is none. It takes some 100 ms, once in a process."""
    try:
        return find_boundary()
    except SandboxUnavailable as error:
        return error
