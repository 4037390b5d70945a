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
MAX_CALLS = 8
"""Calls one schema-bound reply may hold; small models repeat themselves until something stops them."""
_TRIES = 64
_KEPT = ("type", "enum", "const", "required", "properties", "items", "anyOf")
_OPENS = re.compile(r"[{\[`<]")
_CALL_AHEAD = re.compile(r'(?:```\w*|<\w+>)?\[*\{"(?:name|tool|type|function|calls|tool_calls)"')
_EMPTY_FRAME = re.compile(r"```\w*\s*```|<(\w+)>\s*</\1>")


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

    def bind_tools(
        self, tools: Tools, *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        asked, options, names = _asked(messages, **kwargs)
        return _read_schema(self.inner._generate(asked, stop, run_manager, **options), names)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        asked, options, names = _asked(messages, **kwargs)
        return _read_schema(await self.inner._agenerate(asked, stop, run_manager, **options), names)

    def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        asked, options, names = _asked(messages, **kwargs)
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
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        return _read_text(self.inner._generate(messages, stop, run_manager, **kwargs), kwargs.get("tools"))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        return _read_text(await self.inner._agenerate(messages, stop, run_manager, **kwargs), kwargs.get("tools"))

    def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = self.inner._astream(messages, stop, run_manager, **kwargs)
        tools = kwargs.get("tools")
        return _watched(stream, tools) if tools else stream


async def _watched(stream: AsyncIterator[ChatGenerationChunk], tools: Sequence[dict[str, Any]]) -> AsyncIterator[ChatGenerationChunk]:
    held: list[ChatGenerationChunk] = []
    native = False
    async with aclosing(cast(Any, stream)):
        async for chunk in stream:
            native = native or bool(cast(AIMessageChunk, chunk.message).tool_call_chunks)
            content = chunk.message.content
            if not held and (native or not isinstance(content, str) or not _OPENS.search(content)):
                yield chunk
                continue
            held.append(chunk)
            if native or not _may_be_call(_text_of(held)):
                for late in held:
                    yield late
                held.clear()
    text, calls = _split(_text_of(held), _names(tools))
    if not calls:
        for late in held:
            yield late
        return
    if text:
        yield ChatGenerationChunk(message=AIMessageChunk(content=text))
    yield _call_chunk(calls)
    for late in held:
        yield ChatGenerationChunk(message=late.message.model_copy(update={"content": ""}), generation_info=late.generation_info)
