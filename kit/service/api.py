"""The API as one ASGI app: its endpoints, and what becomes of errors."""

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from kit.core.context import Principal
from kit.core.display.distribution import VERSION
from kit.core.errors import (
    ClosedError,
    KitError,
    SessionError,
    StorageSchemaError,
    StoreBusy,
    StoreError,
    field_faults,
)
from kit.core.limits import BodyLimit
from kit.service import documents, plans, prometheus, runs
from kit.service.bodies import Health, Problem, stream_schemas
from kit.service.limits import Limits
from kit.service.service import Service, Serving
from kit.service.turns import KeyReused
from kit.stores.bus.bus import BusError

STATUS: Mapping[type[Exception], int] = {
    SessionError: 404,
    ClosedError: 503,
    StorageSchemaError: 422,
    StoreBusy: 503,
    StoreError: 503,
    BusError: 503,
    KeyReused: 409,
    KitError: 409,
}
"""What becomes of an error of the kit: the first class that it is of counts."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request and its headers name two identities"},
    401: {"model": Problem, "description": "Nobody says who asks"},
    403: {"model": Problem, "description": "Another tenant's"},
    404: {"model": Problem, "description": "There is none of the caller"},
    409: {"model": Problem, "description": "Not now, or not so"},
    413: {"model": Problem, "description": "The body is too large"},
    422: {"model": Problem, "description": "The request has not the form of this document"},
    429: {"model": Problem, "description": "The tenant has too many turns"},
    503: {"model": Problem, "description": "Not yet open, closing, or the store is busy"},
}


class Api(FastAPI):
    """FastAPI that also describes what the streams carry."""

    def openapi(self) -> dict[str, Any]:
        # FastAPI finds the models of bodies and replies, and none that stands in the data of a stream.
        document = super().openapi()
        document["components"]["schemas"] |= stream_schemas()
        return document


def create_app(service: Service | None = None, *, most_bytes: int = Limits.most_bytes) -> FastAPI:
    """Returns the app. `service` may be set later, as `app.state.service`: until then nothing is ready."""
    # Its own pages load their scripts from a third party, so that only the document is served.
    app = Api(title="Agentic service", version=VERSION, docs_url=None, redoc_url=None)
    app.state.service = service
    if service is not None:
        # Their first opening writes, and would have every request wait for a busy store.
        service.kit.store.open_documents()
    app.add_middleware(BodyLimit, most_bytes=most_bytes)
    for room in (runs, plans, documents):
        app.include_router(room.router, responses=PROBLEMS)
    app.include_router(prometheus.router, responses={503: PROBLEMS[503]})
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind in STATUS:
        app.add_exception_handler(kind, _refused)

    @app.get("/health")
    async def health() -> Health:
        """Says that the process lives."""
        return Health(status="ok")

    @app.get("/ready", responses={503: PROBLEMS[503]})
    async def ready(service: Serving) -> Health:
        """Says that the kit is open, store and documents can be read, and plans can be queued where they are."""
        await asyncio.to_thread(service.kit.store.turns, limit=1)
        # They may be on another server. To read one by its id is the cheapest that it can be asked.
        await service.documents.plans.read(Principal(tenant_id="ready", user_id="ready"), "ready")
        if service.pattern.is_plan and service.queued_plans is not None:
            await service.queued_plans.queue.check()
        return Health(status="ready")

    return app


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """Words a request that does not fit. What was sent is not repeated: it may hold a key."""
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": "; ".join(field_faults(error.errors()))}, 422)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
    detail = str(error)
    if status == 404:
        # For this caller there is no such session: that another user has it is not told.
        detail = "there is no such session"
    headers = {"Retry-After": "5"} if status == 503 else None
    return JSONResponse({"detail": detail}, status, headers)
