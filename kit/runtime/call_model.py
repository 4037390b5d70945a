"""The one place a model is called: streams, counts, records, and leaves a span."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, messages_from_dict
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import Runnable

from kit.core.event import ModelEnded, ModelStarted, Purpose, ResponseId
from kit.core.model import ModelSpec
from kit.core.outcome import Usage
from kit.runtime.cassette import Cassette, Take, request_key
from kit.runtime.context import RunContext

Hear = Callable[[str], None]
"""Told of every piece of text as it arrives; "" says that a tool call has begun to arrive."""


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model with its tools already bound, and what is known about it."""

    spec: ModelSpec
    runnable: Runnable[Any, Any]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model said, once it has said all of it."""

    message: AIMessage
    text: str
    usage: Usage
    ttft: float | None

    @property
    def calls(self) -> list[ToolCall]:
        return self.message.tool_calls


async def call_model(
    model: BoundModel,
    messages: Sequence[BaseMessage],
    ctx: RunContext,
    *,
    agent: str,
    purpose: Purpose,
    hear: Hear | None = None,
    news: int = 1,
) -> ModelReply:
    """Calls a model and returns its whole reply; `hear` gets the text as it comes.

    `news` is how many of the last messages this agent has not shown a model before: they are the span's input.
    Whatever the model raises passes through, after its span has been closed.
    """
    started = ModelStarted(agent=agent, model=model.spec.key, purpose=purpose, input=tuple(_line(m) for m in messages[-news:]))
    span = ctx.opened(started)
    began = span.turn.log.now()
    try:
        message, first = await _answer(model, messages, span, hear)
    except BaseException as error:
        span.emit(ModelEnded(agent=agent, model=model.spec.key, error=f"{type(error).__name__}: {error}"))
        raise
    usage = _usage(message, model.spec)
    ctx.spent.append(usage)
    text = _text(message)
    response_id = message.response_metadata.get("id")
    if response_id:
        span.emit(ResponseId(agent=agent, response_id=str(response_id)))
    ttft = None if first is None else first - began
    calls = tuple(f"{call['name']}({call['args']})" for call in message.tool_calls)
    span.emit(ModelEnded(agent=agent, model=model.spec.key, text=text, calls=calls, usage=usage, ttft=ttft))
    return ModelReply(message, text, usage, ttft)


async def _answer(
    model: BoundModel, messages: Sequence[BaseMessage], ctx: RunContext, hear: Hear | None
) -> tuple[AIMessage, float | None]:
    cassette = ctx.turn.cassette
    if cassette is None:
        message, first, _ = await _stream(model, messages, ctx, hear)
        return message, first
    key = request_key(ctx.turn.place(ctx.path), model.spec.key, messages)
    request = _line(messages[-1])
    take = cassette.find(key, request)
    if take is not None:
        return _replay(take, hear), ctx.turn.log.now()
    return await _record(cassette, key, request, model, messages, ctx, hear)


async def _stream(
    model: BoundModel, messages: Sequence[BaseMessage], ctx: RunContext, hear: Hear | None
) -> tuple[AIMessage, float | None, list[str]]:
    """Collects chunks and merges them once: merging chunk by chunk costs two to four times as much."""
    chunks: list[Any] = []
    pieces: list[str] = []
    first: float | None = None
    calling = False
    stream = model.runnable.astream(messages)
    async with aclosing(cast("AsyncGenerator[Any]", stream)):
        async for chunk in stream:
            if first is None:
                first = ctx.turn.log.now()
            chunks.append(chunk)
            piece = chunk.content if type(chunk.content) is str else _text(chunk)
            if piece:
                pieces.append(piece)
                if hear is not None:
                    hear(piece)
            if not calling and hear is not None and chunk.tool_calls:
                calling = True
                hear("")
    return _merged(chunks), first, pieces


async def _record(
    cassette: Cassette,
    key: str,
    request: str,
    model: BoundModel,
    messages: Sequence[BaseMessage],
    ctx: RunContext,
    hear: Hear | None,
) -> tuple[AIMessage, float | None]:
    began = ctx.turn.log.now()
    message, first, pieces = await _stream(model, messages, ctx, hear)
    cassette.keep(key, request, message, pieces, ctx.turn.log.now() - began)
    return message, first


def _replay(take: Take, hear: Hear | None) -> AIMessage:
    message = cast("AIMessage", messages_from_dict([take.message])[0])
    if hear is not None:
        for piece in take.pieces:
            hear(piece)
        if message.tool_calls:
            hear("")
    return message


def _merged(chunks: list[Any]) -> AIMessage:
    if len(chunks) == 1 and not isinstance(chunks[0], AIMessageChunk):
        return chunks[0]
    if not chunks:
        return AIMessage("")
    whole = add_ai_message_chunks(chunks[0], *chunks[1:])
    return AIMessage(
        content=whole.content,
        tool_calls=whole.tool_calls,
        usage_metadata=whole.usage_metadata,
        response_metadata=whole.response_metadata,
        additional_kwargs=whole.additional_kwargs,
        id=whole.id,
    )


def _text(message: BaseMessage) -> str:
    content: Any = message.content
    return content if isinstance(content, str) else str(message.text)


def _line(message: BaseMessage) -> str:
    return f"{message.type}: {_text(message)}"


def _usage(message: AIMessage, spec: ModelSpec) -> Usage:
    told = message.usage_metadata
    if told is None:
        return Usage(model_calls=1)
    cached = told.get("input_token_details", {}).get("cache_read", 0) or 0
    usage = Usage(input_tokens=told["input_tokens"], output_tokens=told["output_tokens"], cached_tokens=cached, model_calls=1)
    cost = spec.cost(usage)
    return usage if cost is None else usage.model_copy(update={"cost": cost})
