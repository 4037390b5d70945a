"""The gift desk, the shipped deck with an act that asks first: points are redeemed over a yes, once."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from kit.core.bodies.call import ToolEnded
from kit.core.context import OPERATOR, Principal
from kit.core.documents.document import AgentEvent
from kit.settings import HOME, Settings
from kit.stores.documents.protocol import EventFilter
from kit.stores.documents.sql import SqlEvents
from kit.wire import Kit, open_kit
from tests.forks import exit_code

BOTH = "How many points do I have, and redeem 500 points for a gift card of Harvest Market"
REDEEMED = "points.redeemed"
MAY_I = "Redeem 500 points for a gift card of Harvest Market?"


def settings(folder: Path) -> Settings:
    return Settings(
        deck=HOME / "cards" / "gifts", store=str(folder / "kit.db"), pace=0.0, model="offline"
    )


async def redeemed(kit: Kit) -> list[tuple[str, int]]:
    """Who redeemed how many points, by the events in the store."""
    events = kit.store.open_documents().events
    found = await events.query(EventFilter(tenant_id=OPERATOR, event_type=REDEEMED))
    return [(event.user_id or "", event.payload["points"]) for event in found]


@pytest.mark.parametrize("answer", [True, False])
async def test_points_are_redeemed_with_a_yes_and_stay_with_a_no(tmp_path: Path, answer: bool):
    async with open_kit(settings(tmp_path)) as kit:
        asked = await kit.ask(BOTH, kit.session("s"))
        assert (asked.status, asked.text) == ("paused", MAY_I)
        assert await redeemed(kit) == []
        reply = await kit.resume(asked.turn_id, answer)
        assert await redeemed(kit) == [("u-001", 500)] * answer
        assert "The account has 5,000 points." in reply.text
        assert ("500 points were redeemed" in reply.text) is answer
        later = await kit.ask("How many points are left?", kit.session("later"))
        assert f"{4_500 if answer else 5_000:,} points" in later.text
        other = kit.session("other", user="u-002")
        theirs = await kit.ask("How many points are left?", other)
        assert other.principal == Principal(tenant_id="acme", user_id="u-002")
        assert "The account has 5,000 points." in theirs.text


@pytest.mark.parametrize("points", ["9000", "5001", "0", "-50"])
async def test_points_that_cannot_be_redeemed_are_refused_without_a_question(
    tmp_path: Path, points: str
):
    async with open_kit(settings(tmp_path)) as kit:
        reply = await kit.ask(f"Redeem {points} points for a gift card", kit.session("s"))
        assert reply.status == "ok"
        assert "Nothing was redeemed: the account has 5,000 points." in reply.text
        assert await redeemed(kit) == []


async def test_a_yes_to_more_than_is_left_by_then_redeems_nothing(tmp_path: Path):
    async with open_kit(settings(tmp_path)) as kit:
        asked = [
            await kit.ask("Redeem 3000 points for a gift card", kit.session(name)) for name in "ab"
        ]
        assert [reply.status for reply in asked] == ["paused", "paused"]
        first, second = [await kit.resume(reply.turn_id, True) for reply in asked]
        assert "3,000 points were redeemed" in first.text
        assert "Nothing was redeemed: the account has 2,000 points." in second.text
        assert await redeemed(kit) == [("u-001", 3_000)]


@pytest.mark.parametrize(
    ("request_words", "points"),
    [
        ("redeem 100 for Harvest Market", 100),
        ("redeem five hundred points for a card of Harvest Market", 500),
        ("redeem two hundred fifty points for Harvest Market", 250),
        ("turn twenty-five hundred points into a gift card of Harvest Market", 2_500),
        ("redeem 1.5k points for a gift card of Harvest Market", 1_500),
    ],
)
async def test_the_number_that_is_said_is_the_one_that_is_asked_about(
    tmp_path: Path, request_words: str, points: int
):
    async with open_kit(settings(tmp_path)) as kit:
        asked = await kit.ask(request_words, kit.session("s"))
    assert asked.text == f"Redeem {points} points for a gift card of Harvest Market?"


async def test_two_acts_of_one_message_are_both_asked_about_and_share_the_points(tmp_path: Path):
    both = "redeem 3000 points for a gift card of Harvest Market and 2500 points for one of Bulk Harbor"
    async with open_kit(settings(tmp_path)) as kit:
        asked = await kit.ask(both, kit.session("s"))
        assert "Redeem 3000 points for a gift card of Harvest Market?" in asked.text
        assert "Redeem 2500 points for a gift card of Bulk Harbor?" in asked.text
        reply = await kit.resume(asked.turn_id, True)
        # In the order of the message, so that what is told last is how it stands.
        assert await redeemed(kit) == [("u-001", 3_000)]
    assert "Nothing was redeemed: the account has 2,000 points." in reply.text


@pytest.mark.realtime
async def test_two_processes_never_spend_the_same_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each kit stands for the process of a service over one store, which takes its time."""
    append = SqlEvents.append

    async def append_late(events: SqlEvents, event: AgentEvent) -> AgentEvent:
        await asyncio.sleep(0.1)
        return await append(events, event)

    monkeypatch.setattr(SqlEvents, "append", append_late)
    async with open_kit(settings(tmp_path)) as one, open_kit(settings(tmp_path)) as other:
        turns = {}
        for kit in (one, other):
            session = kit.session(f"of {id(kit)}")
            for _ in range(3):
                asked = await kit.ask("Redeem 2000 points for a gift card", session)
                turns[asked.turn_id] = kit
        replies = await asyncio.gather(*[kit.resume(turn, True) for turn, kit in turns.items()])
        assert len(await redeemed(one)) == 2
    told = [reply.text for reply in replies]
    assert sum("2,000 points were redeemed" in text for text in told) == 2
    assert sum("Nothing was redeemed: the account has 1,000 points" in text for text in told) == 4
    assert len(set(told)) == 3, "3,000 points are left, then 1,000"


