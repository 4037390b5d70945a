"""An act in whose middle the process died is told of by whoever asks for it once more, however much was asked between;
and each agent is asked its own part of the message again."""

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from kit.core.context import OPERATOR
from kit.core.record import UNANSWERED, Message
from kit.home import HOME
from kit.models.scripted import Line
from kit.runtime.act_ledger import DONE_BEFORE, UNCERTAIN
from kit.runtime.handle import Reply
from kit.wire import Kit, open_kit
from tests.kits import OFFLINE, agents_asked, asks
from tests.runtime.test_pause import ONCE, QUESTION, Desk, ask_desk

ELSE = "points?"
OPENED = "Ticket 12 says: the printer is out of ink."


def dies_in_act(kit: Kit, whole: Reply, kind: str = "act_started") -> None:
    """Leaves of a turn what stands in the store when its process died in the middle of its act, or after it."""
    record = kit.store.turn(whole.turn_id, OPERATOR)
    assert record is not None
    length = [event.kind for event in whole.events].index(kind) + 1
    lines = [
        Message(turn_id=record.id, role="user", text=record.message),
        Message(turn_id=record.id, role="assistant", text=UNANSWERED),
    ]
    kit.store.end_turn(
        record.replace(status="interrupted", invoked=()), whole.events[:length], lines
    )


class DeskBesidePoints(Desk):
    """Its lead asks for points alone where nothing else is said."""

    asks_desk_again = True

    def scripts(self):
        def lead(messages: list[BaseMessage]) -> Line:
            last = messages[-1]
            if isinstance(last, HumanMessage) and QUESTION not in last.text:
                return asks("points", query=ELSE)
            if isinstance(last, HumanMessage) and not self.asks_desk_again:
                return asks("points", query="how many points do I have")
            return Desk.scripts(self)["orchestrator"](messages)

        return {**super().scripts(), "orchestrator": lead}


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("words", [QUESTION, "try again", "go on"])
@pytest.mark.parametrize("between", [0, 1, 3])
@pytest.mark.parametrize("pattern", ["mediated", "direct"])
async def test_an_act_that_was_cut_off_is_not_done_by_the_same_words_until_its_user_was_told(
    tmp_path, words: str, between: int, pattern: str
):
    world = DeskBesidePoints(tmp_path, ONCE)
    async with world.opened() as kit:
        dies_in_act(kit, await ask_desk(kit, pattern))
        for _ in range(between):
            assert "4,975" in (await ask_desk(kit, pattern, ELSE)).text
        again = await ask_desk(kit, pattern, words)
        assert world.tickets == 1 and UNCERTAIN in again.text
        assert OPENED in (await ask_desk(kit, pattern)).text
    assert world.tickets == 2, "whoever was told may ask for it in full"


@pytest.mark.req("SO-12")
async def test_an_act_that_was_done_before_the_process_died_is_told_as_done(tmp_path):
    world = DeskBesidePoints(tmp_path, ONCE)
    async with world.opened() as kit:
        dies_in_act(kit, await ask_desk(kit), kind="tool_ended")
        await ask_desk(kit, message=ELSE)
        again = await ask_desk(kit)
    assert world.tickets == 1 and OPENED in again.text and DONE_BEFORE in again.text


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("words", [QUESTION, "try again"])
async def test_it_is_told_of_though_its_agent_is_not_asked_again(tmp_path, words: str):
    world = DeskBesidePoints(tmp_path, ONCE)
    async with world.opened() as kit:
        dies_in_act(kit, await ask_desk(kit))
        await ask_desk(kit, message=ELSE)
        world.asks_desk_again = False
        again = await ask_desk(kit, message=words)
        assert "4,975" in again.text and f"open ticket: {UNCERTAIN}" in again.text
        after = await ask_desk(kit, message=ELSE)
    assert world.tickets == 1 and UNCERTAIN not in after.text


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("between", [[], ["how many points do I have"]])
@pytest.mark.parametrize("words", ["try again", "go on"])
@pytest.mark.parametrize(
    "message",
    [
        "how many points do I have, and redeem 500 points for a gift card of Harvest Market",
        "redeem 500 points for a gift card of Harvest Market, and how many points do I have",
    ],
)
async def test_try_again_asks_each_agent_its_own_part_of_a_message_that_was_cut_off(
    message: str, words: str, between: list[str]
):
    part = "redeem 500 points for a gift card of Harvest Market"
    async with open_kit(OFFLINE.with_(deck=HOME / "cards" / "gifts")) as kit:
        session = kit.session("s")
        asked = await kit.ask(message, session)
        dies_in_act(kit, await kit.resume(asked.turn_id, True))
        for other in between:
            await kit.ask(other, session)
        again = await kit.ask(words, session)
        balance = await kit.ask("how many points do I have", session)
    assert ("gift_cards", part) in agents_asked(again)
    assert UNCERTAIN in again.text and "4,500 points" in balance.text
