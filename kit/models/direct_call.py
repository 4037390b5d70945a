"""Calls a chat model's own `_astream` or `_agenerate` where LangChain's wrapper around them has
nobody to tell and nothing to do.

The wrapper (`ainvoke`, `astream`) costs three to four tenths of a millisecond a call: a run tree,
callback managers, a task and a context of its own. A direct call gives these up, and the `lc_run--`
ids of messages that the provider left without one. Everything else stays: bound options, stop
words, metadata, the closing chunk, the provider's errors.

The wrapper comes back for a call, and at the next one goes again, as soon as there is

- a listener: callbacks of the model or of the LangChain run around the call, tracing, debug, verbose,
  a context's handlers;
- something the wrapper does: a cache, a rate limiter, `output_version` "v1", messages of content
  blocks (it translates some);
- a class or a model that runs its calls another way, a binding with a config, and any Runnable that
  is not a chat model.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.callbacks.base import Callbacks
from langchain_core.globals import get_debug, get_llm_cache
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import _configure_hooks, tracing_v2_callback_var  # type: ignore[reportPrivateUsage]
from langsmith.run_helpers import tracing_context  # type: ignore[reportUnknownVariableType]
from langsmith.utils import tracing_is_enabled  # type: ignore[reportUnknownVariableType]

_RUNNERS = (
    "invoke",
    "ainvoke",
    "stream",
    "astream",
    "generate",
    "agenerate",
    "generate_prompt",
    "agenerate_prompt",
    "_generate_with_cache",
    "_agenerate_with_cache",
    "_convert_input",
)
"""What stands between a caller and the model; who overrides one of these wants it to run."""
_RUNNER_NAMES = frozenset(_RUNNERS)
_runners = attrgetter(*_RUNNERS)
_OF_LANGCHAIN = _runners(BaseChatModel)
_streamers = attrgetter("_astream", "_stream")
_NO_STREAM = _streamers(BaseChatModel)
_binding_runners = attrgetter("ainvoke", "astream", "_merge_configs")
_OF_BINDING = _binding_runners(RunnableBinding)
_OPTIONS_OF_WRAPPER = frozenset(
    {
        "callbacks",
        "tags",
        "metadata",
        "run_name",
        "run_id",
        "ls_structured_output_format",
        "structured_output_format",
    }
)
"""Options that the wrapper reads, or refuses, and never hands to the model."""
_GATEWAY = "lc_gateway_metadata"
LANGSMITH_VARIABLES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
"""The environment variables that ask LangChain to send its runs to LangSmith."""


def asks_for_langsmith(environment: Mapping[str, str]) -> str | None:
    """The variable of an environment that asks for tracing; None where none does."""
    for name in LANGSMITH_VARIABLES:
        if environment.get(name) == "true":
            return name
    return None


def langsmith_is_asked_for() -> bool:
    """Whether the environment, or a context around this call, asks for LangSmith's tracing."""
    return tracing_is_enabled() is not False


@contextmanager
def langsmith_hears(allowed: bool) -> Generator[None]:
    """Inside, LangSmith hears of no model and no tool call, whatever the environment asks for, unless it is allowed.

    A context variable of LangSmith's own holds this, so other code of the process keeps its tracing. So does
    whoever asks in code, with LangChain's `tracing_v2_enabled()`.
    """
    if allowed:
        yield
        return
    with tracing_context(enabled=False):
        yield


def stream_reply(
    model: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    config: RunnableConfig | None = None,
    **options: Any,
) -> AsyncGenerator[Any]:
    """Streams a reply as `model.astream` would: its chunks, or one whole message where the model
    does not stream.

    Directly when nobody listens, else through LangChain's wrapper; the module's docstring says
    when. Raises what the model raises, and ValueError when a stream has no chunk.
    """
    if config:
        return cast("AsyncGenerator[Any]", model.astream(messages, config, **options))
    reply = open_reply(model, messages, **options)
    if isinstance(reply, AsyncGenerator):
        return reply
    return _once(reply)


