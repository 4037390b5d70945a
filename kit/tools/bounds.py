"""Runs one attempt of a tool within its limits: its time, a place among the calls at once, a thread where it is
synchronous.

A tool's own coroutine is awaited where LangChain's wrapper around it has nobody to tell: 13 microseconds instead of
180. Given up are a task and a context of its own for each call: a tool that never awaits keeps the loop, and a context
variable that a tool sets stays set for its caller. Arguments are read as the wrapper reads them: a pydantic schema
validates and fills in defaults and injected ids, a plain JSON schema does not.

The wrapper runs every other call: with a listener (as for a model), with `handle_tool_error` or
`handle_validation_error`, for a synchronous function, for one that takes LangChain's config or callbacks, for classes
of other tools.
"""

import asyncio
import base64
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from operator import attrgetter
from threading import Thread
from types import FunctionType, MethodType
from typing import Any, TypeAlias, cast

import langchain_core.tools.base
from langchain_core.callbacks import AsyncCallbackManagerForToolRun, CallbackManagerForToolRun
from langchain_core.messages.tool import ToolCall, ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import Field
from pydantic_core import PydanticSerializationError, to_json

from kit.core.event import Body
from kit.core.picture import Picture, image_block, sniff_media_type
from kit.core.schema.json_value import is_object
from kit.models.direct_call import has_listeners
from kit.tools.tool import UNAVAILABLE, ToolLimits, ToolResult, tool_context, within

THREADS = 16
"""Threads of a synchronous tool that says nothing of `at_once`: one that hangs costs no more than these."""
_RUNNERS = ("ainvoke", "arun", "_arun")
_runners = attrgetter(*_RUNNERS)
ROWS = 50
"""Rows of a frame that a model reads."""


Objection: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[str | None]]
"""Says of the arguments of a call, defaults among them, why it cannot be done; None where it can.

A tool that asks its user first is then neither asked about nor run: the words are its result.
"""


class FunctionTool(StructuredTool):
    """A tool over a function of one's own: what it returns becomes text that a model can read."""

    impossible: Objection | None = Field(default=None, exclude=True, repr=False)

    def _run(
        self,
        *args: Any,
        config: RunnableConfig,
        run_manager: CallbackManagerForToolRun | None = None,
        **kwargs: Any,
    ) -> Any:
        result = super()._run(*args, config=config, run_manager=run_manager, **kwargs)
        return readable(result, self.name)

    async def _arun(
        self,
        *args: Any,
        config: RunnableConfig,
        run_manager: AsyncCallbackManagerForToolRun | None = None,
        **kwargs: Any,
    ) -> Any:
        result = await super()._arun(*args, config=config, run_manager=run_manager, **kwargs)
        return readable(result, self.name)


def readable(value: Any, tool: str) -> Any:
    """What a function returned, as LangChain makes a message of it: a dataclass, a pydantic model, a
    frame, and what is made of these as JSON, a picture as a block of content, anything else as it is.

    Raises TypeError for what no model can read: other bytes, figures, an object whose text is its address;
    PictureError for a picture that is too large.
    """
    # nearly every result
    if isinstance(value, str) and not value.startswith(_DATA):
        return value
    picture = _picture_in(value)
    if picture is not None:
        return [image_block(picture)]
    if isinstance(value, str | ToolOutputMixin):
        return value
    package = type(value).__module__.partition(".")[0]
    if package in ("pandas", "polars"):
        return _rows(value, package)
    if package == "numpy":
        value = value.tolist()
    if isinstance(value, set | frozenset):
        # In one order, whichever the set has in this process.
        value = sorted(cast("set[Any]", value), key=str)
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        pass
    else:
        # LangChain writes it as JSON itself, and knows messages made of blocks.
        return value
    advice = (
        "which no model can read; return text, numbers, lists, dicts, dataclasses, pydantic "
        "models, a frame or a picture, and of a file say what is in it"
    )
    if isinstance(value, bytes | bytearray):
        raise TypeError(f"{tool}() returned {len(value):,} bytes, {advice}")
    try:
        return to_json(value).decode()
    except (PydanticSerializationError, ValueError) as error:
        kind = type(value).__qualname__
        raise TypeError(f"{tool}() returned a value of type {kind}, {advice}: {error}") from error


_DATA = "data:image/"
_DATA_URI = re.compile(rf"{_DATA}[a-z]+;base64,([A-Za-z0-9+/=\s]+)")


def _picture_in(value: Any) -> Picture | None:
    """The picture that a value is: its bytes, one of Pillow's, or its data URI. Raises PictureError."""
    data: bytes | None = None
    if isinstance(value, bytes | bytearray):
        data = bytes(value)
    elif isinstance(value, str):
        data = _bytes_of_uri(value)
    elif type(value).__module__.startswith("PIL."):
        buffer = BytesIO()
        value.save(buffer, "PNG")
        data = buffer.getvalue()
    if data is None or sniff_media_type(data) is None:
        return None
    return Picture.of(data)


def _bytes_of_uri(text: str) -> bytes | None:
    """What a text holds that is one data URI of a picture and nothing else."""
    match = _DATA_URI.fullmatch(text)
    if match is None:
        return None
    try:
        return base64.b64decode(match[1])
    except ValueError:
        return None


