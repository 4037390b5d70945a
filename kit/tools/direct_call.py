"""Awaits a tool's own coroutine where LangChain's wrapper around it has nobody to tell: 13
microseconds instead of 180.

Given up are a task and a context of its own for each call: a tool that never awaits keeps the loop,
and a context variable that a tool sets stays set for its caller. Arguments are read as the wrapper
reads them: a pydantic schema validates and fills in defaults and injected ids, a plain JSON schema
does not.

The wrapper runs every other call: with a listener (as for a model), with `handle_tool_error` or
`handle_validation_error`, for a synchronous function, for one that takes LangChain's config or
callbacks, for classes of other tools.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from types import FunctionType, MethodType
from typing import Any, cast

import langchain_core.tools.base
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool, StructuredTool

from kit.models.direct_call import has_listeners
from kit.tools.tool import ToolResult

_langchain: Any = langchain_core.tools.base
_RUNNERS = ("ainvoke", "arun", "_arun")
_runners = attrgetter(*_RUNNERS)
_OF_LANGCHAIN = _runners(StructuredTool)
_OF_WRAPPER = frozenset({"config", "run_manager", "callbacks"})
"""Arguments in whose place the wrapper puts its own values."""


async def result_of(tool: BaseTool, call: ToolCall) -> ToolResult:
    """Runs a tool and returns the artifact of its message where that is a ToolResult, else the
    message's text as one.

    Raises whatever the tool raises and does not handle, pydantic's ValidationError for arguments
    that its schema refuses, and ValueError where a tool of content and artifact returns something
    else.
    """
    if not _is_plain(tool) or call["id"] is None or has_listeners(tool.callbacks, tool.verbose):
        return read_answer(await tool.ainvoke({**call, "type": "tool_call"}))
    plain: Any = tool
    _, arguments = plain._to_args_and_kwargs(call["args"].copy(), call["id"])
    if not _OF_WRAPPER.isdisjoint(arguments):
        return read_answer(await tool.ainvoke({**call, "type": "tool_call"}))
    response: Any = await plain.coroutine(**arguments)
    content = response
    artifact = None
    if tool.response_format == "content_and_artifact":
        if not isinstance(response, tuple) or len(cast("tuple[Any, ...]", response)) != 2:
            raise ValueError(
                "Since response_format='content_and_artifact' a two-tuple of the message content "
                "and raw tool output is "
                f"expected. Instead, generated response is of type: {cast('Any', response).__class__}."
            )
        content, artifact = cast("tuple[Any, Any]", response)
    # The message of a text would hold nothing else.
    if isinstance(content, str):
        if isinstance(artifact, ToolResult):
            return artifact
        return ToolResult(text=content)
    return read_answer(
        _langchain._format_output(content, artifact, call["id"], tool.name, "success")
    )


def read_answer(answer: Any) -> ToolResult:
    """Returns the artifact of a tool message where that is a ToolResult, else its text as one: of a
    list, an item a line."""
    if isinstance(answer.artifact, ToolResult):
        return answer.artifact
    content: Any = answer.content
    # LangChain's own text of a list joins its items without anything between them.
    if isinstance(content, list) and content:
        items = cast("list[object]", content)
        if all(isinstance(item, str) for item in items):
            return ToolResult(text="\n".join(cast("list[str]", items)))
    return ToolResult(text=str(answer.text))


def _is_plain(tool: BaseTool) -> bool:
    if (
        not isinstance(tool, StructuredTool)
        or _runners(type(tool)) != _OF_LANGCHAIN
        or any(name in vars(tool) for name in _RUNNERS)
    ):
        return False
    if tool.handle_tool_error or tool.handle_validation_error:
        return False
    return isinstance(tool.coroutine, FunctionType | MethodType) and not _takes_a_run(
        tool.coroutine
    )


@lru_cache(maxsize=1024)
def _takes_a_run(coroutine: Callable[..., Any]) -> bool:
    """Whether the function has a parameter for LangChain's config or callbacks."""
    return (
        "callbacks" in inspect.signature(coroutine).parameters
        or _langchain._get_runnable_config_param(coroutine) is not None
    )
