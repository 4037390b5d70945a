"""A turn that pauses for its user, or whose process dies, and goes on: what had ended is played, no
act is done twice."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from kit import Kit, Reply, open_kit
from kit.compose.deck import Deck
from kit.compose.topology import Topology
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.turn import Resumed
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import OPERATOR, Principal
from kit.core.errors import ResumeError
from kit.core.outcome import BEFORE_YES, PARTLY
from kit.home import HOME
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.a2a import a2a_over
from kit.runtime import turn as turn_module
from kit.runtime.act_ledger import ASKED_BEFORE, DECLINED, DONE_BEFORE, UNCERTAIN, ActLedger
from kit.runtime.handle import Turn
from kit.runtime.pattern import Pattern
from kit.settings import Settings
from kit.tools.loading import function_tool
from kit.tools.tool import LimitedTool, ToolLimits, tool_context
from kit.ui.shared.turn_fold import stored_view
from kit.ui.shared.turn_sentence import turn_sentence
from tests.forks import exit_code
from tests.kits import OFFLINE, asks, repeats, routing, small_deck

QUESTION = "Open a ticket about my printer, and how many points do I have?"
ASKS = ToolLimits(confirm="Open a ticket that says “{words}”?")
ONCE = ToolLimits(once=True)
HERE_AND_BEHIND_A_HOP = [(ASKS, "mediated"), (ONCE, "mediated"), (ONCE, "a2a")]
"""Limits of a tool that acts, and the pattern that asks its agent; a peer elsewhere can ask for no yes."""
Resume = Literal["reinvoke", "reuse", "partial"]
Says = Callable[[list[BaseMessage]], Line]
"""What a model says to what it has read."""


def desk(messages: list[BaseMessage]) -> Line:
    """Opens a ticket, and says what came of it."""
    if isinstance(messages[-1], ToolMessage):
        return repeats(messages)
    return Line(calls=[("open_ticket", {"words": "the printer is out of ink"})])


def desk_as_asked(messages: list[BaseMessage]) -> Line:
    """Opens a ticket about what it is asked, whatever that is."""
    if isinstance(messages[-1], ToolMessage):
        return repeats(messages)
    is_known = "printer" in str(messages[-1].content)
    words = "the printer is out of ink" if is_known else "something"
    return Line(calls=[("open_ticket", {"words": words})])


class Desk:
    """A deck of two agents over one file, whose tool has an effect that can be counted."""

    def __init__(self, folder: Path, limits: ToolLimits = ASKS, resume: Resume = "reinvoke"):
        self.effects, self.store = folder / "tickets.txt", folder / "kit.db"
        self.limits = limits
        self.resume: Resume = resume
        self.keys: list[str] = []
        self.calls: list[str] = []
        """Models that were called, in order."""
        self.tool: Any = self.open_ticket
        self.own_tools: dict[str, Any] = {}
        """Tools beside the one that acts."""

    def opened(self) -> Any:
        """The kit, as a process opens it."""
        models = {
            name: ScriptedModel(self._heard(name, script))
            for name, script in self.scripts().items()
        }
        settings = Settings.read({}).with_(model="offline", store=str(self.store), pace=0.0)
        tools = {"open_ticket": LimitedTool(self.tool, self.limits), **self.own_tools}
        return open_kit(settings, deck=self.deck(), models=models, tools=tools)

    def deck(self) -> Deck:
        return small_deck(["desk", "points"], self.cards())

    def cards(self) -> list[AgentCard]:
        tools = ("open_ticket", *self.own_tools)
        return [
            AgentCard(
                id="desk",
                description="Opens tickets for printers.",
                model="offline",
                tools=tools,
                resume=self.resume,
            )
        ]

    def scripts(self) -> dict[str, Says]:
        return {
            "orchestrator": routing(asks("desk", "points", query=QUESTION)),
            "desk": desk,
            "points": lambda _: Line("You have 4,975 points."),
        }

    def _heard(self, name: str, script: Says) -> Says:
        def say(messages: list[BaseMessage]) -> Line:
            self.calls.append(name)
            return script(messages)

        return say

    async def open_ticket(self, words: str) -> str:
        """Open a ticket."""
        self.keys.append(tool_context().idempotency_key())
        with self.effects.open("a") as file:
            file.write(words + "\n")
        return f"Ticket 12 says: {words}."

    @property
    def tickets(self) -> int:
        return len(self.effects.read_text().splitlines()) if self.effects.exists() else 0


def ask_desk(kit: Kit, pattern: str | Pattern = "mediated", message: str = QUESTION) -> Turn:
    return kit.ask(message, kit.session("talk"), pattern)


async def answered(kit: Kit, pattern: str | Pattern = "mediated") -> Reply:
    """What the question comes to, with a yes where the deck asks for one."""
    reply = await ask_desk(kit, pattern)
    return await kit.resume(reply.turn_id, True) if reply.status == "paused" else reply


async def paused(kit: Kit) -> Reply:
    reply = await ask_desk(kit)
    assert reply.status == "paused"
    return reply


@pytest.mark.req("K-12")
@pytest.mark.parametrize("answer", [True, False])
async def test_a_tool_that_asks_first_pauses_the_turn_and_an_answer_lets_it_go_on(
    tmp_path: Path, answer: bool, caplog: pytest.LogCaptureFixture
):
    """The others come to their ends; with the answer nothing that had ended is called again, and the reply is whole."""

    async def impossible(arguments: Mapping[str, Any]) -> str | None:
        raise KeyError("ink")

    world = Desk(tmp_path)
    world.tool = function_tool("open_ticket", world.open_ticket, impossible=impossible)
    async with world.opened() as kit:
        reply = await paused(kit)
        assert reply.text == "Open a ticket that says “the printer is out of ink”?"
        assert world.tickets == 0
        assert sorted(world.calls) == ["desk", "orchestrator", "points"]
        world.calls.clear()
        ended = await kit.resume(reply.turn_id, answer)
    assert (ended.turn_id, ended.status) == (reply.turn_id, "ok")
    opened = "Ticket 12 says: the printer is out of ink." if answer else DECLINED
    assert opened in ended.text and "You have 4,975 points." in ended.text
    assert world.tickets == answer
    assert "points" not in world.calls and world.calls[0] == "desk", (
        "what had ended was called again"
    )
    older = f"About points: {BEFORE_YES[0].lower()}{BEFORE_YES[1:]}"
    assert (older in ended.text) is answer, "what was looked up before an act is older than it"
    if answer:
        assert world.calls.count("orchestrator") == 1, "nobody is asked for what no model was told"
    assert "the check before open_ticket failed: KeyError" in caplog.text, "it asks all the same"


@pytest.mark.req("K-12")
async def test_a_yes_counts_where_the_one_who_acts_was_asked_after_another_had_answered():
    """The supervisor read the first answer before it asked for the act, and reads the same when that is played."""
    gifts = OFFLINE.with_(deck=HOME / "cards" / "gifts")
    message = "how many points do I have, and redeem 100 points for a gift card of Harvest Market"
    async with open_kit(gifts) as kit:
        reply = await kit.ask(message, kit.session("s"), "supervisor")
        assert reply.status == "paused"
        done = await kit.resume(reply.turn_id, True)
    assert "100 points were redeemed for a gift card of Harvest Market." in done.text
    assert "About points: this was looked up before you said yes" in done.text


async def test_whoever_only_handed_on_has_looked_up_nothing_that_a_yes_makes_older():
    gifts = OFFLINE.with_(deck=HOME / "cards" / "gifts")
    message = "redeem 100 points for a gift card of Harvest Market"
    async with open_kit(gifts) as kit:
        reply = await kit.ask(message, kit.session("s"), "swarm")
        done = await kit.resume(reply.turn_id, True)
    assert "100 points were redeemed" in done.text and "About points" not in done.text


class LongTalk(Desk):
    """Each turn asks for one ticket and for one yes; each writes a new summary of the turns before."""

    def deck(self) -> Deck:
        return small_deck(["desk"], self.cards(), compact_after=2, compact_keep=1)

    def scripts(self) -> dict[str, Says]:
        def numbered(messages: list[BaseMessage]) -> Line:
            if isinstance(messages[-1], ToolMessage):
                return repeats(messages)
            return Line(calls=[("open_ticket", {"words": str(messages[-1].content)})])

        def summed_up(messages: list[BaseMessage]) -> Line:
            summary = f"A summary of {len(messages)} messages"
            return Line(calls=[("submit_summary", {"summary": summary})])

        def lead(messages: list[BaseMessage]) -> Line:
            return routing(asks("desk", query=str(messages[-1].content)))(messages)

        return {"orchestrator": lead, "desk": numbered, "helper": summed_up}


@pytest.mark.req("K-12", "PC1-FR-11")
@pytest.mark.parametrize("order", ["at once", "oldest first", "newest first"])
async def test_a_yes_counts_however_many_summaries_of_old_turns_were_written_since(
    tmp_path: Path, order: str
):
    world = LongTalk(tmp_path)
    waiting: list[Reply] = []
    ended: list[Reply] = []
    async with world.opened() as kit:
        for number in range(10):
            reply = await ask_desk(kit, message=f"ticket {number}")
            assert reply.status == "paused"
            waiting.append(reply)
            if order == "at once":
                ended.append(await kit.resume(reply.turn_id, True))
        summaries = [
            event for reply in waiting for event in reply.events if event.kind == "compacted"
        ]
        assert len(summaries) > 3
        if order == "newest first":
            waiting.reverse()
        if order != "at once":
            for reply in waiting:
                ended.append(await kit.resume(reply.turn_id, True))
    assert [reply.status for reply in ended] == ["ok"] * 10
    assert world.tickets == 10


@pytest.mark.req("K-12")
async def test_the_question_holds_what_the_call_leaves_to_a_default(tmp_path: Path):
    async def open_ticket(words: str, copies: int = 3) -> str:
        """Open a ticket."""
        return f"{copies} tickets: {words}."

    for confirm, question in (
        ("Open {copies} tickets?", "Open 3 tickets?"),
        (True, "May I run open ticket with words: the printer is out of ink, copies: 3?"),
    ):
        world = Desk(tmp_path / str(confirm), ToolLimits(confirm=confirm))
        world.effects.parent.mkdir()
        world.tool = open_ticket
        async with world.opened() as kit:
            assert (await paused(kit)).text == question


@pytest.mark.req("K-12")
async def test_nobody_answers_for_somebody_else_nor_twice_nor_not_at_all(tmp_path: Path):
    world = Desk(tmp_path)
    async with world.opened() as kit:
        turn_id = (await paused(kit)).turn_id
        with pytest.raises(ResumeError, match="there is no turn"):
            kit.resume(turn_id, True, who=Principal(tenant_id="acme", user_id="mallory"))
        with pytest.raises(ResumeError, match="waits for an answer: Open a ticket"):
            kit.resume(turn_id)
        first = kit.resume(turn_id, True)
        with pytest.raises(ResumeError, match="only once"):
            kit.resume(turn_id, True)
        await first
        with pytest.raises(ResumeError, match="is ok"):
            kit.resume(turn_id, True)
    assert world.tickets == 1


@pytest.mark.req("K-12")
@pytest.mark.parametrize("first", [True, False])
def test_of_two_answers_to_one_question_the_first_counts(first: bool):
    """Two tabs may answer a plan at the same moment: what one turn has noted, no other one takes back."""
    ledger = ActLedger()
    ledger.take_over(Resumed(turn_id="t1", answers={"open_ticket": first}))
    ledger.take_over(Resumed(turn_id="t2", answers={"open_ticket": not first}))
    assert ledger.entry("open_ticket").answer is first


@pytest.mark.req("K-12")
async def test_a_lookup_beside_an_act_of_the_same_agent_sees_what_the_act_left(tmp_path: Path):
    world = Desk(tmp_path)
    scripts = world.scripts()

    async def count_tickets() -> str:
        """Counts the tickets that are open."""
        return f"Tickets that are open: {world.tickets}."

    def both(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            results = [str(one.content) for one in messages if isinstance(one, ToolMessage)]
            return Line(" ".join(results))
        return Line(calls=[("count_tickets", {}), ("open_ticket", {"words": "ink"})])

    world.scripts = lambda: {**scripts, "desk": both}
    world.own_tools["count_tickets"] = count_tickets
    async with world.opened() as kit:
        reply = await paused(kit)
        ended = await kit.resume(reply.turn_id, True)
    assert "Tickets that are open: 1. Ticket 12 says: ink." in ended.text


@pytest.mark.req("K-12")
@pytest.mark.parametrize("pattern", ["mediated", "direct", "supervisor", "swarm"])
async def test_every_pattern_that_asks_the_desk_pauses_and_goes_on(tmp_path: Path, pattern: str):
    world = Desk(tmp_path)
    async with world.opened() as kit:
        reply = await ask_desk(kit, pattern)
        assert (reply.status, world.tickets) == ("paused", 0)
        reply = await kit.resume(reply.turn_id, True)
    assert (reply.status, world.tickets) == ("ok", 1)
    assert "Ticket 12 says" in reply.text


@pytest.mark.req("K-12")
async def test_a_peer_elsewhere_cannot_ask_and_so_does_nothing(tmp_path: Path):
    world = Desk(tmp_path)
    async with world.opened() as kit:
        reply = await ask_desk(kit, "a2a")
    assert (reply.status, world.tickets) == ("ok", 0)
    assert "Ticket" not in reply.text and "desk" in reply.text


# A process that dies


def die(folder: Path, limits: ToolLimits, pattern: str | Pattern) -> None:
    """Asks, says yes where it has to, and kills this process after the tool's effect."""
    world = Desk(folder, limits)

    async def die_in_tool(words: str) -> str:
        """Open a ticket."""
        told = await world.open_ticket(words)
        os.kill(os.getpid(), signal.SIGKILL)
        return told

    async def play() -> None:
        world.tool = die_in_tool
        async with world.opened() as kit:
            await answered(kit, pattern)

    asyncio.run(play())


