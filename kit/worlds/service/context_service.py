"""The context service: one endpoint that answers an enricher request with an envelope, on behalf of a principal."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from kit.core.envelope import CacheMeta, EnricherRequest, EnricherResponse, FailedSource, sign
from kit.worlds.service.enrichers import VERSION, Catalogue
from kit.worlds.service.parameters import Parameters

Reply = EnricherResponse[Any]
Serve = Callable[[EnricherRequest], Awaitable[Reply]]
Faults = Callable[[Mapping[str, str], EnricherRequest, Serve], Awaitable[Reply]]
"""Given the headers, the request and the honest service: returns what is sent. It may wait, alter
the reply, or raise."""


async def no_faults(headers: Mapping[str, str], request: EnricherRequest, serve: Serve) -> Reply:
    """Nothing goes wrong."""
    return await serve(request)


def context_app(
    *catalogues: Catalogue, latency: float = 0.0, faults: Faults = no_faults, key: str | None = None
) -> Starlette:
    """The service over the data of some worlds. Each enricher waits its own seconds times
    `latency`; with a `key` it signs."""
    service = _Service(
        {key: one for one in catalogues for key in one.enrichers}, latency, faults, key
    )
    return Starlette(
        routes=[
            Route("/v1/enrich", service.enrich, methods=["POST"]),
            Route("/v1/metrics", service.metrics),
        ]
    )


def settle(reply: Reply) -> Reply:
    """Lets the failed sources decide the status: a critical one makes it error and takes the payload."""
    if any(source.critical for source in reply.partial):
        return reply.model_copy(update={"status": "error", "payload": None})
    if reply.partial and reply.status == "ok":
        return reply.model_copy(update={"status": "partial"})
    return reply


@dataclass(frozen=True)
class _Service:
    catalogues: Mapping[tuple[str, str], Catalogue]
    """(domain type, enricher id) -> the world that has it."""
    latency: float
    faults: Faults
    key: str | None = None
    counts: Counter[str] = field(default_factory=Counter[str])

    async def metrics(self, _: Request) -> JSONResponse:
        """Counters since the service started."""
        return JSONResponse(dict(sorted(self.counts.items())))

    async def enrich(self, http: Request) -> JSONResponse:
        """Checks who asks for whom, then serves; a refusal has a code and nothing else."""
        self.counts["requests"] += 1
        try:
            request = EnricherRequest.model_validate_json(await http.body())
        except ValidationError as error:
            about_principal = any(fault["loc"][:1] == ("principal",) for fault in error.errors())
            return self._refuse(400, "missing_principal" if about_principal else "bad_request")
        if request.principal is None:
            return self._refuse(400, "missing_principal")
        credential = http.headers.get("x-principal")
        if credential is None:
            return self._refuse(401, "missing_credential")
        if credential != str(request.principal):
            return self._refuse(403, "principal_mismatch")
        if (request.domain_type, request.enricher_id) not in self.catalogues:
            return self._refuse(404, "unknown_enricher")
        reply = settle(await self.faults(http.headers, request, self._serve))
        if self.key is not None:
            reply = reply.model_copy(
                update={"signature": sign(reply, request.request_id, self.key)}
            )
        self.counts[f"status_{reply.status}"] += 1
        return JSONResponse(reply.model_dump(mode="json"))

    def _refuse(self, status: int, code: str) -> JSONResponse:
        self.counts[code] += 1
        return JSONResponse({"error": code}, status_code=status)

    async def _serve(self, request: EnricherRequest) -> Reply:
        key = (request.domain_type, request.enricher_id)
        catalogue = self.catalogues[key]
        enricher = catalogue.enrichers[key]
        principal = request.principal
        assert principal is not None, "checked before serving"
        if self.latency:
            await asyncio.sleep(enricher.seconds * self.latency)
        envelope: dict[str, Any] = {
            "domain_type": request.domain_type,
            "enricher_id": request.enricher_id,
            "version": VERSION,
            "principal": principal,
        }
        if not catalogue.knows(principal, enricher.personal):
            failed = FailedSource(source="accounts", critical=True, message="no such account")
            return Reply(status="ok", partial=(failed,), **envelope)
        payload = enricher.serve(
            catalogue.data, principal, Parameters.model_validate(request.params)
        )
        cache = CacheMeta(
            cacheable=not enricher.personal, ttl_seconds=None if enricher.personal else 300
        )
        return Reply(status="ok", payload=payload, cache_meta=cache, **envelope)
