"""Acts of a sub-agent behind A2A: they belong to the turn of the caller, and are done once over there too."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage, ToolMessage

from kit.core.card import AgentCard
from kit.core.errors import StoreError
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.act_ledger import UNCERTAIN
from kit.tools.tool import LimitedTool, ToolLimits
from tests.kits import asks
from tests.patterns.test_a2a import ask, bound, tool_of, wired
from tests.runtime.test_pause import ONCE, QUESTION, Desk, FailingDesk, Says, ask_desk


class SlowDesk(Desk):
    """Opens a ticket at once, and says so after a minute."""

    async def open_ticket(self, words: str) -> str:
        """Open a ticket."""
        answer = await super().open_ticket(words)
        await asyncio.sleep(60)
        return answer


@pytest.mark.req("SO-12")
async def test_no_act_of_a_peer_begins_that_the_caller_cannot_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = Desk(tmp_path, ONCE)

    def refuse(*_: object) -> None:
        raise StoreError("the disk is full")

    async with world.opened() as kit:
        monkeypatch.setattr(kit.store, "keep_log", refuse)
        reply = await ask_desk(kit, "a2a")
    assert world.tickets == 0
    assert "Ticket" not in reply.text and "4,975" in reply.text


async def test_an_act_behind_the_hop_has_the_key_and_the_events_that_it_has_here(tmp_path: Path):
    keys: list[str] = []
    told: list[list[tuple[str, str]]] = []
    for pattern in ("mediated", "a2a"):
        (tmp_path / pattern).mkdir()
        world = Desk(tmp_path / pattern, ONCE)
        async with world.opened() as kit:
            reply = await kit.ask(QUESTION, kit.session("talk"), pattern, turn_id="a" * 32)
        keys += world.keys
        events = [event for event in reply.events if event.kind != "hop"]
        told.append(sorted((event.kind, getattr(event.body, "agent", "")) for event in events))
    assert told[0] == told[1]
    assert len(keys) == 2 and keys[0] == keys[1]


async def test_an_agent_behind_the_hop_knows_in_another_process_what_it_was_asked_before(
    tmp_path: Path,
):
    """Whoever is asked to try again must not act on less than was asked."""
    histories: list[list[str]] = []

    class ListeningDesk(Desk):
        """Notes what the desk is sent."""

        def scripts(self) -> dict[str, Says]:
            def listen(messages: list[BaseMessage]) -> Line:
                histories.append([str(message.content) for message in messages[1:]])
                return Line("It is open.")

            return {**super().scripts(), "desk": listen}

    for pattern in ("mediated", "a2a"):
        (tmp_path / pattern).mkdir()
        for message in (QUESTION, "try again"):
            async with ListeningDesk(tmp_path / pattern, ONCE).opened() as kit:
                await ask_desk(kit, pattern, message)
    _, here, _, behind_the_hop = histories
    assert "It is open." in here
    assert behind_the_hop == here


async def book(words: str) -> str:
    """Book a visit."""
    return f"Booked: {words}."


class BookingDesk(Desk):
    """The orchestrator has a tool that asks first, and so has the desk."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.own_tools = {"book": LimitedTool(book, ToolLimits(confirm="Book {words}?"))}

    def cards(self) -> list[AgentCard]:
        orchestrator = AgentCard(
            id="orchestrator",
            role="orchestrator",
            description="Routes.",
            model="offline",
            sub_agents=("desk", "points"),
            tools=("book",),
        )
        (desk,) = super().cards()
        return [desk.replace(tools=("open_ticket",)), orchestrator]

    def scripts(self) -> dict[str, Says]:
        def lead(messages: list[BaseMessage]) -> Line:
            if isinstance(messages[-1], ToolMessage):
                return Line(calls=[("book", {"words": "a visit"})])
            return asks("desk", query=QUESTION)

        return {**super().scripts(), "orchestrator": lead}


async def test_a_question_that_a_peer_cannot_ask_is_not_asked_beside_one_of_the_orchestrator(
    tmp_path: Path,
):
    async with BookingDesk(tmp_path).opened() as kit:
        reply = await ask_desk(kit, "a2a")
    assert (reply.status, reply.text) == ("paused", "Book a visit?")


async def test_what_became_of_an_act_behind_the_hop_is_said_in_the_language_of_the_session(
    tmp_path: Path,
):
    """The far side says it, where the agent fails there and nobody waits any longer for its act."""

    class LateDesk(FailingDesk, SlowDesk):
        """Opens a ticket, and neither its tool nor its model says so."""

    world = LateDesk(tmp_path, ToolLimits(once=True, timeout_ms=100))
    async with world.opened() as kit:
        session = kit.session("talk").replace(locale="es-MX")
        reply = await kit.ask(QUESTION, session, "a2a")
    assert "open ticket: No se sabe si esto se ha hecho" in reply.text
    assert UNCERTAIN not in reply.text


# A peer in another process


@pytest.mark.req("SO-12")
async def test_an_act_of_an_agent_in_another_process_whose_hop_was_cut_off_is_said_to_be_unknown():
    begun: list[str] = []

    async def transfer() -> str:
        """Transfer."""
        begun.append("here")
        await asyncio.sleep(60)
        return "never"

    deck = tool_of("transfer", transfer)
    deck["tools"] = {"transfer": LimitedTool(transfer, ONCE)}
    model = ScriptedModel(Line(calls=[("transfer", {})]))
    async with wired(bound({"shop": model}, **deck), isolated=True) as (kit, _):
        reply = await ask(kit, "one thing")
    assert begun == ["here"]
    assert f"transfer: {UNCERTAIN}" in reply.text