def die_on_loopback(folder: Path, limits: ToolLimits, _: str) -> None:
    """Dies in the middle of an act behind a socket of this machine."""
    die(folder, limits, a2a_over(None))


@pytest.mark.realtime
@pytest.mark.req("SO-12", "K-12")
@pytest.mark.parametrize(
    ("dies", "limits", "pattern"),
    [(die, ASKS, "mediated"), (die, ONCE, "a2a"), (die_on_loopback, ONCE, "a2a")],
)
async def test_an_act_whose_process_died_is_never_done_again_and_is_said_to_be_unknown(
    tmp_path: Path,
    dies: Callable[[Path, ToolLimits, str], None],
    limits: ToolLimits,
    pattern: str,
):
    world = Desk(tmp_path, limits)
    assert exit_code(dies, tmp_path, limits, pattern) == -signal.SIGKILL
    assert world.tickets == 1
    async with world.opened() as kit:
        (turn,) = kit.store.turns(session_id="talk")
        assert turn.status == "interrupted"
        page = turn_sentence(stored_view(turn, kit.store.events(turn.id, turn.principal)))
        assert "Desk broke off while doing something: whether" in page
        # "Ask again" of the chat sends the same words.
        sent_again = await ask_desk(kit, pattern)
        assert world.tickets == 1 and UNCERTAIN in sent_again.text
        reply = await kit.resume(turn.id)
        assert world.tickets == 1, "it was done twice"
        assert reply.status == "ok" and UNCERTAIN in reply.text and "4,975" in reply.text
        again = await ask_desk(kit, pattern, "try again")
    assert world.tickets == 1 and UNCERTAIN in again.text


