"""Plays one take: the reply, the result or the failure, in the time it took then."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, messages_from_dict

from kit.core.bodies.call import CallFailure
from kit.core.event import Body
from kit.runtime.budget import OverBudget
from kit.runtime.recording.recorded_call import Take
from kit.runtime.speech.narration import Hear, NarrationFilter, narration_filter
from kit.tools.tool import ToolResult

Sleep = Callable[[float], Awaitable[None]]
"""Waits so many recorded seconds."""
_EXCEPTIONS: Mapping[str, type[BaseException]] = {
    "timeout": TimeoutError,
    "budget": OverBudget,
}
"""Exceptions that a turn tells apart from others; of the rest it only tells the name."""


async def replay(take: Take, hear: Hear | None, sleep: Sleep) -> AIMessage:
    """A model's reply as it was recorded, in its time, or the failure; a call that was given up
    waits to be given up again."""
    first = take.first or 0.0
    await sleep(first)
    rest = max(0.0, take.seconds - first)
    if hear is not None:
        hear = narration_filter(hear)
        for place, piece in enumerate(take.pieces):
            if place:
                await sleep(rest / len(take.pieces))
            hear(piece)
        rest /= max(1, len(take.pieces))
    if take.broken is None or take.broken.kind != "cancelled":
        await sleep(rest)
    if take.broken is not None:
        await _fail(take.broken)
    message = cast("AIMessage", messages_from_dict([take.message or {}])[0])
    if isinstance(hear, NarrationFilter):
        hear.end()
        if message.tool_calls:
            hear("", message.tool_calls[0]["name"])
    return message


async def replay_tool(take: Take, emit: Callable[[Body], None], sleep: Sleep) -> ToolResult:
    """A tool's result as it was recorded, in its time, with what the tool said meanwhile; or the failure."""
    now = 0.0
    for at, body in take.told:
        await sleep(at - now)
        now = at
        emit(body)
    if take.broken is None or take.broken.kind != "cancelled":
        await sleep(max(0.0, take.seconds - now))
    if take.broken is not None:
        await _fail(take.broken)
    return take.result or ToolResult(text="")


async def _fail(failure: CallFailure) -> None:
    """Raises what the recorded call raised; one that was given up waits for ever."""
    if failure.kind == "cancelled":
        await asyncio.get_running_loop().create_future()
    exception_class = _EXCEPTIONS.get(failure.kind)
    if failure.type == "CancelledError":  # raised by the call itself: nobody gave it up
        exception_class = asyncio.CancelledError
    if exception_class is None:
        # What reads the trace of a failed call sees the class of its exception.
        exception_class = type(failure.type, (Exception,), {})
    error: Any = exception_class(failure.text)
    error.status_code = failure.status
    error.body = {"message": failure.message}
    raise error
