"""The one place a model is called: streams, counts, records, and leaves a span.

After one failure an agent's model gives way to the fallback that its card names (decisions 10). The trace holds
what is new in a request since its agent's previous one, a line for each message.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import ToolCall

from kit.core.bodies.call import (
    PREFIX,
    ModelEnded,
    ModelPause,
    ModelStarted,
    Purpose,
    RequestCall,
    RequestMessage,
)
from kit.core.bodies.speech import Component, Reasoning, ResponseId
from kit.core.errors import KitError
from kit.core.language.controls import CONTROL, without_controls
from kit.core.limits import excerpt
from kit.core.model import ModelSpec
from kit.core.outcome import ComponentPayload, Usage
from kit.core.value import builder, new_list
from kit.models.deadline import ON_PAUSE
from kit.models.direct_call import open_reply
from kit.models.message import CHARACTERS, CUT_OFF, ending_of, estimate, reasoning_of, usage_of
from kit.runtime.bound_model import BoundModel, Voice
from kit.runtime.budget import Deadline, OverBudget
from kit.runtime.context import RunContext
from kit.runtime.handoff import PLACEHOLDER, hide, hide_words, texts_of
from kit.runtime.message import calls_of, size_of, with_calls
from kit.runtime.recording.recorded_call import failure_of, model_request, plain_message
from kit.runtime.recording.replay import replay
from kit.runtime.speech.narration import MARK, Hear, NarrationFilter, narrated, narration_filter

_model_ended = builder(ModelEnded)
LONGEST = 100_000
"""Characters of one reply; a model that goes on is stopped, whatever its card allows."""
MOST_PIECES = 20_000
SHORTEST_PAUSE = 0.01
"""Seconds at the gate below which a call did not wait: others were let through before it."""
PAUSE = 256
"""Pieces after which the loop may go on."""
MOST_CALLS = 64
"""No message has so many parts: such a reply is a loop of the model's, unless the turn may ask even more, or each
call is of another tool: then those over the cap are left out one by one, and the others answered."""
_NOTHING = AIMessage("")


@dataclass(slots=True)
class _Stream:
    """How far a reply has come: what it costs if it never ends is estimated from this."""

    agent: str
    room: float
    """Characters it may have."""
    hear: Hear | None
    characters: int = 0
    """Characters so far."""
    begun: bool = False
    pieces: list[str] = field(default_factory=new_list)
    """Text that was passed on."""
    thoughts: str = ""
    """Reasoning since the last text."""
    place: str | None = None
    calling: bool = False
    """Whether the name of a call was passed on."""
    first: float | None = None
    """When its first chunk came."""
    chunks: list[Any] = field(default_factory=new_list)
    size: int = 0
    """Estimated tokens of what the model reads."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's whole reply."""

    message: AIMessage
    text: str
    usage: Usage
    ttft: float | None
    components: tuple[ComponentPayload, ...] = ()
    """Taken out of its text."""
    ending: str | None = None
    """Why it ended, in the provider's word."""
    truncated: bool = False
    """Its model was stopped in the middle of it."""

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

    `news` is how many messages an agent's first call adds to the conversation before them.
    `instead_of` names the model that failed before. What is spent is booked however the call ends:
    reported by the model, or estimated. Raises OverBudget where the agent's budget ends, before the
    call, in it or after it; what the model raises passes through, after its span has been closed.
    """
    if ctx.turn.player is not None:
        model = ctx.turn.player.model(ctx.turn.next_place(ctx.path), model)
    size = size_of(messages)
    room = LONGEST
    tokens = ctx.ledger.before_model(size, model.spec.price_in)
    if tokens is not None:
        room = min(LONGEST, tokens * CHARACTERS)
    stream = _Stream(agent, room, hear, size=size)
    start = opening(
        messages, model, ctx, agent=agent, purpose=purpose, news=news, instead_of=instead_of
    )
    span = ctx.open_span(start)
    # When the event that opens the span was stamped.
    began = span.turn.log.events[-1].at
    # A simulated model draws by the call's place in the turn.
    if model.spec.provider == "simulated":
        stream.place = span.turn.place(span.path)
    try:
        if span.turn.player is None:
            source = _read
        else:
            source = _recorded
        message = await source(model, messages, span, stream)
        ending = ending_of(message, model.spec)
    except BaseException as error:
        usage = _unfinished(error, size, stream, model.spec)
        ctx.ledger.charge(usage)
        _close_failed(span, agent, model, error, usage)
        raise
    text = text_of(message)
    # A model may repeat what a page or a tool smuggled in; a terminal would obey it.
    if CONTROL.search(text) and isinstance(message.content, str):
        text = without_controls(text)
        message = message.model_copy(update={"content": text})
    usage = usage_of(message, model.spec, size, text)
    ctx.ledger.charge(usage)
    parts: tuple[ComponentPayload, ...] = ()
    if MARK in text:
        message, parts = narrated(message)
        text = text_of(message)
        for part in parts:
            span.emit(Component(agent=agent, type=part.type, payload=part.payload))
    ttft = None if stream.first is None else stream.first - began
    reply = ModelReply(message, text, usage, ttft, parts, ending, ending in CUT_OFF)
    ctx.turn.threads[ctx.path] = [*messages, reply.message]
    _close(span, agent, model, reply, size)
    ctx.ledger.after_model()
    return reply


def _close(span: RunContext, agent: str, model: BoundModel, reply: ModelReply, size: int) -> None:
    """Emits how the call ended, personal values hidden. A reply with components in it has no
    response id: a chain would bring them back."""
    turn = span.turn
    message = reply.message
    usage = reply.usage
    if model.gate is not None:
        model.gate.spent(usage.input_tokens + usage.output_tokens - size)
    response_id = None
    if not reply.components and message.response_metadata.get("id"):
        response_id = str(message.response_metadata["id"])
        if agent != turn.settings.support_agent:
            span.emit(ResponseId(agent=agent, response_id=response_id))
    text = reply.text
    calls: tuple[RequestCall, ...] = ()
    if message.tool_calls:
        calls = traced_calls(message.tool_calls, model.private, turn.private)
    if turn.private:
        text = hide(text, turn.private)
    span.emit(
        _model_ended(
            agent=agent,
            model=model.spec.key,
            text=text,
            calls=calls,
            usage=usage,
            ttft=reply.ttft,
            finish_reason=reply.ending,
            response_id=response_id,
        )
    )


def _close_failed(
    span: RunContext, agent: str, model: BoundModel, error: BaseException, usage: Usage
) -> None:
    turn = span.turn
    if model.gate is not None:
        model.gate.heed(error)
    line = model.fault_line(
        error, turn.log, quiet=turn.player is not None and turn.player.mode == "replay"
    )
    error_class = model.error_class(error)
    span.emit(
        ModelEnded(
            agent=agent,
            model=model.spec.key,
            error=hide(line, turn.private),
            failure=failure_of(error, turn.private),
            error_class=error_class,
            usage=usage,
        )
    )


async def _recorded(
    model: BoundModel, messages: Sequence[BaseMessage], ctx: RunContext, stream: _Stream
) -> AIMessage:
    """Answers from the recording, or reads the reply and records it."""
    player = ctx.turn.player
    log = ctx.turn.log
    assert player is not None
    place = stream.place or ctx.turn.place(ctx.path)
    request = model_request(model.spec, model.tools, messages)
    call = player.find(place, request)
    began = log.now()
    if call is not None:
        stream.begun = call.begun
        stream.characters = call.said
        message = await replay(call, stream.hear, player.sleep)
        _think(stream, ctx, message)
        _end(stream, ctx)
        if call.first is not None:
            stream.first = began + call.first * player.pace
        return message
    try:
        message = await _read(model, messages, ctx, stream)
    except BaseException as error:
        player.keep_fault(
            place,
            request,
            error,
            pieces=stream.pieces,
            begun=stream.begun,
            said=stream.characters,
            seconds=log.now() - began,
        )
        raise
    first = None if stream.first is None else stream.first - began
    player.keep(
        place,
        request,
        message=plain_message(message),
        pieces=stream.pieces,
        first=first,
        seconds=log.now() - began,
    )
    return message


async def _read(
    model: BoundModel, messages: Sequence[BaseMessage], ctx: RunContext, reading: _Stream
) -> AIMessage:
    """Collects chunks and merges them once: merging chunk by chunk costs two to four times as much.

    A reply that outgrows the agent's budget, or what any reply may have, is stopped where it is.
    """
    if model.gate is not None:
        on_pause = partial(_emit_pause, ctx, reading.agent, model.spec.key)
        seconds = await model.gate.enter(reading.size)
        if seconds >= SHORTEST_PAUSE:
            on_pause(seconds, "limits of the key")
        ON_PAUSE.set(on_pause)
    place: Any = {} if reading.place is None else {"place": reading.place}
    reply = open_reply(model.runnable, messages, **place)
    if not isinstance(reply, AsyncIterator):
        _take(await reply, reading, ctx)
    else:
        async with aclosing(reply):
            async for chunk in reply:
                _take(chunk, reading, ctx)
                if not len(reading.chunks) % PAUSE:
                    # a model that never waits must not keep the loop to itself
                    await asyncio.sleep(0)
                    if len(reading.chunks) > MOST_PIECES:
                        raise OverBudget(
                            f"tokens out: the reply was stopped after {len(reading.chunks)} pieces"
                        )
    _end(reading, ctx)
    return _merge(reading.chunks, ctx.turn.cap)


def _emit_pause(ctx: RunContext, agent: str, model: str, seconds: float, reason: str) -> None:
    ctx.emit(ModelPause(agent=agent, model=model, seconds=round(seconds, 6), reason=reason))


def _take(chunk: Any, reading: _Stream, ctx: RunContext) -> None:
    """Passes on a piece of a reply: its thoughts to the trace, its text and the name of its first
    call to who listens."""
    if reading.first is None:
        reading.first = ctx.turn.log.now()
        reading.begun = True
    reading.chunks.append(chunk)
    if reading.thoughts or chunk.additional_kwargs or type(chunk.content) is not str:
        _think(reading, ctx, chunk)
    if type(chunk.content) is str:
        piece = chunk.content
    else:
        piece = text_of(chunk)
    if piece and CONTROL.search(piece):
        piece = without_controls(piece)
    if piece:
        reading.characters += len(piece)
        if reading.characters > reading.room:
            raise OverBudget(
                f"tokens out: the reply was stopped after {reading.characters} characters"
            )
        reading.pieces.append(piece)
        if reading.hear is not None:
            if "<" in piece:
                reading.hear = narration_filter(reading.hear)
            reading.hear(piece)
    if not reading.calling and reading.hear is not None and chunk.tool_calls:
        reading.calling = True
        reading.hear("", chunk.tool_calls[0]["name"])


def _think(stream: _Stream, ctx: RunContext, piece: BaseMessage) -> None:
    """Adds a piece to a stretch of reasoning; one that holds none ends it, and it becomes one
    event. Nobody hears it as text."""
    more = reasoning_of(piece)
    stream.thoughts = (stream.thoughts + more)[:LONGEST]
    if stream.thoughts and not more:
        thoughts = without_controls(stream.thoughts)
        ctx.emit(Reasoning(agent=stream.agent, text=hide(thoughts, ctx.turn.private)))
        stream.thoughts = ""


def _end(stream: _Stream, ctx: RunContext) -> None:
    if stream.thoughts:
        _think(stream, ctx, _NOTHING)
    if isinstance(stream.hear, NarrationFilter):
        stream.hear.end()


def _merge(chunks: list[Any], cap: int) -> AIMessage:
    if not chunks:
        return AIMessage("")
    message: AIMessage = (
        chunks[0] if len(chunks) == 1 else add_ai_message_chunks(chunks[0], *chunks[1:])
    )
    calls = message.tool_calls
    whole = type(message.content) is str
    if calls or message.invalid_tool_calls:
        # The names are looked at last: a turn of a few calls has no call to spare for them.
        if len(calls) > MOST_CALLS and len(calls) > cap:
            tools = {call["name"] for call in calls}
            if len(calls) > len(tools):
                raise OverBudget(f"calls: {len(calls)} in one reply")
        calls = calls_of(message)
        whole = whole and calls == message.tool_calls and not message.invalid_tool_calls
    if isinstance(message, AIMessageChunk):
        message = AIMessage(
            content=message.content,
            tool_calls=calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            additional_kwargs=message.additional_kwargs,
            id=message.id,
        )
    if whole:
        return message
    return with_calls(message, calls)


def _unfinished(error: BaseException, size: int, stream: _Stream, spec: ModelSpec) -> Usage:
    """Estimates what a call that did not end has cost: no tokens where the model failed before its first word."""
    if isinstance(error, Exception) and not stream.begun:
        return Usage(model_calls=1)
    return estimate(spec, size, stream.characters)


_model_started = builder(ModelStarted)
_request_call = builder(RequestCall)
_request_message = builder(RequestMessage)


def opening(
    messages: Sequence[BaseMessage],
    model: BoundModel,
    ctx: RunContext,
    *,
    agent: str,
    purpose: Purpose,
    news: int,
    instead_of: str | None,
) -> ModelStarted:
    """Returns the first event of a model call, with what the trace does not have yet of its
    request, personal values trace_args.

    `news` is how many messages an agent's first call adds to the conversation before them.
    """
    turn = ctx.turn
    head = messages[0]
    last = turn.threads[ctx.path]
    private = turn.private
    first = 0
    if head.type == "system":
        first = 1
    repeated = first
    if not last:
        repeated = len(messages) - news
    else:
        # By identity: a thread keeps its messages, and comparing long texts costs more than the call.
        for old, new in zip(last[first:], messages[first:], strict=False):
            if old is not new:
                break
            repeated += 1
    system = ""
    if first and (not last or last[0] is not head):
        system = text_of(head)
        if model.prefix and system.startswith(model.prefix):
            system = PREFIX + system[len(model.prefix) :]
            # What follows the prompt is the same in most calls of a turn, and stands in the first.
            if system == turn.suffix:
                system = PREFIX
            turn.suffix = turn.suffix or system
    if private:
        system = hide_words(system, private)
    news_lines: list[RequestMessage] = []
    for message in messages[repeated:]:
        news_lines.append(_traced(message, model.private, private))
    return _model_started(
        agent=agent,
        model=model.spec.key,
        purpose=purpose,
        input=tuple(news_lines),
        before=repeated - first,
        system=system,
        instead_of=instead_of,
    )


def _traced(
    message: BaseMessage, personal: Mapping[str, frozenset[str]], private: Collection[str]
) -> RequestMessage:
    """Returns a message as a trace keeps it: a long result by its beginning, personal values trace_args."""
    text = text_of(message)
    calls: tuple[RequestCall, ...] = ()
    if message.type == "tool":
        text = excerpt(text)
    elif isinstance(message, AIMessage) and message.tool_calls:
        calls = traced_calls(message.tool_calls, personal, private)
    if private:
        text = hide(text, private)
    return _request_message(role=message.type, text=text, calls=calls)


def traced_calls(
    calls: Sequence[ToolCall], personal: Mapping[str, frozenset[str]], private: Collection[str]
) -> tuple[RequestCall, ...]:
    """Returns calls as a trace keeps them.

    `personal` names the arguments of each tool that no trace shows, `private` are the values that crossed
    a hand-off before.
    """
    traced: list[RequestCall] = []
    for call in calls:
        args = call["args"]
        if call["name"] in personal:
            names = personal[call["name"]]
            secrets: set[str] = set()
            for name in names:
                if name in args:
                    secrets.update(texts_of(args[name]))
            trace_args: dict[str, Any] = {}
            for name, value in args.items():
                if name in names:
                    trace_args[name] = PLACEHOLDER
                else:
                    trace_args[name] = hide(value, secrets)
            args = trace_args
        if private:
            args = hide(args, private)
        traced.append(_request_call(name=call["name"], args=args))
    return tuple(traced)


def text_of(message: BaseMessage) -> str:
    """Returns the text of a message, whether its content is one or blocks."""
    content: Any = message.content
    if type(content) is str:
        return content
    return str(message.text)


async def call_with_fallback(
    voice: Voice,
    messages: Sequence[BaseMessage],
    ctx: RunContext,
    *,
    agent: str,
    purpose: Purpose,
    hear: Hear | None = None,
    news: int = 1,
) -> ModelReply:
    """Calls the voice's model; arguments and result are those of `call_model`.

    The fallback is asked on a model's error or time-out only, never over a budget, never after a
    word of the first answer was passed on, and inside whatever time and tokens are left. Raises
    TimeoutError at the voice's limit.
    """
    call = partial(call_model, messages=messages, ctx=ctx, agent=agent, purpose=purpose, news=news)
    fallback = voice.fallback if voice.may_fall_back else None
    spoke = False

    def listen(piece: str, tool: str = "", /) -> None:
        nonlocal spoke
        spoke = True
        if hear is not None:
            hear(piece, tool)

    if fallback is None:
        with Deadline(voice.limit):
            return await call(voice.model, hear=hear, instead_of=voice.instead_of)
    listener = None if hear is None else listen
    try:
        with Deadline(voice.limit), Deadline(voice.patience):
            return await call(voice.model, hear=listener)
    except (OverBudget, KitError):
        raise
    except Exception:
        # A second voice after the first words would contradict what the user has read.
        if not spoke:
            voice.instead_of = voice.model.spec.key
            voice.model = fallback
            voice.fallback = None
            with Deadline(voice.limit):
                return await call(fallback, hear=hear, instead_of=voice.instead_of)
        raise