@pytest.mark.realtime
@pytest.mark.req("SO-12")
async def test_a_turn_that_died_in_an_act_goes_on_though_an_earlier_question_was_answered_since(
    tmp_path: Path,
):
    world = Desk(tmp_path)
    async with world.opened() as kit:
        first = await paused(kit)
        assert exit_code(die, tmp_path, ONCE, "mediated") == -signal.SIGKILL
        assert (await kit.resume(first.turn_id, True)).status == "ok"
    async with world.opened() as kit:
        turns = kit.store.turns(session_id="talk")
        [second] = [turn for turn in turns if turn.status == "interrupted"]
        reply = await kit.resume(second.id)
    assert reply.status == "ok" and UNCERTAIN in reply.text and world.tickets == 2


@pytest.mark.realtime
@pytest.mark.req("SO-12")
async def test_try_again_after_a_process_died_asks_the_agent_what_it_was_asked(tmp_path: Path):
    """The question of a turn that died is in no agent's own narration: "try again" alone says nothing of the printer."""
    world = Desk(tmp_path, ONCE)
    passes_on = routing(asks("desk", query="try again"))
    world.scripts = lambda: {"orchestrator": passes_on, "desk": desk_as_asked, "points": desk}
    assert exit_code(die, tmp_path, ONCE, "mediated") == -signal.SIGKILL
    async with world.opened() as kit:
        again = await ask_desk(kit, message="try again")
    assert world.tickets == 1 and UNCERTAIN in again.text


