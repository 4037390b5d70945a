"""The summary of a session is a memory of that session, in every store, and the planner of a plan there reads it."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit import Kit, open_kit
from kit.compose.parts import DeckSettings
from kit.core.card import AgentCard
from kit.core.context import Principal
from kit.core.documents.document import Memory
from kit.core.record import Note
from kit.tools.recall import SessionSummaries, find_memories
from kit.tools.task_memory import TaskMemory
from tests.kits import OFFLINE, answering, lead_over
from tests.opensearch_server import new_documents
from tests.plan_kits import Rows, keeps_briefs, opened_plans
from tests.stores.conftest import DATABASES, new_place

ANN = Principal(tenant_id="acme", user_id="ann")
SUMMED_UP = "Ann runs the shop in Harbor Street and wants tea sold first."
WEEK = 7 * 86_400
OF_DECK = DeckSettings(orchestrator="lead", compact_after=2, compact_keep=1)


def settings_of(backend: str, folder: Path) -> Any:
    if backend == "opensearch":
        documents = new_documents()
        return OFFLINE.with_(store=str(folder / "kit.db"), documents=documents, retention_days=7)
    return OFFLINE.with_(store=new_place(backend, folder), retention_days=7)


def summaries_of(kit: Kit) -> SessionSummaries:
    memory = TaskMemory(kit.store.open_documents(), embedder=kit.embedder)
    return SessionSummaries(lambda: memory, "helper")


@pytest.mark.realtime
@pytest.mark.req("AS-12", "AS-30")
@pytest.mark.parametrize(
    "backend", [*DATABASES, pytest.param("opensearch", marks=pytest.mark.opensearch)]
)
async def test_it_is_found_in_its_session_and_in_no_other(backend: str, tmp_path: Path) -> None:
    models = {"lead": answering("Yes."), "desk": answering("Yes."), "helper": answering(SUMMED_UP)}
    desk = AgentCard(id="desk", description="Answers.", model="offline")
    deck = lead_over(desk, settings=OF_DECK)
    settings = settings_of(backend, tmp_path)
    async with open_kit(settings, deck=deck, models=models) as kit:
        for _ in range(4):
            await kit.ask("What sells best?", kit.session("s1", "acme", "ann"))
    # What was being written when it closed is there.
    async with open_kit(settings, deck=deck, models=models) as kit:
        memories = kit.store.open_documents().memory

        async def matches(tenant: str, user: str, session: str) -> list[Memory]:
            who = Principal(tenant_id=tenant, user_id=user)
            text = "which drink does the shop sell"
            return await find_memories(memories, kit.embedder, who, "session", text, 5, session)

        [memory] = await matches("acme", "ann", "s1")
        assert memory.value == SUMMED_UP and SUMMED_UP in str(memory.text)
        assert memory.embedding is not None and memory.embedder == kit.embedder.name
        assert memory.ttl_at == pytest.approx(memory.created_at + WEEK)
        assert memory.source == "scripted" and memory.locked_by is None
        strangers = (("acme", "ann", "s2"), ("acme", "bob", "s1"), ("other", "ann", "s1"))
        for tenant, user, session in strangers:
            assert await matches(tenant, user, session) == []


@pytest.mark.req("AS-12")
async def test_a_planner_reads_that_of_its_own_session_where_the_deck_recalls(
    tmp_path: Path,
) -> None:
    briefs: list[dict[str, Any]] = []

    for recall in (2, 0):
        async with opened_plans(
            tmp_path, Rows(), planner=keeps_briefs(briefs), recall=recall
        ) as kit:
            reply = await kit.ask("hello", kit.session("s1", "acme", "ann"))
            turn = kit.store.turn(reply.turn_id, ANN)
            assert turn is not None
            summaries = summaries_of(kit)
            summaries.keep(turn, Note(value=json.dumps({"text": SUMMED_UP}), at=1.0))
            await summaries.drain()
            briefs.clear()
            await kit.ask("which tea sells", kit.session("s1", "acme", "ann"))
            await kit.ask("which tea sells", kit.session("s2", "acme", "ann"))
        expected = [SUMMED_UP, None] if recall else [None, None]
        assert [brief.get("before_the_conversation") for brief in briefs] == expected
