"""The one place a model is called: streams, counts, records, and leaves a span."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, messages_from_dict
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import Runnable

from kit.core.event import Component, ModelEnded, ModelStarted, Purpose, ResponseId
from kit.core.model import ModelSpec
from kit.core.outcome import ComponentPayload, Usage
from kit.runtime.budget import CHARACTERS, OverBudget
from kit.runtime.cassette import Cassette, Take, request_key
from kit.runtime.context import RunContext
from kit.runtime.handoff import HIDDEN, hide
from kit.runtime.narration import MARK, Narrating, heard, narrated

Hear = Callable[[str], None]
"""Told of every piece of text as it arrives; "" says that a tool call has begun to arrive."""


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model with its tools already bound, and what is known about it."""

    spec: ModelSpec
    runnable: Runnable[Any, Any]
    private: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Tool name -> arguments that are personal: redacted in the trace (SO-22)."""
    placed: bool = False
    """Whether its stream takes the call's place in the turn: a simulated model draws by it."""


@dataclass(slots=True)
class _Stream:
    """How far a reply has come, for what it costs when it never ends."""

    room: float | None = None
    """Tokens it may have."""
    said: int = 0
    """Characters so far."""
    begun: bool = False
    place: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model said, once it has said all of it."""

    message: AIMessage
    text: str
    usage: Usage
    ttft: float | None
    components: tuple[ComponentPayload, ...] = ()
    """Taken out of its text (PC1-S5.6e)."""

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
    instead_of: str | None = None,
) -> ModelReply:
    """Calls a model and returns its whole reply; `hear` gets the text as it comes.

    `news` is how many of the last messages this agent has not shown a model before: they are the span's input. `instead_of`
    names the model that failed before. What is spent is booked however the call ends: reported by the model, or estimated.
    Raises OverBudget where the agent's budget ends, before the call, in it or after it (SO-2); what the model raises passes
    through, after its span has been closed.
    """
    size = _size(messages)
    stream = _Stream(ctx.ledger.before_model(size, model.spec.price_in))
    private = ctx.turn.private
    lines = tuple(_line(m) for m in messages[-news:])
    started = ModelStarted(
        agent=agent,
        model=model.spec.key,
        purpose=purpose,
        input=hide(lines, private) if private else lines,
        instead_of=instead_of,
    )
    span = ctx.opened(started)
    began = span.turn.log.now()
    try:
        message, first = await _answer(model, messages, span, hear, stream)
    except BaseException as error:
        usage = _unfinished(error, size, stream, model.spec)
        ctx.ledger.charge(usage)
        said = f"{type(error).__name__}: {error}"
        span.emit(ModelEnded(agent=agent, model=model.spec.key, error=hide(said, private), usage=usage))
        raise
    text = _text(message)
    usage = _usage(message, model.spec, size, text)
    ctx.ledger.charge(usage)
    parts: tuple[ComponentPayload, ...] = ()
    if MARK in text:
        message, parts = narrated(message)
        text = _text(message)
        for part in parts:
            span.emit(Component(agent=agent, type=part.type, payload=part.payload))
    response_id = message.response_metadata.get("id")
    if response_id and not parts:  # a chain would bring the components back
        span.emit(ResponseId(agent=agent, response_id=str(response_id)))
    ttft = None if first is None else first - began
    calls = tuple([_call(call, model.private) for call in message.tool_calls]) if message.tool_calls else ()
    shown = (hide(text, private), hide(calls, private)) if private else (text, calls)
    span.emit(ModelEnded(agent=agent, model=model.spec.key, text=shown[0], calls=shown[1], usage=usage, ttft=ttft))
    ctx.ledger.after_model()
    return ModelReply(message, text, usage, ttft, parts)


async def _answer(
    model: BoundModel, messages: Sequence[BaseMessage], ctx: RunContext, hear: Hear | None, stream: _Stream
) -> tuple[AIMessage, float | None]:
    cassette = ctx.turn.cassette
    if model.placed:
        stream.place = ctx.turn.place(ctx.path)
    if cassette is None:
        message, first, _ = await _read(model, messages, ctx, hear, stream)
        return message, first
    key = request_key(stream.place or ctx.turn.place(ctx.path), model.spec.key, messages)
    request = _line(messages[-1])
    take = cassette.find(key, request)
    if take is not None:
        return _replay(take, hear), ctx.turn.log.now()
    return await _record(cassette, key, request, model, messages, ctx, hear, stream)


async def _read(
    model: BoundModel, messages: Sequence[BaseMessage], ctx: RunContext, hear: Hear | None, reading: _Stream
) -> tuple[AIMessage, float | None, list[str]]:
    """Collects chunks and merges them once: merging chunk by chunk costs two to four times as much.

    A reply that outgrows the agent's budget is stopped where it is.
    """
    room = None if reading.room is None else reading.room * CHARACTERS
    chunks: list[Any] = []
    pieces: list[str] = []
    first: float | None = None
    calling = False
    stream = model.runnable.astream(messages) if reading.place is None else model.runnable.astream(messages, place=reading.place)
    async with aclosing(cast("AsyncGenerator[Any]", stream)):
        async for chunk in stream:
            if first is None:
                first = ctx.turn.log.now()
                reading.begun = True
            chunks.append(chunk)
            piece = chunk.content if type(chunk.content) is str else _text(chunk)
            if piece:
                pieces.append(piece)
                reading.said += len(piece)
                if room is not None and reading.said > room:
                    raise OverBudget(f"tokens out: the reply was stopped after {reading.said} characters")
                if hear is not None:
                    if "<" in piece:
                        hear = heard(hear)
                    hear(piece)
            if not calling and hear is not None and chunk.tool_calls:
                calling = True
                hear("")
    if isinstance(hear, Narrating):
        hear.end()
    return _merged(chunks), first, pieces


async def _record(
    cassette: Cassette,
    key: str,
    request: str,
    model: BoundModel,
    messages: Sequence[BaseMessage],
    ctx: RunContext,
    hear: Hear | None,
    stream: _Stream,
) -> tuple[AIMessage, float | None]:
    began = ctx.turn.log.now()
    message, first, pieces = await _read(model, messages, ctx, hear, stream)
    cassette.keep(key, request, message, pieces, ctx.turn.log.now() - began)
    return message, first


def _replay(take: Take, hear: Hear | None) -> AIMessage:
    message = cast("AIMessage", messages_from_dict([take.message])[0])
    if hear is not None:
        hear = heard(hear)
        for piece in take.pieces:
            hear(piece)
        hear.end()
        if message.tool_calls:
            hear("")
    return message


def _told_apart(calls: list[ToolCall]) -> list[ToolCall]:
    """Results are matched to calls by id, and a model may repeat or forget one: that one gets an id by its position."""
    ids = {call["id"] for call in calls}
    if len(ids) == len(calls) and None not in ids:
        return calls
    apart: dict[str, ToolCall] = {}
    for position, call in enumerate(calls, 1):
        call_id = call["id"]
        fresh = call_id if call_id and call_id not in apart else f"{call_id or 'call'}-{position}"
        apart[fresh] = ToolCall({**call, "id": fresh})
    return list(apart.values())


def _merged(chunks: list[Any]) -> AIMessage:
    if len(chunks) == 1 and not isinstance(chunks[0], AIMessageChunk):
        chunks[0].tool_calls = _told_apart(chunks[0].tool_calls)
        return chunks[0]
    if not chunks:
        return AIMessage("")
    whole = add_ai_message_chunks(chunks[0], *chunks[1:])
    return AIMessage(
        content=whole.content,
        tool_calls=_told_apart(whole.tool_calls),
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


def _call(call: ToolCall, private: Mapping[str, frozenset[str]]) -> str:
    args = call["args"]
    if private and call["name"] in private:
        args = {name: HIDDEN if name in private[call["name"]] else value for name, value in args.items()}
    return f"{call['name']}({args})"


def _size(messages: Sequence[BaseMessage]) -> int:
    """About how many tokens a model will read."""
    size = 0
    for message in messages:
        content = message.content
        size += len(content if type(content) is str else _text(message))
        if type(message) is AIMessage and message.tool_calls:
            size += len(str(message.tool_calls))
    return -(-size // CHARACTERS)


def _usage(message: AIMessage, spec: ModelSpec, size: int, text: str) -> Usage:
    told = message.usage_metadata
    if told is None:
        wrote = len(text) + (len(str(message.tool_calls)) if message.tool_calls else 0)
        return _priced(spec, size, -(-wrote // CHARACTERS), estimated=True)
    cached = told.get("input_token_details", {}).get("cache_read", 0) or 0
    return _priced(spec, told["input_tokens"], told["output_tokens"], cached)


def _unfinished(error: BaseException, size: int, stream: _Stream, spec: ModelSpec) -> Usage:
    """What a call that did not end is taken to have cost: nothing where the model failed before its first word."""
    if isinstance(error, Exception) and not stream.begun:
        return Usage(model_calls=1)
    return _priced(spec, size, -(-stream.said // CHARACTERS), estimated=True)


def _priced(spec: ModelSpec, read: int, wrote: int, cached: int = 0, *, estimated: bool = False) -> Usage:
    usage = Usage(input_tokens=read, output_tokens=wrote, cached_tokens=cached, model_calls=1, estimated=estimated)
    cost = spec.cost(usage)
    return usage if cost is None else usage.model_copy(update={"cost": cost})