class FailingDesk(Desk):
    """Opens a ticket, and then its model is gone."""

    def scripts(self) -> dict[str, Says]:
        def fail(messages: list[BaseMessage]) -> Line:
            if isinstance(messages[-1], ToolMessage):
                raise OSError("gone")
            return desk(messages)

        return {**super().scripts(), "desk": fail}


@pytest.mark.req("SO-12", "K-12")
@pytest.mark.parametrize(("limits", "pattern"), HERE_AND_BEHIND_A_HOP)
async def test_an_act_is_told_of_though_its_agent_failed_after_it_and_is_not_done_by_try_again(
    tmp_path: Path, limits: ToolLimits, pattern: str
):
    world = FailingDesk(tmp_path, limits)
    async with world.opened() as kit:
        reply = await answered(kit, pattern)
        assert world.tickets == 1
        assert "Ticket 12 says: the printer is out of ink." in reply.text and PARTLY in reply.text
        assert (reply.parts.whole, reply.parts.partly, reply.parts.failed) == (1, 1, 0)
        again = await ask_desk(kit, pattern, "try again")
        assert world.tickets == 1 and "Ticket 12 says" in again.text


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("pattern", ["mediated", "a2a"])
async def test_an_act_that_outlasts_its_agent_or_is_stopped_is_said_to_be_unknown(
    tmp_path: Path, pattern: str
):
    world = Desk(tmp_path, ONCE)

    async def open_slowly(words: str) -> str:
        """Open a ticket."""
        answer = await world.open_ticket(words)
        await asyncio.sleep(60)
        return answer

    world.tool = open_slowly
    async with world.opened() as kit:
        reply = await ask_desk(kit, pattern)
        assert world.tickets == 1 and reply.status == "ok"
        assert f"open ticket: {UNCERTAIN}" in reply.text and "4,975" in reply.text
        again = await ask_desk(kit, pattern, "try again")
        assert world.tickets == 1 and UNCERTAIN in again.text
        turn = kit.ask(QUESTION, kit.session("other talk"), pattern)
        while world.tickets == 1:
            await asyncio.sleep(0.1)
        turn.cancel()
        stopped = await turn
        assert stopped.status == "cancelled" and f"open ticket: {UNCERTAIN}" in stopped.text
        again = await kit.ask(QUESTION, kit.session("other talk"), pattern)
        assert world.tickets == 2 and UNCERTAIN in again.text


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("pattern", ["mediated", "a2a"])
@pytest.mark.parametrize("end", ["raises", "is late"])
async def test_an_act_whose_tool_raised_or_was_late_is_said_to_be_unknown_and_not_done_again(
    tmp_path: Path, end: str, pattern: str
):
    world = Desk(tmp_path, ToolLimits(once=True, timeout_ms=1000))

    async def open_and_break(words: str) -> str:
        """Open a ticket."""
        await world.open_ticket(words)
        if end == "raises":
            raise ConnectionError("the answer was lost")
        await asyncio.sleep(5)
        return "never told"

    world.tool = open_and_break
    async with world.opened() as kit:
        reply = await ask_desk(kit, pattern)
        assert world.tickets == 1 and UNCERTAIN in reply.text and "4,975" in reply.text
        again = await ask_desk(kit, pattern, "try again")
    assert world.tickets == 1 and UNCERTAIN in again.text and DONE_BEFORE not in again.text


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("stops", [True, False])
async def test_an_act_that_takes_no_notice_of_the_end_of_its_turn_is_said_to_be_unknown(
    tmp_path: Path, stops: bool
):
    """The turn ends without its work, and nobody below it says how the act came out."""
    world = Desk(tmp_path, ONCE)
    may_end = asyncio.Event()

    async def open_stubbornly(words: str) -> str:
        """Open a ticket."""
        answer = await world.open_ticket(words)
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()
        return answer

    world.tool = open_stubbornly
    async with world.opened() as kit:
        turn = ask_desk(kit)
        while world.tickets == 0:
            await asyncio.sleep(0.1)
        if stops:
            turn.cancel()
        reply = await turn
        may_end.set()
    assert reply.status == ("cancelled" if stops else "deadline")
    assert f"open ticket: {UNCERTAIN}" in reply.text


