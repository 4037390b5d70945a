"""The services outside: who may ask, what an envelope says, how long things take, how a support
conversation goes on."""

import asyncio
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.core.context import Principal
from kit.core.envelope import EnricherRequest, EnricherResponse, FailedSource
from kit.tools.asgi_transport import StreamingASGITransport
from kit.worlds.consumer.enrichers import ENRICHERS
from kit.worlds.consumer.support_service import support_app
from kit.worlds.consumer.world import World, load_world
from kit.worlds.service.context_service import Faults, Serve, no_faults
from tests.worlds import context_app

ACME, GLOBEX = (Principal(tenant_id=tenant, user_id="u-001") for tenant in ("acme", "globex"))
Reply = EnricherResponse[Any]


@lru_cache(maxsize=1)
def world() -> World:
    return load_world(Path(__file__).resolve().parents[2] / "data" / "world")


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=StreamingASGITransport(app), base_url="http://upstream.internal"
    )


def context(latency: float = 0.0, faults: Faults = no_faults) -> httpx.AsyncClient:
    return client(context_app(world(), latency=latency, faults=faults))


async def post(
    http: httpx.AsyncClient,
    enricher: tuple[str, str],
    principal: Principal | None = ACME,
    credential: str | None = None,
    **params: Any,
) -> httpx.Response:
    body: dict[str, Any] = {
        "request_id": "r",
        "domain_type": enricher[0],
        "enricher_id": enricher[1],
        "params": params,
    }
    if principal:
        body["principal"] = principal.model_dump()
    said = credential if credential is not None else str(principal)
    return await http.post("/v1/enrich", json=body, headers={"x-principal": said} if said else {})


async def payload(enricher: tuple[str, str], principal: Principal = ACME, **params: Any) -> Any:
    async with context() as http:
        reply = (await post(http, enricher, principal, **params)).json()
    assert reply["status"] == "ok"
    return reply["payload"]


# Who may ask


@pytest.mark.req("PC2-S5.5", "PC2-S5.5b")
async def test_a_request_of_nobody_or_of_another_principal_is_refused_and_counted():
    balance = ("rewards", "balance")
    foreign = ("acme/u-002", "globex/u-001", "u-001")
    async with context() as http:
        answers = [
            await post(http, balance, None, "acme/u-001"),
            *[await post(http, balance, ACME, credential) for credential in foreign],
            await post(http, balance, ACME, ""),
            await post(http, ("rewards", "nothing")),
            await http.post("/v1/enrich", content=b"\xff{"),
            await post(http, balance, ACME),
        ]
        counts = (await http.get("/v1/metrics")).json()
    assert [(answer.status_code, answer.json().get("error")) for answer in answers] == [
        (400, "missing_principal"),
        *[(403, "principal_mismatch")] * 3,
        (401, "missing_credential"),
        (404, "unknown_enricher"),
        (400, "bad_request"),
        (200, None),
    ]
    told = ("requests", "missing_principal", "principal_mismatch", "status_ok")
    assert [counts[name] for name in told] == [len(answers), 1, 3, 1]


async def test_an_unknown_user_gets_no_invented_figures():
    stranger = Principal(tenant_id="acme", user_id="u-999")
    async with context() as http:
        own = (await post(http, ("rewards", "balance"), stranger)).json()
        common = (await post(http, ("shop", "offers"), stranger, query="coffee")).json()
        nowhere = (
            await post(http, ("shop", "offers"), Principal(tenant_id="other", user_id="u-001"))
        ).json()
    assert (own["status"], own["payload"]) == ("error", None)
    assert (nowhere["status"], nowhere["payload"]) == ("error", None)
    assert common["status"] == "ok"


# What an envelope says


@pytest.mark.req("PC2-S5.5", "PC2-S9.4-2")
@pytest.mark.parametrize("enricher", sorted(ENRICHERS), ids="/".join)
async def test_every_envelope_names_its_type_version_and_principal(
    enricher: tuple[str, str],
):
    async with context() as http:
        reply = Reply.model_validate((await post(http, enricher)).json())
    assert (reply.status, reply.domain_type, reply.enricher_id, reply.principal) == (
        "ok",
        *enricher,
        ACME,
    )
    assert reply.version.startswith("1.") and reply.payload and not reply.partial


