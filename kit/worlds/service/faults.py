"""Faults of the embedded services, asked for in a header: a caller decides for its own requests, and for no others."""

from collections.abc import Mapping
from typing import Any

from kit.core.context import Principal
from kit.core.envelope import EnricherRequest, EnricherResponse, FailedSource
from kit.core.fault import CANARY, CANARY_NUMBER, HEADER, RAW
from kit.worlds.service.context_service import Serve

STRANGER = "u-stranger"
"""The other user a foreign reply is about; of the same tenant, which is the harder one to notice."""
MISSING_SOURCE = FailedSource(source=f"ledger {RAW}", message=f"503 from ledger ({RAW})")
Reply = EnricherResponse[Any]


def fault_kinds(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Kinds a request asks for."""
    return tuple(kind.strip() for kind in headers.get(HEADER, "").split(",") if kind.strip())


async def by_header(headers: Mapping[str, str], request: EnricherRequest, serve: Serve) -> Reply:
    """Serves honestly, then spoils the reply the way the header asks."""
    reply = await serve(request)
    for kind in fault_kinds(headers):
        reply = _spoiled(kind, reply)
    return reply


def _spoiled(kind: str, reply: Reply) -> Reply:
    match kind:
        case "error_envelope":
            return _with(
                reply, status="error", partial=(MISSING_SOURCE,), payload=with_canary(reply.payload)
            )  # status alone decides
        case "partial_envelope":
            return _with(reply, partial=(MISSING_SOURCE,))
        case "foreign_principal":
            stranger = Principal(tenant_id=reply.principal.tenant_id, user_id=STRANGER)
            return _with(reply, principal=stranger, payload=with_canary(reply.payload))
        case "bad_payload":
            return _with(reply, payload={"unexpected": CANARY})
        case "version_break":
            return _with(reply, version="2.0.0", payload=with_canary(reply.payload))
        case _:
            return reply


def with_canary(value: Any) -> Any:
    """The same payload, valid as before, with a mark in its names and sentences and in place of its larger numbers."""
    match value:
        case dict():
            return {key: with_canary(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [with_canary(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
        case str() if value[:1].isupper() or " " in value:
            return f"{CANARY} {value}"
        case int() if value > 99:
            return CANARY_NUMBER
        case _:
            return value


def _with(reply: Reply, **changes: Any) -> Reply:
    return reply.model_copy(update=changes)