@pytest.mark.req("SO-12")
async def test_the_same_act_twice_in_one_reply_is_done_once_and_comes_to_one_result(tmp_path: Path):
    world = Desk(tmp_path, ONCE)

    def twice(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return repeats(messages)
        return Line(calls=[("open_ticket", {"words": "ink"})] * 2, ids=["one", "two"])

    world.scripts = lambda: {**Desk.scripts(world), "desk": twice}
    async with world.opened() as kit:
        reply = await ask_desk(kit)
    assert world.tickets == 1 and "Ticket 12 says: ink." in reply.text
    assert UNCERTAIN not in reply.text


@pytest.mark.req("K-12")
@pytest.mark.parametrize("where", ["here", "saved late", "in another process"])
async def test_a_question_goes_on_as_it_was_asked_though_a_turn_beside_it_has_ended_since(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
):
    """The turn beside it was still at work then, or had ended and was in no store yet."""
    is_saved_late = where == "saved late"
    world = Desk(tmp_path)
    may_answer = asyncio.Event()

    async def look_up() -> str:
        """Look something up."""
        await may_answer.wait()
        return "The desk is open."

    def looks_up(messages: list[BaseMessage]) -> Line:
        asked = [message.text for message in messages if isinstance(message, HumanMessage)]
        if asked[-1] != "is the desk open?":
            return desk(messages)
        if isinstance(messages[-1], ToolMessage):
            return repeats(messages)
        return Line(calls=[("look_up", {})])

    def lead(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], HumanMessage) and "open?" in messages[-1].text:
            return asks("desk", query="is the desk open?")
        return Desk.scripts(world)["orchestrator"](messages)

    world.own_tools = {"look_up": look_up}
    world.scripts = lambda: {**Desk.scripts(world), "orchestrator": lead, "desk": looks_up}
    monkeypatch.setattr(turn_module, "PATIENCE", 0.3)
    async with world.opened() as kit, world.opened() as other_kit:
        await ask_desk(kit, message="points?")
        elsewhere = other_kit if where == "in another process" else kit
        beside = ask_desk(elsewhere, message="is the desk open?")
        while where != "here" and not elsewhere.store.turn(beside.id, OPERATOR):
            await asyncio.sleep(0.01)
        with closing(sqlite3.connect(world.store, isolation_level=None)) as other:
            if is_saved_late:
                other.execute("BEGIN IMMEDIATE")
                may_answer.set()
                assert not (await beside).saved
            first = await paused(kit)
            assert first.saved is not is_saved_late
        may_answer.set()
        await beside
        while kit.store.turn(first.turn_id, OPERATOR) is None:
            await asyncio.sleep(0.01)
        reply = await kit.resume(first.turn_id, True)
    assert reply.status == "ok" and "Ticket 12 says" in reply.text and world.tickets == 1


