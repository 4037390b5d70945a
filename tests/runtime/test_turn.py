"""A turn as a handle: follow, await, cancel; what the user reads, in which order; what is kept."""

import asyncio

import pytest

from kit.core.bodies.speech import Acknowledged, Text
from kit.core.bodies.turn import Completed
from kit.core.card import AgentCard
from kit.core.context import OPERATOR
from kit.core.record import UNANSWERED
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, answering, asks, bodies, failing, small_kit, stitched


def texts(reply: Reply, channel: str) -> list[Text]:
    return [body for body in bodies(reply, Text) if body.channel == channel]


@pytest.mark.req("SAT-19")
@pytest.mark.parametrize("streaming", [True, False])
async def test_calls_without_text_get_the_cards_line_marked_synthetic(streaming: bool):
    card = AgentCard(
        id="orchestrator",
        description="R.",
        model="offline",
        sub_agents=("a",),
        preamble="Give me a moment.",
    )
    lead = ScriptedModel(asks("a", text=""), stitched, disable_streaming=not streaming)
    kit = small_kit(lead, {"a": answering("A")}, cards=[card])
    reply = await run_turn("one thing", ALICE, kit)
    [lead_text] = texts(reply, "lead")
    assert (lead_text.text, lead_text.synthetic) == ("Give me a moment.", True)
    assert reply.preamble == "Give me a moment."


async def test_after_a_failure_nothing_is_shown_before_it_is_checked_and_owned_up_to():
    lie = "All done, everything worked."
    kit = small_kit(
        [asks("a", "rewards"), Line(lie, pieces=[lie], pace=1)],
        {"a": answering("A"), "rewards": failing(OSError("x"))},
    )
    reply = await run_turn("two things", ALICE, kit)
    assert [body.text for body in texts(reply, "answer")] == [reply.text]
    assert reply.text == "A\n\nI wasn't able to get an answer about rewards right now."
    assert [body.path for body in bodies(reply, Acknowledged)] == ["rescued"]


async def test_followers_see_everything_from_wherever_they_join_and_awaiters_do_not_own_the_turn():
    kit = small_kit([asks("a"), stitched], {"a": answering("A", 2.0)})
    turn = run_turn("one thing", ALICE, kit)

    async def wait() -> Reply:
        return await turn

    impatient = asyncio.ensure_future(wait())
    await asyncio.sleep(1)
    impatient.cancel()
    late = [event.seq async for event in turn.follow(3)]
    reply = await turn
    whole = [event.seq async for event in turn]
    assert late == list(range(3, len(reply.events))) and whole == list(range(len(reply.events)))
    assert reply.status == "ok"


STOP = "I was stopped here, so this is only part of the answer."
EARLY = "I was stopped before I had an answer."


@pytest.mark.req("K-23")
@pytest.mark.parametrize(
    ("after", "text"),
    [
        (1.5, EARLY),
        (2.5, f"A\n\n{STOP}"),
        (4.5, f"A\n\nB\n\n{STOP}"),
        (6.5, f"A\n\nB\n\n{STOP}"),
        (12.0, "It is A and B."),
    ],
    ids=[
        "nothing yet",
        "one of two",
        "all but the answer",
        "in the middle of the answer",
        "too late",
    ],
)
async def test_stop_keeps_the_finished_answers_as_a_part(after: float, text: str):
    composing = Line("It is A and B.", pieces=("It is A", " and B."), delay=2, pace=2)
    lead = ScriptedModel(Line("Let me look.", calls=asks("a", "b").calls, delay=1), composing)
    kit = small_kit(lead, {"a": answering("A", 1.0), "b": answering("B", 3.0)})
    turn = run_turn("two things", ALICE, kit)
    await asyncio.sleep(after)
    turn.cancel()
    reply = await turn
    record = kit.store.turn(turn.id, OPERATOR)
    last = reply.events[-1].body
    assert record is not None and isinstance(last, Completed)
    assert record.status == reply.status == ("cancelled" if after < 12 else "ok")
    assert {reply.text, record.text, transcript(reply.events).answer, last.text} == {text}
    told = [m.text for m in kit.store.history(ALICE.key, "a") if m.role == "assistant"]
    assert told == (["A"] if after > 2 else [UNANSWERED])


@pytest.mark.req("K-23")
@pytest.mark.parametrize(
    ("begun", "kept"),
    [
        ("Here ", False),
        ("You have 4,9", False),
        ("Sunny Larder has apples. ", False),
        ("You have 4,975 points. Sunny Larder has apples ", True),
    ],
)
async def test_a_composition_broken_off_stands_only_where_it_passes_on_every_answer(
    begun: str, kept: bool
):
    rewards, shop = "You have 4,975 points in all.", "Sunny Larder has apples and pears this week."
    composing = Line(f"{begun}is.", pieces=(begun, "is."), pace=2)
    lead = ScriptedModel(asks("rewards", "shop"), composing)
    kit = small_kit(lead, {"rewards": answering(rewards), "shop": answering(shop)})
    turn = run_turn("points and offers", ALICE, kit)
    await asyncio.sleep(1)
    turn.cancel()
    reply = await turn
    answers = begun.strip() if kept else f"{rewards}\n\n{shop}"
    assert " ".join(reply.text.split()) == " ".join(f"{answers} {STOP}".split())


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("   \n", "didn't catch"),
        ("\x00\x07", "didn't catch"),
        ("x" * 100_000, "too long"),
        ("\ud800", "didn't catch"),
    ],
)
async def test_a_message_that_cannot_be_worked_with_gets_a_plain_word_and_no_model(
    message: str, words: str
):
    lead = ScriptedModel()
    kit = small_kit(lead, {"a": answering("A")})
    reply = await run_turn(message, ALICE, kit)
    assert words in reply.text and reply.status == "failed" and lead.seen == []
    assert len(reply.events[1].body.message) == len(message if words == "too long" else "")  # type: ignore[union-attr]
