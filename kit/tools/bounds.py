"""Holds one attempt of a tool within its limits: its time, a place among the calls at once, a
thread where it is synchronous."""

import asyncio
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import Thread
from typing import Any, cast

from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool, StructuredTool, Tool

from kit.core.event import Body
from kit.tools.direct_call import read_answer, result_of
from kit.tools.limits import ToolLimits
from kit.tools.tool import UNAVAILABLE, ToolResult, tool_context, within

THREADS = 16
"""Threads of a synchronous tool that says nothing of `at_once`: one that hangs costs no more than these."""
_runners = attrgetter("ainvoke", "arun", "_arun")
_ON_EXECUTOR = tuple(map(_runners, (BaseTool, StructuredTool, Tool)))
"""Of classes that run a synchronous tool on the loop's executor, whose threads a hanging tool would
use up for everybody."""


@dataclass(frozen=True, slots=True)
class ToolBounds:
    """The limits of one tool with the places that all its calls share."""

    limits: ToolLimits
    places: asyncio.Semaphore | None = None

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


class _DaemonThreads(Executor):
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


_DAEMONS = _DaemonThreads()