@pytest.mark.req("K-12")
async def test_two_questions_of_a_session_are_said_yes_to_while_the_first_is_at_work(
    tmp_path: Path,
):
    world = Desk(tmp_path)
    may_end = asyncio.Event()

    async def open_slowly(words: str) -> str:
        """Open a ticket."""
        if world.tickets == 0:
            told = await world.open_ticket(words)
            await may_end.wait()
            return told
        return await world.open_ticket(words)

    world.tool = open_slowly
    async with world.opened() as kit:
        first, second = [await paused(kit) for _ in range(2)]
        at_work = kit.resume(first.turn_id, True)
        while world.tickets == 0:
            await asyncio.sleep(0.01)
        reply = await kit.resume(second.turn_id, True)
        may_end.set()
        assert reply.status == (await at_work).status == "ok"
    assert world.tickets == 2


@pytest.mark.parametrize("word", ["yes", "no", "Yes, please!", "go on", "try again"])
async def test_typed_words_that_only_answer_or_go_on_are_told_what_still_waits(
    tmp_path: Path, word: str
):
    world = Desk(tmp_path)
    async with world.opened() as kit:
        first = await paused(kit)
        for _ in range(2):
            typed = await ask_desk(kit, message=word)
            assert first.text in typed.text and "yes or no" in typed.text
            assert world.tickets == 0 and not typed.routing.invoked
        assert "Ticket 12 says" in (await kit.resume(first.turn_id, True)).text
        later = await ask_desk(kit, message=word)
        assert "yes or no" not in later.text


@pytest.mark.req("SO-12")
async def test_an_act_that_still_waits_for_its_user_is_not_asked_twice_by_words_that_only_go_on(
    tmp_path: Path,
):
    world = Desk(tmp_path)

    def lead_with_a_turn_between(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], HumanMessage) and messages[-1].text == "points?":
            return asks("points", query="points?")
        return Desk.scripts(world)["orchestrator"](messages)

    world.scripts = lambda: {**Desk.scripts(world), "orchestrator": lead_with_a_turn_between}
    async with world.opened() as kit:
        first = await paused(kit)
        assert "4,975" in (await ask_desk(kit, message="points?")).text
        again = await ask_desk(kit, message="try again")
        assert again.status == "ok" and ASKED_BEFORE in again.text
        assert "Ticket 12 says" in (await kit.resume(first.turn_id, True)).text
    assert world.tickets == 1