async def test_an_account_whose_oldest_redemptions_were_swept_goes_on(tmp_path: Path):
    async with open_kit(settings(tmp_path)) as kit:
        session = kit.session("s")

        async def redeem(points: int) -> str:
            asked = await kit.ask(f"Redeem {points} points for a gift card", session)
            return (await kit.resume(asked.turn_id, True)).text

        await redeem(1000)
        await redeem(1100)
        events = kit.store.open_documents().events
        first, second = await events.query(EventFilter(tenant_id=OPERATOR, event_type=REDEEMED))
        kit.store.sweep_documents(second.ts, retention=(second.ts - first.ts) / 2)
        for points in (100, 200, 300):
            assert f"{points} points were redeemed" in await redeem(points)


@pytest.mark.parametrize(
    "message",
    ["don't redeem 500 points for a gift card", "which gift cards are there?"],
)
async def test_what_asks_for_no_act_offers_none(tmp_path: Path, message: str):
    async with open_kit(settings(tmp_path)) as kit:
        reply = await kit.ask(message, kit.session("s"))
    assert reply.status != "paused" and "Redeem" not in reply.text


async def test_whoever_says_not_to_forget_an_act_asks_for_it(tmp_path: Path):
    async with open_kit(settings(tmp_path)) as kit:
        reply = await kit.ask("don't forget to redeem 500 points", kit.session("s"))
    assert reply.text == MAY_I


@pytest.mark.parametrize("message", ["cancel that", "stop", "never mind"])
async def test_whoever_calls_an_open_question_off_is_told_where_it_waits(
    tmp_path: Path, message: str
):
    async with open_kit(settings(tmp_path)) as kit:
        session = kit.session("s")
        asked = await kit.ask("Redeem 700 points for a gift card of Harvest Market", session)
        reply = await kit.ask(message, session)
    assert reply.status == "ok" and f"where it was asked: {asked.text}" in reply.text


async def test_two_equal_redemptions_are_both_told(tmp_path: Path):
    async with open_kit(settings(tmp_path)) as kit:
        session = kit.session("s")
        for _ in range(2):
            asked = await kit.ask("Redeem 500 points for a gift card of Harvest Market", session)
            await kit.resume(asked.turn_id, True)
        reply = await kit.ask("How many points are left?", session)
    assert "The account has 4,000 points." in reply.text
    assert "a gift card of Harvest Market, 2 times" in reply.text


def say_yes_and_die(folder: Path) -> None:
    """Answers with a yes, and kills its own process once the points are gone and nothing says so yet."""

    async def play() -> None:
        async with open_kit(settings(folder)) as kit:
            asked = await kit.ask(BOTH, kit.session("s"))
            turn = kit.resume(asked.turn_id, True)
            async for event in turn.follow():
                # The lookup of points beside it may end before the act has begun.
                if isinstance(event.body, ToolEnded) and event.body.tool == "redeem_points":
                    os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(play())


@pytest.mark.realtime
def test_an_act_whose_process_is_killed_in_the_middle_of_it_is_done_once(tmp_path: Path):
    assert exit_code(say_yes_and_die, tmp_path) == -signal.SIGKILL

    async def go_on() -> None:
        async with open_kit(settings(tmp_path)) as kit:
            kit.store.mark_interrupted()
            [turn] = kit.store.turns()
            assert turn.status == "interrupted"
            reply = await kit.resume(turn.id)
            assert reply.status == "ok" and "500 points were redeemed" in reply.text
            assert await redeemed(kit) == [("u-001", 500)]

    asyncio.run(go_on())


@pytest.mark.parametrize(("in_order", "answer"), [(True, True), (False, False)])
async def test_two_questions_of_one_conversation_are_answered_in_any_order(
    tmp_path: Path, in_order: bool, answer: bool
):
    async with open_kit(settings(tmp_path)) as kit:
        first = await kit.ask(BOTH, kit.session("s"))
        second = await kit.ask("Redeem 1000 points for a gift card of Oakmart", kit.session("s"))
        assert first.status == second.status == "paused"
        turns = [first, second] if in_order else [second, first]
        replies = [await kit.resume(turns[0].turn_id, answer)]
        replies.append(await kit.resume(turns[1].turn_id, True))
        assert [reply.status for reply in replies] == ["ok", "ok"]
        points = {first.turn_id: 500, second.turn_id: 1_000}
        wanted = [turn for turn, yes in zip(turns, (answer, True), strict=True) if yes]
        assert await redeemed(kit) == [("u-001", points[turn.turn_id]) for turn in wanted]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("how many points does Bob have", "Bob"),
        ("how many points does my wife have?", "my wife"),
        ("what is the balance of user u-002?", "user u-002"),
    ],
)
async def test_whoever_asks_for_what_somebody_else_has_reads_whose_it_is(
    tmp_path: Path, question: str, name: str
) -> None:
    async with open_kit(settings(tmp_path)) as kit:
        other = await kit.ask(question, kit.session("s"))
        own = await kit.ask("how many points do I have", kit.session("s"))
    assert other.text.startswith(f"I only see what is yours, and nothing of {name}. The account")
    assert own.text.startswith("The account")
