"""Tool calls from models that have none of their own: as an answer bound to a JSON schema, or as
JSON found in the text."""

import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from kit.models.asynchronous import AsyncChatModel
from kit.models.json_calls import read_answer, say_so_far, take_calls
from kit.models.json_request import plain_request
from kit.models.message import call_chunks, whole_message

Tools = Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool]
_AHEAD = 32
"""Characters, white space aside, after which a text that does not look like a call is none."""
_OPENS = re.compile(r"[{\[`<]")
_LOOKS_LIKE = re.compile(r'\A(?:```\w*|<\w+>)?\[*\{"(?:name|tool|type|function|calls|tool_calls)"')


class JsonRouting(AsyncChatModel):
    """A model without tool calls, made to route: it answers by schema, and the answer becomes tool calls.

    With tools bound and no tool result at the end, the model is shown the tools as text and answers
    `{"say": text, "calls": [{"name", "arguments"}]}`; what it says streams while it is written, the calls come last.
    After tool results, and with no tools bound, it answers in plain text. A forced tool (`tool_choice` a name, "any" or
    "required") is asked for by schema wherever the conversation stands.
    """

    inner: BaseChatModel
    schema_in: Literal["options", "body"] = "options"
    """Where the schema goes: LangChain's `response_format`, or OpenAI's chat body as it is. The
    latter returns an answer that was cut off at the token limit, from which whole calls are kept;
    with the former the client raises instead."""

    @property
    def _llm_type(self) -> str:
        return f"json-routing-{self.inner._llm_type}"

    def bind_tools(
        self, tools: Tools, *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Keeps the tools for the request; other options of native binding have no meaning here."""
        return self.bind(
            tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice
        )

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        plain, options, names = self._request(messages, kwargs)
        result = await self.inner._agenerate(plain, **options)
        if names:
            return await agenerate_from_stream(_read_answer(_stream_of(result), names))
        return result

    def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        plain, options, names = self._request(messages, kwargs)
        stream = self.inner._astream(plain, **options)
        if names:
            return _read_answer(stream, names)
        return stream

    def _request(
        self, messages: list[BaseMessage], kwargs: dict[str, Any]
    ) -> tuple[list[BaseMessage], dict[str, Any], tuple[str, ...]]:
        plain, options, names = plain_request(messages, **kwargs)
        if names and self.schema_in == "body":
            # What a call gives takes the place of the model's own, so that comes along.
            extra: Any = getattr(self.inner, "extra_body", None) or {}
            options["extra_body"] = {**extra, "response_format": options.pop("response_format")}
        return plain, options, names


class NativeOrJson(AsyncChatModel):
    """A model with tool calls of its own that sometimes writes one as JSON in its text: that one counts as well.

    Text streams through untouched until it looks like the beginning of such a call; then it is held back until that is
    decided. Without bound tools nothing stands between the caller and the model.
    """

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    def bind_tools(self, tools: Tools, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Binds the way the model itself does."""
        bound = cast("RunnableBinding[Any, Any]", self.inner.bind_tools(tools, **kwargs))
        return self.bind(**bound.kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        result = await self.inner._agenerate(messages, *args, **kwargs)
        tools = kwargs.get("tools")
        if tools and "{" in result.generations[0].message.text:
            stream = _hold_back_calls(_stream_of(result), tools, messages)
            return await agenerate_from_stream(stream)
        return result

    def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = self.inner._astream(messages, *args, **kwargs)
        tools = kwargs.get("tools")
        if tools:
            return _hold_back_calls(stream, tools, messages)
        return stream


async def _stream_of(result: ChatResult) -> AsyncIterator[ChatGenerationChunk]:
    """Yields a whole reply as a stream of one chunk, so that it is read as every other stream is."""
    message = result.generations[0].message
    yield ChatGenerationChunk(message=AIMessageChunk(**message.model_dump(exclude={"type"})))


async def _read_answer(
    stream: AsyncIterator[ChatGenerationChunk], names: Collection[str]
) -> AsyncIterator[ChatGenerationChunk]:
    """Yields what an answer by schema says while it comes, and at its end the calls."""
    chunks: list[AIMessageChunk] = []
    # Where OpenAI's client says why the reply ended, without which it counts as cut off.
    ending: dict[str, Any] = {}
    raw = ""
    shown = ""
    # AsyncIterator by its type, and a generator in fact, which has to be closed.
    source: Any = stream
    async with aclosing(source):
        async for chunk in source:
            chunks.append(chunk.message)
            ending |= chunk.generation_info or {}
            raw += chunk.text
            say = say_so_far(raw) if chunk.text else ""
            if len(say) > len(shown):
                yield _text_chunk(say[len(shown) :])
                shown = say
    say, calls = read_answer(raw, names)
    if len(say) > len(shown):
        yield _text_chunk(say[len(shown) :])
    if chunks:
        yield _call_chunk(calls, whole_message(chunks), ending)


async def _hold_back_calls(
    stream: AsyncIterator[ChatGenerationChunk],
    tools: Sequence[Any],
    messages: Sequence[BaseMessage],
) -> AsyncIterator[ChatGenerationChunk]:
    buffer: list[ChatGenerationChunk] = []
    native = False
    sure = False
    source: Any = stream
    async with aclosing(source):
        async for chunk in source:
            native = native or bool(chunk.message.tool_call_chunks)
            if not buffer and (native or not _OPENS.search(chunk.text)):
                yield chunk
                continue
            buffer.append(chunk)
            start: int | None = 0
            if native:
                start = None
            elif not sure:
                start, sure = _find_call_start(_text(buffer))
            for ready in _pop_ready(buffer, start):
                yield ready
    if not buffer:
        return
    text, calls = take_calls(_text(buffer), _names(tools), messages)
    if not calls:
        for chunk in buffer:
            yield chunk
        return
    if text:
        yield _text_chunk(text)
    yield _call_chunk(calls, AIMessage(""))
    # What else the chunks carry, such as counts of tokens, is still owed.
    for chunk in buffer:
        message = chunk.message.model_copy(update={"content": ""})
        yield ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _find_call_start(text: str) -> tuple[int | None, bool]:
    """Where in the text a call begins or may yet turn out to begin (None: nowhere), and whether that is sure."""
    for opener in _OPENS.finditer(text):
        ahead = "".join(text[opener.start() :].split())
        sure = bool(_LOOKS_LIKE.match(ahead))
        if sure or len(ahead) < _AHEAD:
            return opener.start(), sure
    return None, False


def _pop_ready(buffer: list[ChatGenerationChunk], start: int | None) -> list[ChatGenerationChunk]:
    """Takes the chunks that end before `start` off the list: all of them where no call may begin."""
    count = end = 0
    while count < len(buffer) and (start is None or end + len(buffer[count].text) <= start):
        end += len(buffer[count].text)
        count += 1
    ready = buffer[:count]
    del buffer[:count]
    return ready


def _text(chunks: Sequence[ChatGenerationChunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def _text_chunk(text: str) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


def _names(tools: Sequence[Any]) -> set[str]:
    return {tool["function"]["name"] for tool in tools}


def _call_chunk(
    calls: Sequence[ToolCall], source: AIMessage, ending: dict[str, Any] | None = None
) -> ChatGenerationChunk:
    message = AIMessageChunk(
        content="",
        tool_call_chunks=call_chunks(calls),
        usage_metadata=source.usage_metadata,
        response_metadata=source.response_metadata,
        id=source.id,
    )
    return ChatGenerationChunk(message=message, generation_info=ending)