def open_reply(
    model: Runnable[Any, Any], messages: Sequence[BaseMessage], **options: Any
) -> Awaitable[Any] | AsyncGenerator[Any]:
    """A whole reply to await, where a model called directly does not stream, else what
    `stream_reply` returns: a generator of one message costs as much as the rest of the call."""
    chat, merged = _unbind(model, options)
    if chat is None or _needs_wrapper(chat, messages, merged):
        return cast("AsyncGenerator[Any]", model.astream(messages, **options))
    stop = merged.pop("stop", None)
    source: Any = chat
    # As it says itself, five times as slowly.
    streams = source.disable_streaming is not True and _streamers(type(source)) != _NO_STREAM
    if streams:
        streams = source._should_stream(async_api=True, **{**merged, "stream": True})
    return (_stream if streams else _generate)(chat, list(messages), stop, merged)


def has_listeners(callbacks: Callbacks, verbose: bool) -> bool:
    """Whether LangChain would tell anybody about a run.

    Each place is looked at where a listener can be set; only where one holds something is LangChain
    asked, which takes longer.
    """
    ambient = var_child_runnable_config.get()
    inherited = ambient.get("callbacks") if ambient else None
    if not (
        callbacks
        or inherited
        or verbose
        or get_debug()
        or tracing_v2_callback_var.get()
        or tracing_is_enabled()
    ):
        for context, _, _, variable in _configure_hooks:
            if context.get() is not None or (variable is not None and variable in os.environ):
                break
        else:
            return False
    return bool(AsyncCallbackManager.configure(inherited, callbacks, verbose).handlers)


def _unbind(
    model: Runnable[Any, Any], options: dict[str, Any]
) -> tuple[BaseChatModel | None, dict[str, Any]]:
    """Returns the chat model behind its bindings with all their options; None where a binding does
    more than add options."""
    while isinstance(model, RunnableBinding):
        if _binding_runners(type(model)) != _OF_BINDING or model.config or model.config_factories:
            return None, options
        model, options = model.bound, {**model.kwargs, **options}
    return (model if isinstance(model, BaseChatModel) else None), options


def _needs_wrapper(
    model: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> bool:
    if _runs_its_own_way(type(model)) or not _RUNNER_NAMES.isdisjoint(vars(model)):
        return True
    if (
        model.rate_limiter
        or model.output_version == "v1"
        or not _OPTIONS_OF_WRAPPER.isdisjoint(options)
    ):
        return True
    if model.cache is not False and (model.cache is not None or get_llm_cache() is not None):
        return True
    # Any: LangChain leaves the items of a list of blocks unknown.
    every_message: Any = messages
    for message in every_message:
        if type(message.content) is not str:
            return True
    return has_listeners(model.callbacks, model.verbose)


@lru_cache
def _runs_its_own_way(kind: type[BaseChatModel]) -> bool:
    return _runners(kind) != _OF_LANGCHAIN


async def _stream(
    model: Any, messages: list[BaseMessage], stop: Any, options: dict[str, Any]
) -> AsyncGenerator[Any]:
    """Does what `BaseChatModel.astream` does between its callbacks."""
    message: Any = None
    source = model._astream(messages, stop=stop, **options)
    try:
        async for chunk in source:
            message = chunk.message
            if chunk.generation_info:
                message.response_metadata = _metadata(chunk)
            yield message
        if message is None:
            raise ValueError("No generation chunks were returned")
        if isinstance(message, AIMessageChunk) and not message.chunk_position:
            yield AIMessageChunk(
                content=[] if isinstance(cast("Any", message).content, list) else "",
                chunk_position="last",
            )
    except BaseException:
        if hasattr(source, "aclose"):
            await source.aclose()
        raise


async def _once(reply: Awaitable[Any]) -> AsyncGenerator[Any]:
    yield await reply


async def _generate(
    model: Any, messages: list[BaseMessage], stop: Any, options: dict[str, Any]
) -> BaseMessage:
    result = await model._agenerate(messages, stop=stop, **options)
    first: ChatGeneration = result.generations[0]
    if first.generation_info or result.llm_output:
        provider: dict[str, Any] = (
            result.llm_output if result.llm_output and len(result.generations) == 1 else {}
        )
        first.message.response_metadata = {**provider, **_metadata(first)}
    return first.message


def _metadata(generation: ChatGeneration) -> dict[str, Any]:
    facts = dict(generation.generation_info or {})
    # The wrapper keeps this one for itself.
    facts.pop(_GATEWAY, None)
    return {**facts, **generation.message.response_metadata}
