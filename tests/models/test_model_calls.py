"""An orchestrator's own model call that hangs ends at the deck's limit; its fallback, else the
answers in hand, take over."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage

from kit.core.bodies.call import ModelStarted
from kit.core.bodies.speech import Acknowledged
from kit.core.bodies.turn import Completed
from kit.core.transcript import transcript
from kit.models.scripted import Line, Script, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, answering, asks, bodies, failing, small_kit

HANGS = Line("never said", delay=600)


async def turn(
    first: Sequence[Script], second: Sequence[Script] | None = None, **settings: Any
) -> Reply:
    """One turn over a healthy and a broken agent, by a lead of these lines and, where given, a fallback of those."""
    sub_agents: dict[str, BaseChatModel] = {
        "a": answering("A is known.", 1.0),
        "b": failing(OSError("x")),
    }
    models = {**sub_agents, "orchestrator": ScriptedModel(*first)}
    if second is not None:
        models["orchestrator:fallback"] = ScriptedModel(*second)
    kit = small_kit(models["orchestrator"], sub_agents, **settings)
    kit.team = bind(kit.team.deck, models)
    return await run_turn("two things", ALICE, kit)


def composed(messages: list[BaseMessage]) -> Line:
    assert isinstance(messages[-1], ToolMessage)
    return Line("A is known. I could not get an answer about b.")


def voices(reply: Reply) -> list[tuple[str, bool]]:
    """Purpose of each of the lead's model calls, and whether it was the fallback's."""
    bodies = (e.body for e in reply.events)
    return [
        (b.purpose, b.instead_of is not None)
        for b in bodies
        if isinstance(b, ModelStarted) and b.agent == "orchestrator"
    ]


@pytest.mark.req("PC2-S5.8b")
@pytest.mark.parametrize(
    ("composing", "seconds", "reason"),
    [
        (HANGS, 4.0, "timeout"),
        (Line("A is known", pieces=["A is kn", "own"], pace=600), 4.0, "timeout"),
        (Line(error=ConnectionError("503")), 0.0, "exception"),
    ],
    ids=["hangs", "breaks off", "fails"],
)
async def test_without_a_composer_the_answers_in_hand_are_the_reply(
    composing: Line, seconds: float, reason: str
):
    reply = await turn([asks("a", "b"), composing], model_call_budget_ms=4_000)
    assert (reply.status, reply.events[-1].at) == ("ok", 1.0 + seconds), "a is answered"
    assert isinstance(end := reply.events[-1].body, Completed) and reason in str(end.error)
    assert reply.text == "A is known.\n\nI wasn't able to get an answer about b right now."
    assert transcript(reply.events).answer == reply.text
    assert [(line.agent, line.result) for line in reply.routing.outcomes] == [
        ("a", "success"),
        ("b", "failure"),
    ]
    assert [body.path for body in bodies(reply, Acknowledged)] == ["rescued"]


@pytest.mark.req("PC2-S5.8b")
async def test_the_cards_fallback_model_routes_when_the_first_one_hangs_and_stays_for_the_turn():
    reply = await turn([HANGS], [asks("a", "b"), composed], model_call_budget_ms=4_000)
    assert (reply.status, reply.events[-1].at) == ("ok", 4.0 + 1.0)
    assert reply.text == "A is known. I could not get an answer about b."
    assert voices(reply) == [("decide", False), ("decide", True), ("compose", True)]


@pytest.mark.req("PC2-S5.8b")
@pytest.mark.parametrize("broken", [HANGS, Line(error=ConnectionError("503"))])
async def test_the_fallback_model_composes_when_the_first_one_cannot(broken: Line):
    reply = await turn([asks("a", "b"), broken], [composed], model_call_budget_ms=4_000)
    assert reply.status == "ok" and reply.text == "A is known. I could not get an answer about b."
    assert reply.events[-1].at == (5.0 if broken is HANGS else 1.0)


async def test_the_fallback_gets_one_attempt_inside_the_limit_and_what_is_left_of_the_turn():
    both = await turn([asks("a", "b"), HANGS], [HANGS], model_call_budget_ms=4_000)
    assert (both.status, both.events[-1].at) == ("ok", 1.0 + 4.0 + 4.0), "a is answered"
    late = await turn(
        [asks("a", "b"), HANGS], [HANGS], model_call_budget_ms=4_000, turn_budget_ms=6_000
    )
    assert (late.status, late.events[-1].at) == ("deadline", 6.0)
    again = await turn([HANGS], [asks("a"), HANGS], model_call_budget_ms=4_000)
    assert voices(again) == [("decide", False), ("decide", True), ("compose", True)], (
        "no third model, no second try"
    )
    for reply in (both, late, again):
        assert reply.text.startswith("A is known.")


async def test_a_model_that_is_slow_to_say_a_word_after_the_first_is_not_replaced_by_another_voice():
    half = Line("Let me see", pieces=["Let me ", "see"], pace=600)
    reply = await turn([half], [asks("a")], model_call_budget_ms=4_000)
    assert (reply.status, reply.events[-1].at) == ("failed", 4.0)
    assert transcript(reply.events).lead == "", "the half of a lead is taken back"


async def test_an_answer_that_breaks_off_is_not_continued_by_another_model():
    half = Line("Of a I can say", pieces=["Of a ", "I can say"], pace=600)
    reply = await turn([asks("a"), half], [composed], model_call_budget_ms=4_000)
    assert voices(reply) == [("decide", False), ("compose", False)]
    assert reply.text == "A is known.", "no word of the half that was read is left"
