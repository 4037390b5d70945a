"""A service over HTTP as a system: one POST a question, answered as JSON, as plain text or as a stream of events.

docs/bridges.md says what crosses, field by field.
"""

import ipaddress
import json
import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from kit.bridges.part import BridgeFault, Called, Part, Piece, Question, Reported, Spent
from kit.core.envelope import Inbound
from kit.core.errors import CodeError
from kit.core.limits import Count, Dollars
from kit.core.outcome import Usage
from kit.core.schema.json_value import is_object

if TYPE_CHECKING:
    import httpx

PATIENCE = 600.0
"""Seconds to wait for a service where nobody set a deadline."""
_CALL = TypeAdapter(Called)


class ServiceUsage(Inbound):
    """What a service says it has spent; what it leaves out is not known."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_tokens: Count | None = None
    model_calls: Count | None = None
    cost: Dollars | None = None


class ServiceReply(Inbound):
    """The whole answer of a service."""

    text: str
    calls: tuple[str | Called, ...] | None = None
    """Left out by a service that does not say whom it asked; empty where it asked nobody."""
    usage: ServiceUsage | None = None


@dataclass(frozen=True, slots=True)
class HttpBridge:
    """A service at an address."""

    url: str

    @classmethod
    def at(cls, url: str) -> "HttpBridge":
        """A service at `https://...`, or at `http://...` on this machine. Raises CodeError for another address."""
        check_address(url)
        return cls(url)

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Posts the question and gives what comes back. Closing the generator closes the connection.

        Raises BridgeFault for a service that cannot be reached, refuses, or answers in another form.
        """
        import httpx

        from kit.bridges.bounded import bounded_client

        try:
            async with (
                bounded_client(seconds_of(question)) as client,
                client.stream("POST", self.url, json=_body(question)) as response,
            ):
                await _check(response)
                kind = response.headers.get("content-type", "").partition(";")[0].strip()
                if kind == "text/event-stream":
                    async for part in _events(response):
                        yield part
                    return
                if kind.startswith("text/"):
                    async for piece in response.aiter_text():
                        yield Piece(piece)
                    return
                await response.aread()
                text = response.text
        except httpx.TimeoutException as error:
            raise BridgeFault("timeout", f"{self.url}: {type(error).__name__}") from error
        except httpx.HTTPError as error:
            detail = f"{self.url}: {type(error).__name__}: {error}"
            raise BridgeFault("unavailable", detail) from error
        for part in answer_parts(text):
            yield part


def is_address(reference: str) -> bool:
    """Whether a text names a service and no code."""
    return reference.startswith(("http://", "https://"))


def check_address(url: str) -> None:
    """Raises CodeError for an address that a deck must not ask."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise CodeError(f"{url!r} names no host; write https://host/path")
    if parts.username or parts.password:
        raise CodeError(
            "an address with a password in it stands in traces; call the service from a "
            "function of your own, `run: ./agents.py:NAME`"
        )
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        raise CodeError(
            f"{url!r} would carry what users write over the network unencrypted; write https://"
        )


def seconds_of(question: Question) -> float:
    """How long to wait for a service."""
    if question.seconds is None or math.isinf(question.seconds):
        return PATIENCE
    return question.seconds


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _body(question: Question) -> dict[str, Any]:
    return {
        "message": question.text,
        "prior_context": question.prior_context,
        "tenant_id": question.principal.tenant_id,
        "user_id": question.principal.user_id,
    }


async def _check(response: "httpx.Response") -> None:
    """Raises BridgeFault for every answer that is none."""
    status = response.status_code
    if status == 200:
        return
    reason = "rate_limited" if status == 429 else "unavailable"
    raise BridgeFault(reason, f"the service answered {status}", status)


async def _events(response: "httpx.Response") -> AsyncGenerator[Part, None]:
    """Reads server-sent events: `data: {"piece": "..."}`, and last of all the whole reply."""
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            text = "\n".join(data)
            data.clear()
            if text == "[DONE]":
                return
            for part in answer_parts(text):
                yield part
    # A stream that broke off in the middle of an event has said nothing whole with it.
    if data:
        raise BridgeFault("contract_violation", "the stream ended in the middle of an event")


def answer_parts(text: str) -> list[Part]:
    """Reads one JSON object: a piece, a call, or the whole reply. Raises BridgeFault."""
    try:
        value: Any = json.loads(text)
        if is_object(value):
            if isinstance(value.get("piece"), str):
                return [Piece(value["piece"])]
            if isinstance(value.get("call"), dict):
                return [_CALL.validate_python(value["call"])]
            if isinstance(value.get("error"), str):
                raise BridgeFault("exception", f"the service says: {value['error']}")
        reply = ServiceReply.model_validate(value)
        return _reported(reply)
    except (ValueError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise BridgeFault("contract_violation", f"an answer in another form: {first}") from error


def _reported(reply: ServiceReply) -> list[Part]:
    parts: list[Part] = []
    calls = reply.calls or ()
    names = [call for call in calls if isinstance(call, str)]
    says_whom = reply.calls is not None and len(names) == len(calls)
    if not says_whom:
        for call in calls:
            parts.append(Called(call, kind="agent") if isinstance(call, str) else call)
    if reply.usage is not None:
        parts.append(Spent(_usage(reply.usage)))
    parts.append(Reported(reply.text, names if says_whom else None))
    return parts


def _usage(usage: ServiceUsage) -> Usage:
    tells_tokens = usage.input_tokens is not None or usage.output_tokens is not None
    known = usage.model_dump(exclude_none=True)
    return Usage(**known, untold_tokens=int(not tells_tokens))