def failing(*sources: FailedSource) -> Faults:
    async def faults(headers: Mapping[str, str], request: EnricherRequest, honest: Serve) -> Reply:
        return (await honest(request)).model_copy(update={"partial": sources})

    return faults


@pytest.mark.req("PC2-S5.5b")
async def test_a_critical_failed_source_forces_the_status_to_error():
    minor, critical = FailedSource(source="prices"), FailedSource(source="offers", critical=True)
    found: list[tuple[str, bool]] = []
    for sources in ((minor,), (critical,), (minor, critical), ()):
        async with context(faults=failing(*sources)) as http:
            reply = (await post(http, ("shop", "offers"), query="coffee")).json()
        found.append((reply["status"], reply["payload"] is not None))
    assert found == [("partial", True), ("error", False), ("error", False), ("ok", True)]


# What is true


ODD_VALUES = ("coffee", "rc-00036", "pending", "\x00 ü", "-1", "", None, 0, -7, 10**12, 0.5)
PARAMETERS = ("query", "category", "brand", "limit", "status", "id", "location", "within_days", "?")


async def test_no_argument_breaks_an_enricher_or_crosses_a_tenant():
    def foreign(tenant: Principal, other: Principal) -> set[str]:
        offers = {
            offer.id for offer in world().offers.values() if offer.tenant_id != tenant.tenant_id
        }
        return offers | {receipt.id for receipt in world().receipts[other.tenant_id, other.user_id]}

    sides = ((ACME, foreign(ACME, GLOBEX)), (GLOBEX, foreign(GLOBEX, ACME)))
    async with context() as http:
        for place, (enricher, name) in enumerate(product(ENRICHERS, PARAMETERS)):
            principal, theirs = sides[place % 2]
            params: dict[str, Any] = {name: ODD_VALUES[place % len(ODD_VALUES)]}
            answer = await post(http, enricher, principal, **params)
            assert answer.status_code in (200, 400)
            if answer.status_code == 200:
                reply = answer.json()
                assert reply["status"] == "ok"
                # The caller's own words.
                reply["payload"].pop("topic", None)
                assert theirs.isdisjoint(re.findall(r'"([^"]*)"', json.dumps(reply)))


# Support


async def say(
    http: httpx.AsyncClient, query: str, who: Principal = ACME, **fields: str | None
) -> list[tuple[float, dict[str, Any]]]:
    """Chunks of an answer with the seconds at which they came."""
    clock = asyncio.get_running_loop().time
    began, found = clock(), list[tuple[float, dict[str, Any]]]()
    body = {"query": query, **fields}
    async with http.stream(
        "POST", "/v1/ask", json=body, headers={"x-principal": str(who)}
    ) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            found.append((round(clock() - began, 6), json.loads(line)))
    return found


def support(pace: float = 0.0) -> httpx.AsyncClient:
    return client(support_app(world(), pace=pace))


async def test_a_conversation_continues_within_55_minutes_for_its_owner_only():
    async with support() as http:
        key = (await say(http, "my receipt didn't scan"))[0][1]["conversation_id"]
        await asyncio.sleep(54 * 60)
        again = await say(http, "and then?", conversation_id=key)
        stranger = await say(http, "and then?", GLOBEX, conversation_id=key)
        await asyncio.sleep(56 * 60)
        lapsed = await say(http, "and then?", conversation_id=key)
    assert (again[0][1]["conversation_id"], again[0][1]["continued"]) == (key, True)
    assert again[-1][1]["article"] == "ha-rejected_receipt-1"
    for other in (stranger, lapsed):
        assert (
            other[0][1]["conversation_id"] != key
            and not other[0][1]["continued"]
            and other[-1][1]["article"] is None
        )


async def test_support_refuses_a_question_for_nobody():
    async with support() as http:
        answer = await http.post("/v1/ask", json={"query": "hello"})
    assert (answer.status_code, answer.json()) == (400, {"error": "missing_principal"})


# Over a socket