@pytest.mark.req("SO-12")
@pytest.mark.parametrize(("limits", "pattern"), HERE_AND_BEHIND_A_HOP)
@pytest.mark.parametrize("words", ["go on", "Try again, please"])
async def test_words_that_only_ask_to_go_on_do_no_act_of_an_earlier_turn_twice(
    tmp_path: Path, limits: ToolLimits, pattern: str, words: str
):
    world = Desk(tmp_path, limits)
    async with world.opened() as kit:
        assert "Ticket 12 says" in (await answered(kit, pattern)).text
        again = await ask_desk(kit, pattern, words)
        assert world.tickets == 1 and again.status == "ok" and DONE_BEFORE in again.text
        in_full = await answered(kit, pattern)
        assert world.tickets == 2 and DONE_BEFORE not in in_full.text


@pytest.mark.req("K-12")
@pytest.mark.parametrize("answer", [True, False])
async def test_a_turn_that_is_asked_again_or_forked_asks_before_it_acts(
    tmp_path: Path, answer: bool
):
    world = Desk(tmp_path, ONCE)
    async with world.opened() as kit:
        first = await ask_desk(kit)
        assert world.tickets == 1, "the deck does not ask for it"
        record = kit.store.turn(first.turn_id, OPERATOR)
        assert record is not None
        past = kit.recall_before(record)
        turns = [kit.ask(QUESTION, past.session, past=past)]
        for event in first.events:
            if isinstance(event.body, ModelStarted) and event.body.agent == "desk":
                turns.append(kit.fork(first.turn_id, event.span_id))
        assert len(turns) == 3
        asked = 0
        for turn in turns:
            reply = await turn
            tickets = world.tickets
            if reply.status == "paused":
                asked += 1
                assert reply.text == "May I run open ticket with words: the printer is out of ink?"
                ended = await kit.resume(reply.turn_id, answer)
                assert (DECLINED in ended.text) is not answer
                assert world.tickets == tickets + answer
            else:
                assert "Ticket 12 says" in reply.text, "what came before the fork is played"
        assert asked == 2


def cut_off(kit: Kit, whole: Reply, length: int) -> None:
    """Leaves of a turn what stands there when its process died with so many of its events stored."""
    record = kit.store.turn(whole.turn_id, OPERATOR)
    assert record is not None
    kit.store.end_turn(record.replace(status="interrupted"), whole.events[:length], [])


@pytest.mark.req("SO-12", "K-12")
async def test_an_act_that_a_dead_process_may_have_done_is_not_done_by_words_that_only_ask_to_go_on(
    tmp_path: Path,
):
    world = Desk(tmp_path, ToolLimits(confirm="Open a ticket?", idempotent=True))
    async with world.opened() as kit:
        whole = await answered(kit)
        cut_off(kit, whole, [event.kind for event in whole.events].index("tool_ended"))
        reply = await ask_desk(kit, message="go on")
    assert world.tickets == 1 and UNCERTAIN in reply.text


async def resumed_after(kit: Kit, whole: Reply, length: int) -> Reply:
    """What becomes of such a turn."""
    cut_off(kit, whole, length)
    return await kit.resume(whole.turn_id)


async def resumed_in_tool(world: Desk) -> Reply:
    """What becomes of a turn whose process died before its tool had ended, or had been told to have."""
    async with world.opened() as kit:
        whole = await ask_desk(kit)
        world.calls.clear()
        kinds = [event.kind for event in whole.events]
        return await resumed_after(kit, whole, kinds.index("tool_ended"))


class SlowDesk(Desk):
    """Opens two tickets, one after the other; the first takes longer than it may, and is opened all the same."""

    def scripts(self) -> dict[str, Says]:
        return {**super().scripts(), "desk": self.opens_two}

    @staticmethod
    def opens_two(messages: list[BaseMessage]) -> Line:
        results = [str(each.content) for each in messages if isinstance(each, ToolMessage)]
        if len(results) == 2:
            return Line(" ".join(results))
        return Line(calls=[("open_ticket", {"words": ("ink", "paper")[len(results)]})])

    async def open_ticket(self, words: str) -> str:
        """Open a ticket."""
        answer = await super().open_ticket(words)
        if words == "ink":
            await asyncio.sleep(60)
        return answer