def _pictures_of(content: Any) -> tuple[Picture, ...]:
    """The pictures among the blocks of a message, those of LangChain's and of OpenAI's form. Raises PictureError."""
    pictures: list[Picture] = []
    for block in content:
        if not is_object(block):
            continue
        data = None
        if block.get("type") == "image" and "base64" in block:
            data = base64.b64decode(block["base64"])
        elif block.get("type") == "image_url":
            data = _bytes_of_uri(str(block["image_url"]["url"]))
        if data is not None:
            pictures.append(Picture.of(data))
    return tuple(pictures)


def _rows(frame: Any, package: str) -> str:
    """The first rows of a frame or a series, and which of how many they are."""
    if type(frame).__name__ == "Series":
        frame = frame.to_frame()
    count = len(frame)
    head = frame.head(ROWS)
    if package == "pandas":
        rows = head.to_json(orient="records", date_format="iso")
    else:
        rows = head.write_json()
    return f"rows {min(1, count)} to {min(ROWS, count):,} of {count:,}\n{rows}"


@dataclass(frozen=True, slots=True)
class ToolBounds:
    """The limits of one tool with the places that all its calls share."""

    limits: ToolLimits
    places: asyncio.Semaphore | None = None
    is_act: bool = False
    """Whether it is an act, by its limits."""

    async def result_of(self, tool: BaseTool, call: ToolCall) -> ToolResult:
        """Runs one attempt; once its time is over the result is a time-out. Raises whatever the
        tool raises.

        A place is free again when the work on it ends. A thread cannot be stopped: one whose caller
        has given up keeps its place.
        """
        milliseconds = self.limits.timeout_ms
        timer = asyncio.timeout(milliseconds / 1000 if milliseconds else None)
        places = self.places
        missing = "answer"
        try:
            async with timer:
                if places is None:
                    return await result_of(tool, call)
                missing = "place among its calls at once"
                await places.acquire()
                missing = "answer"
                # Asked of the tool of this call: an evaluation puts another one in its place.
                if is_synchronous(tool):
                    return await _on_thread(tool, call, places)
                try:
                    return await result_of(tool, call)
                finally:
                    places.release()
        except TimeoutError:
            # One that the tool itself raises is an exception of the tool's.
            if not timer.expired() or not milliseconds:
                raise
            detail = f"no {missing} within {milliseconds / 1000:g} s"
            return ToolResult(text=UNAVAILABLE, fault="timeout", detail=detail)


_ON_EXECUTOR = tuple(map(_runners, (BaseTool, StructuredTool, Tool, FunctionTool)))
"""Of classes that run a synchronous tool on the loop's executor, whose threads a hanging tool would
use up for everybody."""


def is_synchronous(tool: BaseTool) -> bool:
    """Whether LangChain would run this tool on a thread."""
    return getattr(tool, "coroutine", None) is None and _runners(type(tool)) in _ON_EXECUTOR


async def _on_thread(tool: BaseTool, call: ToolCall, places: asyncio.Semaphore) -> ToolResult:
    """Runs a synchronous tool on a thread of its own. What it reports comes through the loop, and
    nothing once it is late."""
    loop = asyncio.get_running_loop()
    context = tool_context()
    late = False

    def forward(body: Body) -> None:
        if not late:
            context.emit(body)

    def emit(body: Body) -> None:
        # RuntimeError: the loop is closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(forward, body)

    def work() -> Any:
        try:
            return tool.invoke(cast("Any", {**call, "type": "tool_call"}))
        finally:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(places.release)

    with within(replace(context, emit=emit)):
        variables = copy_context()
    try:
        answer = loop.run_in_executor(_DAEMONS, variables.run, work)
    except RuntimeError:
        # No thread can be started.
        places.release()
        raise
    try:
        return read_answer(await answer)
    finally:
        # The thread goes on after a time-out, and its events would come after the call's end.
        late = True


class DaemonThreads(ThreadPoolExecutor):
    """Runs each job on a thread that neither the loop nor the process waits for when it ends."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except StopIteration as error:
                # The one exception that no future takes.
                future.set_exception(RuntimeError(repr(error)))
            except BaseException as error:
                # As in every executor.
                future.set_exception(error)

        Thread(target=work, name="tool", daemon=True).start()
        return future


_DAEMONS = DaemonThreads()


_langchain: Any = langchain_core.tools.base
_OF_LANGCHAIN = (_runners(StructuredTool), _runners(FunctionTool))
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
    if isinstance(tool, FunctionTool):
        response = readable(response, tool.name)
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
    list, an item a line; of a picture, what it is in words."""
    if isinstance(answer.artifact, ToolResult):
        return answer.artifact
    content: Any = answer.content
    if isinstance(content, str):
        return ToolResult(text=content)
    # LangChain's own text of a list joins its items without anything between them.
    if content and all(isinstance(item, str) for item in content):
        return ToolResult(text="\n".join(content))
    pictures = _pictures_of(content)
    words = [str(answer.text), *[picture.words for picture in pictures]]
    return ToolResult(text="\n".join(filter(None, words)), pictures=pictures)


def _is_plain(tool: BaseTool) -> bool:
    if (
        not isinstance(tool, StructuredTool)
        or _runners(type(tool)) not in _OF_LANGCHAIN
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
