"""The kit: its own adapter for most of it, and the kit as an app opens it where the conversation is
one that it stored itself."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kit import Settings, open_kit
from kit.bench.peers import NAME, PACKAGES, Adapter, parts_of
from kit.core.context import Session
from kit.wire import Kit
from workload import History, Spec

__all__ = ["NAME", "PACKAGES", "Adapter", "StoredSession", "open_session"]


class StoredSession:
    """Turns in one session of an open kit, which reads its history from the store."""

    def __init__(self, kit: Kit, session: Session):
        self._kit, self._session = kit, session

    async def turn(self, text: str, history: History = ()) -> str:
        return (await self._kit.ask(text, self._session)).text


@asynccontextmanager
async def open_session(spec: Spec, messages: int) -> AsyncGenerator[StoredSession]:
    """A session in which so many messages were exchanged, played turn by turn beforehand."""
    deck, models, tools = parts_of(spec)
    async with open_kit(Settings(store=spec.store), deck=deck, models=models, tools=tools) as kit:
        session = StoredSession(kit, kit.session("long"))
        for place in range(messages // 2):
            await session.turn(
                f"message {place} " + "points offers receipts rewards coffee tea bread milk " * 4
            )
        yield session