@pytest.mark.req("SO-12")
async def test_an_act_that_ran_out_of_time_is_not_done_again_and_is_said_to_be_unknown(
    tmp_path: Path,
):
    world = SlowDesk(tmp_path, ToolLimits(confirm="Open a ticket for {words}?", timeout_ms=100))
    async with world.opened() as kit:
        first = await paused(kit)
        assert "paper" in (await kit.resume(first.turn_id, True)).text
        ended = await kit.resume(first.turn_id, True)
    assert world.effects.read_text().split() == ["ink", "paper"]
    assert ended.status == "ok" and UNCERTAIN in ended.text


@pytest.mark.req("SO-12")
async def test_an_act_that_may_be_done_twice_is_done_again_under_the_same_key(tmp_path: Path):
    world = Desk(tmp_path, ToolLimits(once=True, idempotent=True))
    assert "Ticket 12 says" in (await resumed_in_tool(world)).text
    first, second = world.keys
    assert world.tickets == 2 and first == second and len(first) == 32


@pytest.mark.req("SO-12")
@pytest.mark.parametrize(("resume", "calls"), [("reinvoke", 2), ("partial", 1)])
async def test_an_agent_begins_anew_or_goes_on_where_it_was_as_its_card_says(
    tmp_path: Path, resume: Resume, calls: int
):
    world = Desk(tmp_path, ToolLimits(), resume)
    reply = await resumed_in_tool(world)
    assert reply.status == "ok" and "Ticket 12 says" in reply.text
    assert world.calls.count("desk") == calls


class DeskPipeline(Desk):
    """A desk whose answer is drafted by a clerk, and gone over by somebody with the tool."""

    kept: Resume = "reuse"

    def deck(self) -> Deck:
        clerk = AgentCard(
            id="clerk", description="Knows serial numbers.", model="offline", resume=self.kept
        )
        lead_only = ["desk", "points", "clerk", "opener"]
        (card,) = self.cards()
        draft = Handoff(fields={"draft": HandoffField(max_length=200)})
        front = card.model_copy(update={"tools": ()})
        opener = card.model_copy(
            update={"id": "opener", "description": "Writes to the office.", "handoff": draft}
        )
        pipeline = {"chat": {"desk": Topology(kind="pipeline", members=("clerk", "opener"))}}
        return small_deck(lead_only, [front, clerk, opener], topologies=pipeline)

    def scripts(self) -> dict[str, Says]:
        return {**super().scripts(), "opener": desk, "clerk": lambda _: Line("Serial 7731.")}


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("kept", ["reuse", "reinvoke"])
async def test_an_answer_that_was_given_is_used_again_by_a_caller_that_begins_anew(
    tmp_path: Path, kept: Resume
):
    world = DeskPipeline(tmp_path, ToolLimits())
    world.kept = kept
    reply = await resumed_in_tool(world)
    assert reply.status == "ok" and "Ticket 12 says" in reply.text
    assert world.calls.count("clerk") == (kept == "reinvoke")


@pytest.mark.req("SO-12")
@pytest.mark.parametrize(
    ("pattern", "resume"),
    [
        ("mediated", "reinvoke"),
        ("mediated", "partial"),
        ("direct", "reinvoke"),
    ],
)
async def test_whatever_the_last_event_was_that_a_dead_process_stored_the_answer_is_the_same_and_the_act_is_done_once(
    tmp_path: Path, pattern: str, resume: Resume
):
    """Of an act that began and has no end nobody knows: it is not done again, and the answer says so."""
    world = Desk(tmp_path, ToolLimits(once=True), resume)
    async with world.opened() as kit:
        whole = await ask_desk(kit, pattern)
        assert (whole.status, world.tickets) == ("ok", 1)
        kinds = [event.kind for event in whole.events]
        began, ended = kinds.index("act_started"), kinds.index("tool_ended")
        for length in range(kinds.index("turn_started") + 1, len(kinds)):
            before = world.tickets
            reply = await resumed_after(kit, whole, length)
            assert reply.status == "ok", length
            assert world.tickets - before == (0 if length > began else 1), length
            if began < length <= ended:
                assert UNCERTAIN in reply.text, length
            else:  # where agents speak themselves, the quicker one speaks first
                assert sorted(reply.text.split("\n\n")) == sorted(whole.text.split("\n\n")), length
