"""The API over real HTTP, in this process, and what its streams say."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from kit import Kit, open_kit
from kit.compose.deck import Deck, load_deck
from kit.compose.registry import Registry
from kit.core.card import AgentCard
from kit.models.scripted import Line, ScriptedModel
from kit.service.api import create_app
from kit.service.limits import Limits
from kit.service.queued_plans import QueuedPlans
from kit.service.service import Service
from kit.settings import HOME, Settings
from kit.worlds.outlets.server import skill_app
from kit.worlds.outlets.skill_service import SkillService
from kit.worlds.service.serve import serving
from tests.kits import OFFLINE, asks, desk_deck, stitched

ACME = {"X-Tenant-Id": "acme", "X-User-Id": "alice"}
GLOBEX = {"X-Tenant-Id": "globex", "X-User-Id": "alice"}
KEYS = {"acme": "acme-planted-0123456789", "globex": "globex-planted-0123456789"}
TASK = "Rank the active outlets by how they did in the last 8 weeks"


@dataclass
class Api:
    """A running API and a client of it."""

    http: httpx.AsyncClient
    kit: Kit
    service: Service

    async def run(
        self, message: str = "which drink?", who: dict[str, str] = ACME, **fields: Any
    ) -> httpx.Response:
        headers = {**who, **fields.pop("headers", {})}
        return await self.http.post(
            "/agent/run", json=body(message, who, **fields), headers=headers
        )

    def stream(
        self, message: str = "which drink?", who: dict[str, str] = ACME, **fields: Any
    ) -> Any:
        headers = {**who, **fields.pop("headers", {})}
        content = body(message, who, stream=True, **fields)
        return self.http.stream("POST", "/agent/run", json=content, headers=headers)


def body(message: str, who: dict[str, str], session: str = "s1", **fields: Any) -> dict[str, Any]:
    """The body of a request, by the headers that come with it."""
    identity = {"tenant_id": who["X-Tenant-Id"], "user_id": who["X-User-Id"], "session_id": session}
    return {**identity, "message": message, **fields}


@asynccontextmanager
async def serving_kit(
    kit: Kit,
    limits: Limits | None = None,
    pattern: str | None = None,
    queued_plans: QueuedPlans | None = None,
) -> AsyncGenerator[Api]:
    """Serves a kit that is open."""
    service = Service(kit, limits, pattern, queued_plans)
    app = create_app(service, most_bytes=service.limits.most_bytes)
    async with (
        serving(app) as url,
        httpx.AsyncClient(
            base_url=url, timeout=300, limits=httpx.Limits(max_connections=None)
        ) as http,
    ):
        yield Api(http, kit, service)


@asynccontextmanager
async def chat(
    seconds: float = 0.0,
    limits: Limits | None = None,
    store: Path | None = None,
    words: Callable[[list[Any]], Line] | None = None,
    query: str | None = None,
    **changed: Any,
) -> AsyncGenerator[Api]:
    """Serves a chat whose one sub-agent is asked a query and answers after so many seconds; `changed` settings replace those of all tests."""

    def decide(seen: list[Any]) -> Line:
        return stitched(seen) if seen[-1].type == "tool" else asks("desk", query=query)

    def answer(_: list[Any]) -> Line:
        return Line("It is tea.", delay=seconds)

    models = {"lead": ScriptedModel(decide), "desk": ScriptedModel(words or answer)}
    settings = OFFLINE.with_(**changed)
    if store is not None:
        settings = settings.with_(store=str(store))
    async with (
        open_kit(settings, deck=desk_deck(()), models=models) as kit,
        serving_kit(kit, limits) as api,
    ):
        yield api


@cache
def deck_of_plans() -> Deck:
    """The outlets' deck for plans alone: its chat's own MCP server, a process that takes a second
    to start, is not there, and neither are the tools of it."""
    deck = load_deck(HOME / "cards/outlets")
    tools = {name: tool for name, tool in deck.tools.tools.items() if "." not in name}
    cards: dict[str, AgentCard] = {}
    for name, card in deck.cards.items():
        kept = tuple(tool for tool in card.tools if tool in tools)
        cards[name] = card.model_copy(update={"tools": kept})
    return replace(
        deck,
        cards=Registry("card", cards),
        settings=deck.settings.model_copy(update={"mcp": {}}),
        tools=replace(deck.tools, tools=tools, servers={}),
    )


@asynccontextmanager
async def outlets(
    folder: Path, limits: Limits | None = None, **changed: Any
) -> AsyncGenerator[Api]:
    """The outlets over a skill service with a key for each tenant; `changed` settings replace those of all tests."""
    async with serving(skill_app(SkillService(), KEYS)) as url:
        settings = outlet_settings(folder, url).with_(**changed)
        async with (
            open_kit(settings, deck=deck_of_plans()) as kit,
            serving_kit(kit, limits) as api,
        ):
            yield api


def outlet_settings(folder: Path, url: str) -> Settings:
    """The settings of a kit of the outlets over a skill service at an address."""
    return Settings(
        deck=HOME / "cards/outlets",
        store=str(folder / "kit.db"),
        pace=0,
        model="offline",
        skill_service_url=f"{url}/api/{{tenant_id}}",
        variables={"PATH": os.environ["PATH"]},
    )


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    kind: str
    id: int | None
    data: dict[str, Any]


async def frames(response: httpx.Response) -> AsyncGenerator[Frame]:
    """Yields the events of a stream as they come."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, text = line.partition(": ")
            fields[name] = text
        elif "data" in fields:
            number = int(fields["id"]) if "id" in fields else None
            yield Frame(fields["event"], number, json.loads(fields["data"]))
            fields = {}


async def until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
