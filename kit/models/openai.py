"""ChatOpenAI for OpenAI and for every endpoint that speaks its API, with or without native tool calls."""

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import httpx
from langchain_core.language_models import BaseChatModel

from kit.core.card import Tuning
from kit.core.errors import SettingsError
from kit.core.model import ModelSpec
from kit.models.access import NO_KEY, OPENAI, same_url
from kit.models.deadline import ON_PAUSE, seconds_left
from kit.models.json_routing import JsonRouting, NativeOrJson

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

TIMEOUT = 120.0
"""Seconds without a byte before a request is given up; a turn's own deadline is shorter."""
RETRIES = 1
"""The client repeats connection errors, 408, 409, 429 and 5xx this often, after the pause that Retry-After asks for."""
BACKOFF = 0.5
"""Seconds of its pause where nobody asks for one."""


def chat_model(
    spec: ModelSpec,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    tuning: Tuning | None = None,
) -> BaseChatModel:
    """Builds the model a spec describes, routing the way `spec.routing` asks.

    `api_key` belongs to `base_url` (None: OpenAI's own endpoint) and is sent nowhere else: a spec
    with another `base_url` of its own is called with a placeholder key. `tuning` is a card's; its
    effort goes before the spec's. Nothing is sent before the first call, and a model may be called
    from one event loop after another.

    Raises SettingsError when there is neither a key nor an endpoint.
    """
    from langchain_openai import ChatOpenAI

    home = base_url or OPENAI
    endpoint = spec.base_url or home
    key = api_key if same_url(endpoint, home) else NO_KEY
    if not key and same_url(endpoint, OPENAI):
        raise SettingsError(
            f"model {spec.key!r} needs a key or an endpoint: set OPENAI_API_KEY, or set "
            f"OPENAI_BASE_URL to a compatible server"
        )
    tuning = tuning or Tuning()
    settings: dict[str, Any] = {
        "name": spec.key,
        "model": spec.name or spec.key,
        "api_key": key or NO_KEY,
        "base_url": endpoint,
        "timeout": TIMEOUT,
        "stream_chunk_timeout": None,
        "max_retries": RETRIES,
        "stream_usage": True,
        "use_responses_api": spec.api == "responses",
        "reasoning_effort": tuning.reasoning_effort or spec.effort,
        "verbosity": tuning.text_verbosity,
        "max_tokens": tuning.max_output_tokens,
        "http_async_client": LoopClient(transport=httpx.AsyncBaseTransport()),
        "disable_streaming": not spec.stream,
    }
    # The Responses API streams a refusal as a block of its own, which LangChain keeps.
    client = _chat_class() if spec.api == "chat" else ChatOpenAI
    model = client(**settings, **spec.params.options())
    outer: Any = {"inner": model, "name": spec.key, "disable_streaming": not spec.stream}
    if spec.routing == "json_schema":
        return JsonRouting(**outer, schema_in="body" if spec.api == "chat" else "options")
    if spec.api == "chat":
        return NativeOrJson(**outer)
    return model


@cache
def _chat_class() -> "type[ChatOpenAI]":
    """Returns ChatOpenAI as the kit calls it. The import takes a second, which only real models pay."""
    from langchain_core.outputs import ChatGenerationChunk
    from langchain_openai import ChatOpenAI

    class Chat(ChatOpenAI):
        """ChatOpenAI that keeps the words of a refusal when it streams: LangChain drops them there."""

        def _convert_chunk_to_generation_chunk(
            self,
            chunk: dict[str, Any],
            default_chunk_class: type,
            base_generation_info: dict[str, Any] | None,
        ) -> ChatGenerationChunk | None:
            convert: Any = super()._convert_chunk_to_generation_chunk  # type: ignore[reportUnknownMemberType]
            generation: ChatGenerationChunk | None = convert(
                chunk, default_chunk_class, base_generation_info
            )
            choices: Any = chunk.get("choices")
            if generation is None or not choices:
                return generation
            delta: Any = choices[0].get("delta")
            if delta and delta.get("refusal"):
                generation.message.additional_kwargs["refusal"] = delta["refusal"]
            return generation

    return Chat


class LoopClient(httpx.AsyncClient):
    """An HTTP client that is another one on every event loop.

    A pooled connection dies with the loop that opened it, and the next `asyncio.run` would fail with "Event loop is
    closed". So each loop has a client of its own, shared by all models and closed when the loop shuts down.
    """

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        loop = asyncio.get_running_loop()
        if loop not in _clients:
            keeper = _client()
            _clients[loop] = (await anext(keeper), keeper)
        on_pause = ON_PAUSE.get()
        # The OpenAI client sleeps and repeats inside of one call, and says so in this header alone.
        if on_pause is not None and request.headers.get("x-stainless-retry-count", "0") != "0":
            failed_at, reason = _last_failure.get((loop.time(), "no connection"))
            on_pause(loop.time() - failed_at, reason)
        try:
            response = await _clients[loop][0].send(request, **options)
        except httpx.HTTPError as error:
            _last_failure.set((loop.time(), type(error).__name__))
            raise
        if response.is_error:
            _last_failure.set((loop.time(), f"HTTP {response.status_code}"))
            if await _is_vain_to_repeat(response):
                # The OpenAI client obeys this header before it looks at the status.
                response.headers["x-should-retry"] = "false"
        return response


async def _is_vain_to_repeat(response: httpx.Response) -> bool:
    """Whether the pause would outlast whoever waits, or the account has nothing left."""
    if _pause_asked(response.headers) >= seconds_left():
        return True
    return response.status_code == 429 and b"insufficient_quota" in await response.aread()


def _pause_asked(headers: httpx.Headers) -> float:
    """Seconds before the client tries again: what Retry-After says, else its own half second."""
    try:
        return max(float(headers["retry-after"]), BACKOFF)
    except (KeyError, ValueError):
        return BACKOFF


async def _client() -> AsyncGenerator[httpx.AsyncClient]:
    # A loop closes its suspended async generators before it stops: the only moment a client can
    # still close its sockets.
    async with httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=True, limits=_LIMITS) as client:
        yield client


_last_failure: ContextVar[tuple[float, str]] = ContextVar("last_failure")
"""When the last request of this task failed, by the loop's clock, and how."""
_LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, object]] = (
    WeakKeyDictionary()
)
