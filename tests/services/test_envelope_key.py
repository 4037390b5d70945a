"""With a key, an envelope that is not signed for this very request counts as another principal's."""

from collections.abc import Callable
from typing import Any

import pytest

from kit.core.context import Principal
from kit.core.envelope import (
    EnricherRequest,
    EnricherResponse,
    sign,
)
from kit.settings import Settings
from kit.tools.enricher import UNAVAILABLE, HttpEnrich
from kit.wire import open_kit
from kit.worlds.consumer.support import HttpSupport
from kit.worlds.consumer.support_service import support_app
from tests.tools.test_tools import Run, Watched, call, client, world
from tests.worlds import context_app, toolbox

KEY = "a key that both sides hold"
Reply = EnricherResponse[Any]


async def asked(
    alter: Callable[[Reply], Reply] = lambda reply: reply,
    service: str | None = KEY,
    tools: str | None = KEY,
) -> tuple[Run, list[EnricherRequest]]:
    async with (
        client(context_app(world(), key=service)) as context,
        client(support_app(world())) as support,
    ):
        watched = Watched(HttpEnrich(context), alter)
        return await call(
            toolbox(watched, HttpSupport(support), None, key=tools)["search_offers"]({}),
            query="coffee",
        ), watched.asked


def payload(reply: Reply) -> Reply:
    return reply.model_copy(update={"payload": {**(reply.payload or {}), "topic": "forged"}})


@pytest.mark.req("PC2-HMAC")
@pytest.mark.parametrize(
    "alter",
    [
        payload,
        lambda reply: reply.model_copy(update={"status": "partial"}),
        lambda reply: reply.model_copy(update={"signature": None}),
        lambda reply: reply.model_copy(update={"signature": "é" * 64}),
        lambda reply: reply.model_copy(update={"signature": sign(reply, "another request", KEY)}),
        lambda reply: reply.model_copy(
            update={"signature": sign(reply, "t1/shop/search_offers", "another key")}
        ),
    ],
    ids=["payload", "status", "unsigned", "no hex", "replayed", "other key"],
)
async def test_what_was_tampered_with_or_replayed_reaches_nobody(
    alter: Callable[[Reply], Reply],
):
    run, requests = await asked(alter)
    assert (run.result.fault, run.result.text, run.result.components) == (
        "principal_mismatch",
        UNAVAILABLE,
        (),
    )
    assert [e.principal_verified for e in run.envelopes] == [False] and len(requests) == 1
    assert "forged" not in run.everything()


@pytest.mark.req("PC2-HMAC")
async def test_a_signature_does_not_excuse_a_foreign_principal():
    def foreign(reply: Reply) -> Reply:
        other = reply.model_copy(update={"principal": Principal(tenant_id="acme", user_id="u-999")})
        return other.model_copy(update={"signature": sign(other, requests[-1], KEY)})

    requests: list[str] = []

    class Noted(Watched):
        async def __call__(self, request: EnricherRequest) -> Reply:
            requests.append(request.request_id)
            return await super().__call__(request)

    async with (
        client(context_app(world(), key=KEY)) as context,
        client(support_app(world())) as support,
    ):
        box = toolbox(Noted(HttpEnrich(context), foreign), HttpSupport(support), None, key=KEY)
        run = await call(box["search_offers"]({}), query="coffee")
    assert run.result.fault == "principal_mismatch" and requests


async def test_without_a_key_nothing_need_be_signed_and_a_service_without_one_is_refused():
    assert (await asked(service=KEY, tools=KEY))[0].result.fault is None
    assert (await asked(service=None, tools=None))[0].result.fault is None
    assert (await asked(service=KEY, tools=None))[0].result.fault is None
    assert (await asked(service=None, tools=KEY))[0].result.fault == "principal_mismatch"


@pytest.mark.req("PC2-HMAC")
async def test_the_variable_reaches_service_and_tools():
    settings = Settings.read({"KIT_ENVELOPE_KEY": KEY, "KIT_STORE": ":memory:", "KIT_PACE": "0"})
    assert settings.environment_of(["KIT_ENVELOPE_KEY", "KIT_UPSTREAM_URL"]) == {
        "KIT_ENVELOPE_KEY": KEY
    }
    async with open_kit(settings) as kit:
        reply = await kit.ask("how many points do I have?", kit.session("s"))
    assert "4,975" in reply.text
