"""The server of docs/embedding.md over a socket: who leaves stops the turn, closing loses none, no
tenant crowds out another."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from docs.embedding import Tenants, create_app
from kit import Kit, Settings, open_kit
from kit.compose.deck import Deck
from kit.core.card import AgentCard
from kit.core.errors import ClosedError
from kit.core.record import TurnRecord
from kit.models.scripted import Line, ScriptedModel
from kit.stores.sqlite import SqliteStore
from tests.house.test_repository import ROOT
from tests.kits import asks, stitched

SETTINGS = Settings(store=":memory:", pace=0.0, today="2026-11-01", model="offline")
ANNA, BEN = (
    {"x-tenant": tenant, "x-user": user} for tenant, user in (("acme", "anna"), ("globex", "ben"))
)


def options(seconds: float = 0.0, store: str = ":memory:") -> dict[str, Any]:
    """A kit whose one sub-agent answers after so many seconds."""
    lead = AgentCard(id="lead", description="Leads.", model="offline", sub_agents=("desk",))
    desk = AgentCard(id="desk", description="Looks things up.", model="offline")
    models = {
        "lead": ScriptedModel(
            lambda seen: stitched(seen) if seen[-1].type == "tool" else asks("desk")
        ),
        "desk": ScriptedModel(lambda _: Line("It is tea.", delay=seconds)),
    }
    return {
        "settings": SETTINGS.with_(store=store),
        "deck": Deck.of([lead, desk], required_blocks=()),
        "models": models,
    }


class Served:
    """The running server: its client, its kit, and how to end it."""

    def __init__(
        self,
        server: uvicorn.Server,
        client: httpx.AsyncClient,
        kit: Kit,
        work: "asyncio.Task[None]",
    ):
        self.server, self.client, self.kit, self.work = server, client, kit, work

    async def ask(
        self, who: dict[str, str], session: str = "s1", message: str = "which drink?"
    ) -> httpx.Response:
        return await self.client.post(
            "/turns", json={"session_id": session, "message": message}, headers=who
        )

    def stream(self, who: dict[str, str], session: str = "s1") -> Any:
        return self.client.stream(
            "POST", "/turns", json={"session_id": session, "message": "which drink?"}, headers=who
        )

    def turns(self) -> list[TurnRecord]:
        return self.kit.store.turns()

    async def end(self) -> None:
        self.server.should_exit = True
        await self.work


@asynccontextmanager
async def served(tenants: Tenants | None = None, **kit: Any) -> AsyncGenerator[Served, None]:
    app = create_app(tenants or Tenants(), **options(**kit))
    server = uvicorn.Server(
        uvicorn.Config(
            app, port=0, log_level="critical", lifespan="on", timeout_graceful_shutdown=1
        )
    )
    work = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
        running = Served(server, client, app.state.kit, work)
        try:
            yield running
        finally:
            await running.end()


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def frames(response: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    parts = [part.split("\n") for part in response.text.strip().split("\n\n")]
    return [
        (kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for kind, data in parts
    ]


@pytest.mark.realtime
@pytest.mark.req("K-27")
async def test_a_turn_comes_as_server_sent_events_and_ends_with_its_reply() -> None:
    async with served() as server:
        response = await server.ask(ANNA)
        [turn] = server.turns()
    assert response.headers["content-type"].startswith("text/event-stream")
    events = frames(response)
    assert {kind for kind, _ in events} == {"text", "reply"}, "no prompt, no span, no raw reason"
    assert events[-1] == (
        "reply",
        {"turn_id": turn.id, "status": "ok", "text": "It is tea.", "saved": True},
    )


@pytest.mark.realtime
@pytest.mark.req("K-27")
async def test_a_client_that_leaves_stops_its_turn_and_gives_its_place_back() -> None:
    async with served(Tenants(at_once=1), seconds=30) as server:
        async with server.stream(ANNA) as response:
            body = response.aiter_text()
            assert "text" in await anext(body)
            assert (len(server.kit.turns), (await server.ask(ANNA, "s2")).status_code) == (1, 429)
        await until(lambda: len(server.kit.turns) == 0)
        assert [turn.status for turn in server.turns()] == ["cancelled"]
        async with server.stream(ANNA, "s3") as response:
            assert response.status_code == 200


@pytest.mark.realtime
@pytest.mark.req("K-27")
@pytest.mark.parametrize(("seconds", "status"), [(0.4, "ok"), (30.0, "cancelled")])
async def test_a_server_that_is_told_to_end_loses_no_turn(
    tmp_path: Path, seconds: float, status: str
) -> None:
    """Those that end in time are answered to their end, the others are stopped; all are stored."""
    path = str(tmp_path / "kit.db")
    async with (
        served(seconds=seconds, store=path) as server,
        server.stream(ANNA) as first,
        server.stream(BEN, "s2") as second,
    ):
        bodies = [response.aiter_text() for response in (first, second)]
        assert all([await anext(body) for body in bodies])
        await server.end()
        if status == "ok":
            assert all(["It is tea." in "".join([text async for text in body]) for body in bodies])
    with closing(SqliteStore(path)) as store:
        assert [(turn.tenant_id, turn.status) for turn in store.turns()] == [
            ("globex", status),
            ("acme", status),
        ]


@pytest.mark.realtime
@pytest.mark.req("K-27")
async def test_a_tenant_over_its_limits_is_told_when_to_come_back_and_the_other_is_served() -> None:
    now = [0.0]
    async with served(Tenants(per_minute=2, clock=lambda: now[0])) as server:
        assert [(await server.ask(ANNA)).status_code for _ in range(3)] == [200, 200, 429]
        refused = await server.ask({**ANNA, "x-user": "another"})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60"), (
            "the limit is the tenant's"
        )
        assert (await server.ask(BEN, "s2")).status_code == 200
        now[0] = 60.0
        assert (await server.ask(ANNA)).status_code == 200
        assert len(server.turns()) == 4


@pytest.mark.realtime
@pytest.mark.req("K-27")
async def test_a_strangers_session_is_not_there_and_nobody_asks_without_a_name() -> None:
    async with served() as server:
        assert (await server.ask(ANNA, "mine")).status_code == 200
        stranger = await server.ask({**ANNA, "x-user": "mallory"}, "mine")
        assert (stranger.status_code, stranger.json()) == (404, {"detail": "no such session"})
        assert (await server.ask({})).status_code == 401
        assert (await server.ask(ANNA, "no id\x00")).status_code == 422
        assert len(server.turns()) == 1


# What the kit gives to a server


@pytest.mark.req("K-27")
async def test_a_kit_that_closes_stops_its_turns_and_stores_them_first() -> None:
    async with open_kit(**options(30)) as kit:
        turn = kit.ask("which drink?", kit.session("s"))
        await asyncio.sleep(1)
        ended: list[TurnRecord] = []
        turn.on_end(lambda: ended.extend(kit.store.turns(session_id="s")))
    assert (await turn).status == "cancelled" and [row.status for row in ended] == ["cancelled"]
    with pytest.raises(ClosedError, match="open another one with open_kit"):
        kit.ask("and now?", kit.session("s"))


@pytest.mark.req("K-27")
async def test_draining_waits_for_those_that_end_in_time_and_stops_the_others() -> None:
    async with open_kit(**options(5)) as kit:
        early = kit.ask("which drink?", kit.session("a"))
        await asyncio.sleep(3)
        late = kit.ask("which drink?", kit.session("b"))
        began = asyncio.get_running_loop().time()
        await kit.turns.drain(3)
        assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.6)
        assert ((await early).status, (await late).status, len(kit.turns)) == ("ok", "cancelled", 0)


def test_the_page_shows_the_server_that_is_tested() -> None:
    page, source = ((ROOT / "docs" / name).read_text() for name in ("embedding.md", "embedding.py"))
    assert f"```python\n{source}```\n" in page
