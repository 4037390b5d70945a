"""Tool calls from models that have none of their own: as an answer bound to a JSON schema, or as JSON found in the text."""

import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from typing import Any, cast
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.json import parse_partial_json
from langchain_core.utils.json_schema import dereference_refs

Tools = Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool]
Function = dict[str, Any]
"""The `function` part of a tool in OpenAI's form: name, description, parameters."""

MAX_CALLS = 8
"""Calls one schema-bound reply may hold; small models repeat themselves until something stops them."""
_TRIES = 64
"""Places in a text where JSON is looked for, so that hostile text costs linear time."""
_AHEAD = 32
"""Characters, white space aside, after which a text that does not look like a call is none."""
_GRAMMAR = ("type", "enum", "const", "required")
"""Schema keywords that survive; llama.cpp refuses some patterns and long repetitions."""

_OPENS = re.compile(r"[{\[`<]")
_JSON = re.compile(r"[{\[]")
_LOOKS_LIKE = re.compile(r'(?:```\w*|<\w+>)?\[*\{"(?:name|tool|type|function|calls|tool_calls)"')
_FENCED = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.DOTALL)
_EMPTY_FRAME = re.compile(r"```\w*\s*(?:```|$)|<(\w+)>\s*(?:</\1>|$)")
_SAY = re.compile(r'\s*\{\s*"say"\s*:\s*("(?:[^"\\]|\\.)*)')
_decoder = json.JSONDecoder()


class JsonRouting(BaseChatModel):
    """A model without tool calls, made to route: it answers by schema, and the answer becomes tool calls.

    With tools bound and no tool result at the end, the model is shown the tools as text and answers
    `{"say": text, "calls": [{"name", "arguments"}]}`. After tool results, and with no tools bound, it answers in plain text.
    A forced tool (`tool_choice` a name, "any" or "required") is asked for by schema wherever the conversation stands.
    """

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return f"json-routing-{self.inner._llm_type}"

    def bind_tools(self, tools: Tools, *, tool_choice: Any = None, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked, options, names = asked(messages, **kwargs)
        return _read_schema(self.inner._generate(asked, stop, run_manager, **options), names)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked, options, names = asked(messages, **kwargs)
        return _read_schema(await self.inner._agenerate(asked, stop, run_manager, **options), names)

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        asked, options, names = asked(messages, **kwargs)
        if not names:
            return self.inner._astream(asked, stop, run_manager, **options)
        return self._astream_routed(asked, stop, run_manager, names, options)

    async def _astream_routed(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: AsyncCallbackManagerForLLMRun | None,
        names: Collection[str],
        options: dict[str, Any],
    ) -> AsyncIterator[ChatGenerationChunk]:
        result = _read_schema(await self.inner._agenerate(messages, stop, run_manager, **options), names)
        message = cast(AIMessage, result.generations[0].message)
        if message.text:
            yield ChatGenerationChunk(message=AIMessageChunk(content=message.text))
        yield _call_chunk(message.tool_calls, message)


class NativeOrJson(BaseChatModel):
    """A model with tool calls of its own that sometimes writes one as JSON in its text: that one counts as well.

    Text streams through untouched until it looks like the beginning of such a call; then it is held back until that is
    decided. Without bound tools nothing stands between the caller and the model.
    """

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    def bind_tools(self, tools: Tools, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        bound = cast(RunnableBinding[Any, Any], self.inner.bind_tools(tools, **kwargs))
        return self.bind(**bound.kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _read_text(self.inner._generate(messages, stop, run_manager, **kwargs), kwargs.get("tools"))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _read_text(await self.inner._agenerate(messages, stop, run_manager, **kwargs), kwargs.get("tools"))

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = self.inner._astream(messages, stop, run_manager, **kwargs)
        tools = kwargs.get("tools")
        return _watched(stream, tools) if tools else stream


async def _watched(
    stream: AsyncIterator[ChatGenerationChunk], tools: Sequence[dict[str, Any]]
) -> AsyncIterator[ChatGenerationChunk]:
    held: list[ChatGenerationChunk] = []
    native = sure = False
    async with aclosing(cast(Any, stream)):
        async for chunk in stream:
            native = native or bool(cast(AIMessageChunk, chunk.message).tool_call_chunks)
            content = chunk.message.content
            if not held and (native or not isinstance(content, str) or not _OPENS.search(content)):
                yield chunk
                continue
            held.append(chunk)
            start = None if native else 0
            if not native and not sure:
                start, sure = _possible(_text(held))
            while held and (start is None or len(held[0].text) <= start):
                start = None if start is None else start - len(held[0].text)
                yield held.pop(0)
    text, calls = split(_text(held), [tool["function"]["name"] for tool in tools])
    if calls:
        if text:
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        yield _call_chunk(calls)
    for late in held:
        message = late.message.model_copy(update={"content": ""}) if calls else late.message
        yield ChatGenerationChunk(message=message, generation_info=late.generation_info)


def _text(chunks: Sequence[ChatGenerationChunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def _possible(text: str) -> tuple[int | None, bool]:
    """Where in the text a call begins or may yet turn out to begin, and whether that is sure."""
    for opener in _OPENS.finditer(text):
        ahead = "".join(text[opener.start() :].split())
        sure = bool(_LOOKS_LIKE.match(ahead))
        if sure or len(ahead) < _AHEAD:
            return opener.start(), sure
    return None, False


def _call_chunk(calls: Sequence[ToolCall], source: AIMessage | None = None) -> ChatGenerationChunk:
    chunks = [
        tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
        for index, call in enumerate(calls)
    ]
    if source is None:
        return ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=chunks))
    message = AIMessageChunk(
        content="",
        tool_call_chunks=chunks,
        usage_metadata=source.usage_metadata,
        response_metadata=source.response_metadata,
        id=source.id,
    )
    return ChatGenerationChunk(message=message)


def _read_text(result: ChatResult, tools: Sequence[dict[str, Any]] | None) -> ChatResult:
    message = cast(AIMessage, result.generations[0].message)
    if not tools or message.tool_calls or not isinstance(message.content, str) or "{" not in message.content:
        return result
    text, calls = split(message.content, [tool["function"]["name"] for tool in tools])
    return _replaced(result, text, calls) if calls else result


def _read_schema(result: ChatResult, names: Collection[str]) -> ChatResult:
    return _replaced(result, *answer(result.generations[0].message.text, names)) if names else result


def _replaced(result: ChatResult, text: str, calls: list[ToolCall]) -> ChatResult:
    message = cast(AIMessage, result.generations[0].message)
    fresh = AIMessage(
        content=text,
        tool_calls=calls,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        id=message.id,
    )
    return ChatResult(generations=[ChatGeneration(message=fresh)], llm_output=result.llm_output)


