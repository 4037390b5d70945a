"""Why a call of a model failed, in one line for the developer: model, URL, HTTP status, what was said, what to do."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from kit.core.errors import describe_error
from kit.core.model import ModelSpec
from kit.core.outcome import ErrorClass
from kit.core.secret import without_keys
from kit.models.deadline import seconds_left

_LONGEST = 300
"""Characters of what an endpoint said."""
_INNER = ("bound", "inner", "_inner")
_URLS = ("openai_api_base", "anthropic_api_url", "base_url", "endpoint_url")
_REMEDIES = {
    400: "the endpoint refuses the request: compare `name`, `api`, `routing`, `params` with its documentation",
    401: "set {key} to a key of this endpoint",
    402: "the account has no credit left",
    403: "the key may not use this model: choose another model, or set {key} to another key",
    404: "check the model's `name` and the URL, which for most servers ends in /v1",
    422: "the endpoint refuses the request: compare `name`, `api`, `routing`, `params` with its documentation",
    429: "ask less at once, or wait{pause}",
}
_TOO_LONG = (
    "the request is longer than the model reads: shorten prompts, tool results and history, "
    "or choose a model with a longer context window"
)
_REFUSED_BECAUSE = {
    "context_length_exceeded": _TOO_LONG,
    "maximum context length": _TOO_LONG,
    "stream_options": "the endpoint does not know `stream_options`: set `stream: false` in the model's entry",
}
"""What an endpoint names in a request that it refuses with 400 -> what to do."""
_NO_ANSWER_OF_THE_API = (
    "this is no answer of the API: check the URL, "
    "and set `stream: false` if the endpoint cannot stream"
)
_CLASSES: dict[int, ErrorClass] = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    408: "network",
    429: "limit",
}


def diagnose(error: BaseException, spec: ModelSpec, model: object) -> str:
    """Says what went wrong with a call of `model`; the keys of the settings are for the caller to take out."""
    status = status_of(error)
    request = getattr(error, "request", None)
    url = _without_credentials(_url_of(model) or str(getattr(request, "url", "")))
    model_words = f"model {spec.key!r} at {url}" if url else f"model {spec.key!r}"
    code = f"HTTP {status}, " if status else ""
    return f"{model_words}: {code}{_words(error)}; {_remedy(error, spec, status)}"


def class_of(error: BaseException) -> ErrorClass:
    """Returns what lost a call of a real model; what is none of the others is an answer that no
    server of the API gives."""
    status = status_of(error)
    name = type(error).__name__
    if is_out_of_credit(error):
        return "auth"
    if status is not None and status < 500:
        return _CLASSES.get(status, "kit")
    if isinstance(error, asyncio.CancelledError | TimeoutError):
        return "budget"
    # By name: each provider's package brings an HTTP client of its own, with classes of its own.
    of_network = isinstance(error, OSError) or any(
        word in name for word in ("Connect", "Timeout", "Protocol", "ReadError")
    )
    if status is None and of_network:
        return "network"
    return "server"


def status_of(error: BaseException) -> int | None:
    """The HTTP status that a provider's client keeps on its error; None where nobody answered."""
    response: Any = getattr(error, "response", None)
    status: Any = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def pause_asked(error: BaseException) -> float:
    """Seconds that a provider asks to be left alone for; one where it names no number."""
    headers: Any = getattr(getattr(error, "response", None), "headers", {})
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, TypeError, ValueError):
        return 1.0


def is_out_of_credit(error: BaseException) -> bool:
    """Whether the account has nothing left: a 429 like a rate limit, but waiting does not help.

    A replayed error has no code any more, so OpenAI's sentence is known as well.
    """
    if status_of(error) != 429:
        return False
    error_text = f"{_code_of(error)} {message_of(error)}"
    return "insufficient_quota" in error_text or "exceeded your current quota" in error_text


def message_of(error: BaseException) -> str:
    """What the endpoint said, as OpenAI's and Anthropic's clients keep it; empty where it is not known."""
    match getattr(error, "body", None):
        case {"message": str(words)} | {"error": {"message": str(words)}}:
            return words
        case _:
            return ""


def _code_of(error: BaseException) -> str:
    """The endpoint's own name for the fault, such as `context_length_exceeded`; empty where it gave none."""
    match getattr(error, "body", None):
        case {"code": str(code)} | {"error": {"code": str(code)}}:
            return code
        case _:
            return ""


def _words(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "no answer in time"
    message = message_of(error)
    words = " ".join((without_keys(message) if message else describe_error(error)).split())
    if len(words) <= _LONGEST:
        return words
    return f"{words[:_LONGEST]} ..."


def _remedy(error: BaseException, spec: ModelSpec, status: int | None) -> str:
    if status is None:
        return _remedy_without_status(error)
    if is_out_of_credit(error):
        return _REMEDIES[402]
    if status == 400:
        error_text = f"{_code_of(error)} {message_of(error)}"
        for mark, remedy in _REFUSED_BECAUSE.items():
            if mark in error_text:
                return remedy
    if status in _REMEDIES:
        seconds: Any = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
        pause = f": it asks for {seconds} s" if seconds else ""
        return _REMEDIES[status].format(key=_key(spec), pause=pause)
    if status >= 500:
        return (
            "the server failed: try again later; a card that names this model can have a `fallback`"
        )
    return _NO_ANSWER_OF_THE_API


def _remedy_without_status(error: BaseException) -> str:
    """What to do about an error that no HTTP status came with."""
    name = type(error).__name__
    if isinstance(error, asyncio.CancelledError | TimeoutError) or "Timeout" in name:
        return (
            "raise the budgets of the deck for a slow model, or check that the server is not stuck"
        )
    if _broke_off(error):
        return "the connection broke in the middle of the reply: look at the server's log"
    if "Connection" in name or isinstance(error, OSError):
        return "nothing answers there: start the server, or correct the URL"
    if message_of(error):
        return (
            "the endpoint ended its stream with this error: ask again, or look at the server's log"
        )
    return _NO_ANSWER_OF_THE_API


def _broke_off(error: BaseException | None) -> bool:
    """Whether a connection ended within a reply. A client with one error for all of them keeps what lies under it."""
    while error is not None:
        name = type(error).__name__
        if "Protocol" in name or "ReadError" in name:
            return True
        error = error.__cause__
    return False


def _key(spec: ModelSpec) -> str:
    if spec.provider == "openai" and not spec.base_url:
        return spec.api_key_env or "OPENAI_API_KEY"
    return spec.api_key_env or "`api_key_env` to the variable that holds its key, and that variable"


def _url_of(model: Any) -> str:
    """The endpoint of a chat model, under whatever it is wrapped in; empty where none is known."""
    while model is not None:
        for name in _URLS:
            url = getattr(model, name, None)
            if isinstance(url, str) and url:
                return url
        # A binding, JsonRouting and FaultyModel each have a name of their own for what they wrap.
        wrapped = [getattr(model, name, None) for name in _INNER]
        model = next(filter(None, wrapped), None)
    return ""


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc:
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return ""


def gave_up(error: BaseException) -> bool:
    """Whether a call was stopped because its time was over, and not by whoever asked."""
    # A timer may go off a hair early.
    return isinstance(error, asyncio.CancelledError) and seconds_left() <= 1e-3
