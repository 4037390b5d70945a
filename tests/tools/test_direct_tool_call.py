"""A tool's coroutine is awaited directly, and comes back through LangChain's wrapper where that has something to do."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from pydantic import BaseModel, Field

from kit.tools.bounds import result_of
from kit.tools.tool import ToolResult

JSON_SCHEMA = {
    "type": "object",
    "properties": {"limit": {"type": "integer"}},
    "required": ["limit"],
}
both = "content_and_artifact"


class Listener(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, **kwargs: Any
    ) -> None:
        self.heard.append(f"start {serialized['name']}")

    async def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        self.heard.append("end")


class Limits(BaseModel):
    limit: int = Field(ge=1)
    unit: str = "day"


class WithId(BaseModel):
    limit: int
    call_id: Annotated[str, InjectedToolCallId]


async def echo(**arguments: Any) -> str:
    return f"{sorted(arguments.items())}"


async def hinted(limit: int, unit: str = "day", *, also: float = 2.0) -> str:
    """Tells a limit.

    Its task is not the caller's where the wrapper runs it.
    """
    return f"{limit!r} {unit!r} {also!r}"


def called(**args: Any) -> ToolCall:
    return ToolCall(name="t", args=args, id="c1", type="tool_call")


def of_json(coroutine: Any = echo, **fields: Any) -> StructuredTool:
    return StructuredTool(
        name="t",
        description="Tells.",
        args_schema=fields.pop("schema", JSON_SCHEMA),
        coroutine=coroutine,
        **fields,
    )


def returning(value: Any) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        return value

    return call


def raising(error: Exception) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        raise error

    return call


async def through_wrapper(tool: BaseTool, call: ToolCall) -> ToolResult:
    message = await tool.ainvoke({**call, "type": "tool_call"})
    return (
        message.artifact
        if isinstance(message.artifact, ToolResult)
        else ToolResult(text=message.text)
    )


async def task_of(**arguments: Any) -> str:
    return str(id(asyncio.current_task()))


async def runs_directly(tool: BaseTool, **args: Any) -> bool:
    """Whether the coroutine runs in the caller's task: the wrapper makes one of its own."""
    return (await result_of(tool, called(**args))).text == str(id(asyncio.current_task()))


TOOLS: dict[str, tuple[StructuredTool, dict[str, Any]]] = {
    "a JSON schema does not validate": (of_json(), {"limit": "many", "other": [1]}),
    "pydantic converts and fills in": (of_json(schema=Limits), {"limit": "3"}),
    "an injected id": (of_json(schema=WithId), {"limit": 1}),
    "hints of a function": (
        StructuredTool.from_function(coroutine=hinted),
        {"limit": "4", "also": 1},
    ),
    "arguments the function lacks": (of_json(hinted), {"limt": 4}),
    "blocks": (of_json(returning([{"type": "text", "text": "hello"}])), {}),
    "a message": (of_json(returning(ToolMessage("hello", tool_call_id="c1"))), {}),
    "an odd artifact": (of_json(returning(("text", 1)), response_format=both), {}),
    "no pair": (of_json(returning("text"), response_format=both), {}),
    "an argument named like one of the wrapper's": (of_json(), {"config": 1, "limit": 2}),
    "a tool's exception, handled": (
        of_json(raising(ToolException("not today")), handle_tool_error="Try tomorrow."),
        {},
    ),
    "a refusal, handled": (
        of_json(schema=Limits, handle_validation_error="Say how many."),
        {"limit": 0},
    ),
}


async def outcome(run: Callable[[BaseTool, ToolCall], Any], name: str) -> Any:
    tool, args = TOOLS[name]
    try:
        return await run(tool, called(**args))
    except (ValueError, OSError, TypeError, ToolException) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", TOOLS)
async def test_a_direct_call_ends_as_the_wrapped_one(name: str):
    assert await outcome(result_of, name) == await outcome(through_wrapper, name)


async def test_a_listener_gets_its_events_and_only_then_is_the_wrapper_back():
    tool, own, outer = of_json(task_of), Listener(), Listener()
    assert await runs_directly(tool)
    tool.callbacks = [own]
    assert not await runs_directly(tool) and own.heard == ["start t", "end"]
    tool.callbacks = None
    run: Any = RunnableLambda(lambda _: None, afunc=lambda _: runs_directly(tool))
    assert not await run.ainvoke(None, {"callbacks": [outer]}) and outer.heard == ["start t", "end"]
    assert await runs_directly(tool) and own.heard == ["start t", "end"]


class OwnRun(StructuredTool):
    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        return "its own run"


class OtherTool(BaseTool):
    name: str = "t"
    description: str = "Another class of tool."

    def _run(self, limit: int) -> str:
        return f"other {limit}"


async def with_config(limit: int, config: RunnableConfig) -> str:
    """Tells whether it has a config."""
    return f"{limit} {sorted(config)[:1]}"


async def with_callbacks(limit: int, callbacks: Any = None) -> str:
    """Tells whether it has callbacks."""
    return f"{limit} {callbacks is None}"


def blocking(limit: int) -> str:
    """Tells that it runs in a thread without a loop."""
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
    return f"thread {limit}"


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (OwnRun(name="t", description="x", args_schema=JSON_SCHEMA, coroutine=echo), "its own run"),
        (OtherTool(), "other 1"),
        (StructuredTool.from_function(coroutine=with_config), "1 ['callbacks']"),
        (StructuredTool.from_function(coroutine=with_callbacks), "1 False"),
        (StructuredTool.from_function(func=blocking), "thread 1"),
        (of_json(handle_tool_error=True), "[('limit', 1)]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_wrapper_runs_what_is_its_own_work(tool: BaseTool, text: str):
    answer, expected = (
        await result_of(tool, called(limit=1)),
        await through_wrapper(tool, called(limit=1)),
    )
    assert answer.text == expected.text == text
