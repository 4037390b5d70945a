"""The server of docs/embedding.md over a socket: a client is who its token says, and closing loses no turn."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from docs.embedding import server
from kit import Principal, open_kit
from kit.core.errors import ClosedError
from kit.core.record import TurnRecord
from kit.models.scripted import Line, ScriptedModel
from kit.service.limits import Limits
from kit.stores.sqlite import SqliteStore
from tests.house.test_repository import ROOT
from tests.kits import OFFLINE, asks, desk_deck, stitched
from tests.service.servers import until

USERS = {
    "anna": Principal(tenant_id="acme", user_id="anna"),
    "ben": Principal(tenant_id="globex", user_id="ben"),
}
NO_HEADERS: dict[str, str] = {}


def options(seconds: float = 0.0, store: str = ":memory:") -> dict[str, Any]:
    """A kit whose one sub-agent answers after so many seconds."""
    models = {
        "lead": ScriptedModel(
            lambda seen: stitched(seen) if seen[-1].type == "tool" else asks("desk")
        ),
        "desk": ScriptedModel(lambda _: Line("It is tea.", delay=seconds)),
    }
    return {
        "settings": OFFLINE.with_(store=store),
        "deck": desk_deck(()),
        "models": models,
    }


@dataclass
class Served:
    """The running server, its client, and how to end it."""

    server: uvicorn.Server
    client: httpx.AsyncClient
    work: "asyncio.Task[None]"

    def stream(self, token: str, headers: dict[str, str] = NO_HEADERS) -> Any:
        user = USERS.get(token, USERS["anna"])
        content = {
            "tenant_id": user.tenant_id,
            "user_id": user.user_id,
            "session_id": "s1",
            "message": "which drink?",
            "stream": True,
        }
        headers = {**headers, "authorization": f"Bearer {token}"}
        return self.client.stream("POST", "/agent/run", json=content, headers=headers)

    async def end(self) -> None:
        self.server.should_exit = True
        await self.work


@asynccontextmanager
async def served(**kit: Any) -> AsyncGenerator[Served, None]:
    app = server(USERS, Limits(), **options(**kit))
    config = uvicorn.Config(
        app, port=0, log_level="critical", lifespan="on", timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    work = asyncio.create_task(running.serve())
    await until(lambda: running.started)
    port = running.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        try:
            yield Served(running, client, work)
        finally:
            running.should_exit = True
            await work


@pytest.mark.realtime
@pytest.mark.req("K-27")
async def test_a_client_is_who_its_token_says_and_not_who_it_says_itself() -> None:
    async with served() as running:
        async with running.stream("anna") as response:
            assert response.status_code == 200 and "It is tea." in (await response.aread()).decode()
        posing = {"x-tenant-id": "acme", "x-user-id": "anna"}
        async with running.stream("nobody", posing) as response:
            assert response.status_code == 401
        # The body names anna, and the token is ben's.
        posing_as = {**posing, "authorization": "Bearer ben"}
        body = {"tenant_id": "acme", "user_id": "anna", "session_id": "s1", "message": "hello"}
        refused = await running.client.post("/agent/run", json=body, headers=posing_as)
        assert refused.status_code == 400


@pytest.mark.realtime
@pytest.mark.req("K-27")
async def test_a_server_that_is_told_to_end_answers_its_turns_to_their_end(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "kit.db")
    async with (
        served(seconds=0.2, store=path) as running,
        running.stream("anna") as first,
        running.stream("ben") as second,
    ):
        bodies = [response.aiter_text() for response in (first, second)]
        assert all([await anext(body) for body in bodies])
        await running.end()
        assert all(["It is tea." in "".join([text async for text in body]) for body in bodies])
    with closing(SqliteStore(path)) as store:
        stored = [(turn.tenant_id, turn.status) for turn in store.turns()]
        assert stored == [("globex", "ok"), ("acme", "ok")]


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
