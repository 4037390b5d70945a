"""The contract with the context service: request, response, and what a version skew means."""

import hashlib
import hmac
import json
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from kit.core.context import Principal

T = TypeVar("T")
Status = Literal["ok", "partial", "error"]


class Inbound(BaseModel):
    """A value from outside: frozen, but tolerant of fields a newer minor version adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class EnricherRequest(Inbound):
    """What a tool asks the context service, always on behalf of a principal."""

    request_id: str
    principal: Principal | None = None
    domain_type: str
    enricher_id: str
    version: str = "1.0.0"
    params: dict[str, Any] = {}


class FailedSource(Inbound):
    """A source behind an enricher that did not answer; `critical` forces status=error at the service."""

    source: str
    critical: bool = False
    message: str = ""


class CacheMeta(Inbound):
    """Recorded, never acted on."""

    cached: bool = False
    cacheable: bool = False
    ttl_seconds: int | None = None
    key: str | None = None


class EnricherResponse(Inbound, Generic[T]):
    """The universal envelope; `status` alone decides what happens to the payload."""

    status: Status
    domain_type: str
    enricher_id: str
    version: str
    principal: Principal
    payload: T | None = None
    partial: tuple[FailedSource, ...] = ()
    cache_meta: CacheMeta = Field(default_factory=CacheMeta)
    signature: str | None = None
    """HMAC by `sign`, where service and tools share a key."""


def compatible(version: str, supported: str) -> bool:
    """True when two semantic versions share their major number; a malformed version is never compatible."""
    major, _, minor = version.partition(".")
    return major.isdigit() and bool(minor) and major == supported.partition(".")[0]


def sign(reply: EnricherResponse[Any], request_id: str, key: str) -> str:
    """HMAC-SHA256 over everything of an envelope that is acted on, and over the request it answers,
    so that none can be replayed.

    What is only recorded (cache, partial sources) and what a newer minor version adds is left out.
    """
    fields = {"status", "domain_type", "enricher_id", "version", "principal", "payload"}
    acted_on = reply.model_dump(mode="json", include=fields)
    # Both sides have to write the same text, whatever order a service keeps its fields in.
    text = json.dumps([request_id, acted_on], sort_keys=True, separators=(",", ":"))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def genuine(reply: EnricherResponse[Any], request_id: str, key: str | None) -> bool:
    """Whether an envelope carries the signature it must; without a key none must."""
    if key is None:
        return True
    signature = sign(reply, request_id, key)
    # As bytes: of texts `compare_digest` takes ASCII alone, and a stranger may send anything.
    return hmac.compare_digest((reply.signature or "").encode(), signature.encode())
