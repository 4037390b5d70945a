"""Plays one recorded call: the reply, the result or the failure, in the time it took then."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, messages_from_dict

from kit.core.bodies.call import CallFailure
from kit.core.event import Body
from kit.core.outcome import Reason
from kit.runtime.budget import OverBudget
from kit.runtime.recording.recorded_call import RecordedCall
from kit.runtime.speech.narration import Hear, NarrationFilter, narration_filter
from kit.tools.tool import ToolResult

Sleep = Callable[[float], Awaitable[None]]
"""Waits so many recorded seconds."""
_EXCEPTIONS: Mapping[Reason, type[BaseException]] = {"timeout": TimeoutError, "budget": OverBudget}
"""Exceptions that a turn tells apart from others."""


async def replay(call: RecordedCall, hear: Hear | None, sleep: Sleep) -> AIMessage:
    """A model's reply as it was recorded, in its time, or the failure; a call that was given up
    waits to be given up again."""
    first = call.first or 0.0
    await sleep(first)
    seconds = max(0.0, call.seconds - first)
    if hear is not None:
        hear = narration_filter(hear)
        pause = seconds / max(1, len(call.pieces))
        for number, piece in enumerate(call.pieces):
            if number:
                await sleep(pause)
            hear(piece)
        seconds = pause  # after the last piece
    await _end(call, seconds, sleep)
    message = cast("AIMessage", messages_from_dict([call.message or {}])[0])
    if isinstance(hear, NarrationFilter):
        hear.end()
        if message.tool_calls:
            hear("", message.tool_calls[0]["name"])
    return message


async def replay_tool(call: RecordedCall, emit: Callable[[Body], None], sleep: Sleep) -> ToolResult:
    """A tool's result as it was recorded, in its time, with what the tool said meanwhile; or the failure."""
    now = 0.0
    for second, body in call.told:
        await sleep(second - now)
        now = second
        emit(body)
    await _end(call, max(0.0, call.seconds - now), sleep)
    return call.result or ToolResult(text="")


async def _end(call: RecordedCall, seconds: float, sleep: Sleep) -> None:
    """Waits for the end of a call, and raises what it raised; one that was given up waits for ever."""
    failure = call.broken
    if failure is None:
        await sleep(seconds)
        return
    if failure.kind == "cancelled":
        await asyncio.get_running_loop().create_future()
    await sleep(seconds)
    raise _exception(failure)


def _exception(failure: CallFailure) -> BaseException:
    """Returns an exception of the kind and the name that a call raised."""
    kind = _EXCEPTIONS.get(failure.kind)
    if failure.type == "CancelledError":  # raised by the call itself: nobody gave it up
        kind = asyncio.CancelledError
    if kind is None:
        # Whoever reads the trace of a failed call sees the class of its exception.
        kind = type(failure.type, (Exception,), {})
    error: Any = kind(failure.text)
    error.status_code = failure.status
    error.body = {"message": failure.message}
    return error
