"""Wraps a chat model and injects the faults of the turn it serves; without faults it is the wrapped model."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import Runnable, RunnableConfig

from kit.core.fault import Fault, InjectedFault
from kit.core.fault_injection import active_faults, land, once
from kit.models.asynchronous import AsyncModel
from kit.models.direct_call import stream_reply
from kit.models.message import whole_message

REFUSAL = "I'm sorry, but I can't help with that."
STRANGE_TOOL = "ask_weather"
"""A name that a model might make up."""
Chunks = AsyncGenerator[Any, None]
Calls = list[ToolCall]


class FaultyModel(AsyncModel):
    """Wraps the model of one agent, its tools bound or not. Asynchronous only: `ainvoke` or `astream`."""

    def __init__(self, agent: str, inner: Runnable[Any, Any]):
        self._agent = agent
        self._inner = inner

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "FaultyModel":
        """The same with tools bound; raises TypeError when the wrapped model is not a chat model."""
        if not isinstance(self._inner, BaseChatModel):
            raise TypeError("the tools of this model are bound already")
        return FaultyModel(self._agent, self._inner.bind_tools(tools, **kwargs))

    def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """The wrapped model's own stream, or a disturbed one."""
        stream = stream_reply(self._inner, input, config, **kwargs)
        for fault in active_faults(self._agent, "model"):
            if _concerns(fault, input):
                land(fault)
                stream = _DISTURBANCES[fault.kind](fault, stream)
        return stream


def _concerns(fault: Fault, messages: Any) -> bool:
    """Whether a fault is about this call: the routing call is made before any tool has answered,
    the composing call after."""
    has_results = isinstance(messages, list) and any(
        isinstance(m, ToolMessage) for m in cast("list[Any]", messages)
    )
    match fault.kind:
        case "routing_fails" | "routing_hangs" | "unknown_tool" | "repeats_id":
            return not has_results
        case "drops_call":
            return not has_results and once(fault)
        case "composing_fails" | "composing_hangs":
            return has_results
        case _:
            return True


async def _fails(fault: Fault, stream: Chunks) -> Chunks:
    """Raises InjectedFault after the first piece, as a broken connection does."""
    async with aclosing(stream):
        async for chunk in stream:
            yield chunk
            break
    raise InjectedFault(fault)


async def _hangs(fault: Fault, stream: Chunks) -> Chunks:
    await asyncio.sleep(fault.pause)
    async with aclosing(stream):
        async for chunk in stream:
            yield chunk


async def _drips(fault: Fault, stream: Chunks) -> Chunks:
    async with aclosing(stream):
        async for chunk in stream:
            for piece in _words(chunk):
                await asyncio.sleep(fault.pause)
                yield piece


async def _refuses(fault: Fault, stream: Chunks) -> Chunks:
    """Refuses in the field that providers use for a refusal, without any text."""
    await stream.aclose()
    ending = {"finish_reason": "stop"}
    yield AIMessage("", additional_kwargs={"refusal": REFUSAL}, response_metadata=ending)


def _calling(change: Callable[[Calls], Calls]) -> Callable[[Fault, Chunks], Chunks]:
    """A stream whose calls are others; they are known at the end, so it comes in one piece."""

    async def disturb(fault: Fault, stream: Chunks) -> Chunks:
        message = whole_message([chunk async for chunk in stream])
        yield message.model_copy(update={"tool_calls": change(message.tool_calls)})

    return disturb


def _drop_last(calls: Calls) -> Calls:
    if len(calls) > 1:
        return calls[:-1]
    return calls


def _repeat_id(calls: Calls) -> Calls:
    """All with the id of the first; a single call is made twice."""
    several = calls if len(calls) > 1 else calls * 2
    return [{**call, "id": calls[0]["id"]} for call in several]


def _add_unknown_tool(calls: Calls) -> Calls:
    """One more, of a tool nobody bound."""
    query = str(calls[0]["args"].get("query", "")) if calls else ""
    strange = ToolCall(
        name=STRANGE_TOOL, args={"query": query}, id="call-strange", type="tool_call"
    )
    return [*calls, strange]


_DISTURBANCES: dict[str, Callable[[Fault, Chunks], Chunks]] = {
    "raise": _fails,
    "routing_fails": _fails,
    "composing_fails": _fails,
    "hang": _hangs,
    "routing_hangs": _hangs,
    "composing_hangs": _hangs,
    "slow_drip": _drips,
    "refuses": _refuses,
    "drops_call": _calling(_drop_last),
    "repeats_id": _calling(_repeat_id),
    "unknown_tool": _calling(_add_unknown_tool),
}


def _words(chunk: Any) -> list[Any]:
    """A chunk of several words as one chunk a word; what else it carries stays with the last."""
    if not isinstance(chunk, AIMessageChunk) or not isinstance(chunk.content, str):
        return [chunk]
    *pieces, last = re.findall(r"[^ ]* |[^ ]+", chunk.content) or [""]
    chunks: list[Any] = [AIMessageChunk(content=piece) for piece in pieces]
    return [*chunks, chunk.model_copy(update={"content": last})]
