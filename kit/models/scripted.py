"""A chat model for tests: replies by a script, at scripted delays, and lists the lines that were never used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from kit.models.asynchronous import AsyncChatModel
from kit.models.message import call_chunks, token_count

_counter = iter(range(1, 1 << 62))


@dataclass(frozen=True)
class Line:
    """One reply of a scripted model."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    """Tool calls as (tool name, arguments); a string is what the model writes in place of them."""
    delay: float = 0.0
    """Seconds before the first token."""
    pieces: Sequence[str] = ()
    """The text as it streams; empty means in one piece."""
    pace: float = 0.0
    """Seconds between pieces."""
    error: BaseException | None = None
    """Raised after `delay` instead of answering."""
    ids: Sequence[str] = field(default=())
    """Tool call ids; empty means fresh ones."""

    def tool_calls(self) -> list[ToolCall]:
        calls: list[ToolCall] = []
        for number, (name, args) in enumerate(self.calls):
            call_id = self.ids[number] if self.ids else f"call_{next(_counter):06d}"
            calls.append(ToolCall(name=name, args=cast("Any", args), id=call_id, type="tool_call"))
        return calls


Script = Line | str | Callable[[list[BaseMessage]], "Line | str"]
"""A reply, a bare text, or a function of the messages seen."""


class ScriptedModel(AsyncChatModel):
    """Answers its script line by line; a single callable answers every call.

    Set `disable_streaming=True` for a model that cannot stream. `seen` holds the messages of every call.
    """

    script: list[Any]
    """Lines in order, or one callable for all calls."""
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list[list[BaseMessage]])
    _next_line: int = PrivateAttr(default=0)

    def __init__(self, *script: Script, **fields: Any):
        fields["script"] = list(script)
        super().__init__(**fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def seen(self) -> list[list[BaseMessage]]:
        return self._requests

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=list(tools), **kwargs)

    def _next(self, messages: list[BaseMessage]) -> Line:
        self._requests.append(list(messages))
        if len(self.script) == 1 and callable(self.script[0]):
            line: Any = self.script[0](messages)
        elif self._next_line < len(self.script):
            line = self.script[self._next_line]
            self._next_line += 1
            if callable(line):
                line = line(messages)
        else:
            raise AssertionError(
                f"the script of {self.name or 'this model'} is over after {self._next_line} lines"
            )
        if isinstance(line, str):
            return Line(line)
        return line

    def _usage(self, messages: list[BaseMessage], line: Line) -> UsageMetadata:
        read = 0
        for message in messages:
            read += len(str(message.content))
        wrote = len(line.text)
        for _, args in line.calls:
            wrote += len(str(args))
        return token_count(read // 4, wrote // 4)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        line = self._next(messages)
        await asyncio.sleep(line.delay)
        if line.error is not None:
            raise line.error
        whole: list[Any] = []
        broken: list[Any] = []
        for call in cast("list[Any]", line.tool_calls()):
            # A provider's client sorts out arguments that are no JSON in the same way.
            if type(call["args"]) is str:
                broken.append({**call, "type": "invalid_tool_call", "error": None})
            else:
                whole.append(call)
        usage = self._usage(messages, line)
        message = AIMessage(
            line.text, tool_calls=whole, invalid_tool_calls=broken, usage_metadata=usage
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        line = self._next(messages)
        await asyncio.sleep(line.delay)
        if line.error is not None:
            raise line.error
        # A stream of no text has no piece of it: an empty one would end the wait for the first token.
        for piece in line.pieces or filter(None, [line.text]):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
            await asyncio.sleep(line.pace)
        calls = call_chunks(line.tool_calls())
        for chunk, (_, arguments) in zip(calls, line.calls, strict=True):
            if isinstance(arguments, str):
                chunk["args"] = arguments
        usage = self._usage(messages, line)
        end = AIMessageChunk(
            content="", tool_call_chunks=calls, usage_metadata=usage, chunk_position="last"
        )
        yield ChatGenerationChunk(message=end)
