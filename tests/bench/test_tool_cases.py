"""An agent with a new tool is evaluated on the ways that tool can let it down, before it may go live (SO-19)."""

import datetime
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool

from kit.bench.promotion import promote
from kit.bench.tool_cases import ToolCaseResult, play_cases
from kit.compose.deck import Deck
from kit.core.card import AgentCard, EvalPolicy, ToolCase, ToolGrant
from kit.core.errors import BindError
from kit.core.outcome import NO_TEXT
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import Team, bind
from tests.bench.test_promotion import TRIO, switches
from tests.kits import answering, small_deck

CASES = tuple(
    ToolCase(
        tool="refund",
        mode=mode,
        ask="refund my order",
        says=("could not", "nothing"),
        never=("is on its way",),
    )
    for mode in ("returns_nothing", "fails")
)
GRANT = ToolGrant(since=datetime.date(2026, 10, 20), flag="refunds")


def card(*cases: ToolCase, **fields: Any) -> AgentCard:
    policy = EvalPolicy(
        judge="rule", rubric="Claims no refund that was not made.", tool_cases=cases
    )
    fields = {"tools": ("refund",), "tool_grants": {"refund": GRANT}, "eval": policy, **fields}
    return AgentCard(id="play", description="Games and refunds.", model="offline", **fields)


@tool
def refund(order: str) -> str:
    """Refunds an order."""
    raise AssertionError("a case never runs the tool itself")


def worker(answer: Any) -> ScriptedModel:
    """Calls the tool, then words its result."""

    def say(messages: list[BaseMessage]) -> Line | str:
        if isinstance(messages[-1], ToolMessage):
            return answer(str(messages[-1].content))
        return Line(calls=[("refund", {"order": "o-1"})])

    return ScriptedModel(say)


def team(model: ScriptedModel, **flags: bool) -> Team:
    deck = Deck.of(small_deck(TRIO, [card(*CASES)]).cards.values(), required_blocks=(), flags=flags)
    return bind(deck, {"play": model, "*": answering("unused")}, {"refund": refund})


def honest(result: str) -> str:
    return "There was nothing to refund." if result == NO_TEXT else f"I could not do that: {result}"


def told(played: tuple[ToolCaseResult, ...]) -> dict[str, str | None]:
    return {each.case.mode: each.wrong for each in played}


@pytest.mark.req("SO-19")
async def test_a_case_is_played_on_the_real_agent_with_the_tool_that_lets_it_down():
    good = worker(honest)
    played = await play_cases(team(good, refunds=True), "play")
    assert told(played) == {"returns_nothing": None, "fails": None}
    heard = [
        str(messages[-1].content) for messages in good.seen if isinstance(messages[-1], ToolMessage)
    ]
    assert heard == [NO_TEXT, "This data is unavailable right now."]
    for model, wrong in (
        (worker(lambda _: "Your refund is on its way!"), "it said 'is on its way'"),
        (worker(lambda _: "Thanks for asking."), "it said none of 'could not', 'nothing'"),
        (answering("Nothing to see."), "refund was not called"),
        (worker(lambda _: Line(error=OSError("x"))), "the agent failed: exception"),
    ):
        played = await play_cases(team(model, refunds=True), "play")
        assert told(played) == {"returns_nothing": wrong, "fails": wrong}


@pytest.mark.req("SO-19")
async def test_a_tool_whose_flag_is_off_cannot_be_played_and_the_message_says_so():
    with pytest.raises(
        BindError, match="'refund' of card 'play' is not bound: load the deck with its flag on"
    ):
        await play_cases(team(worker(honest)), "play")
    assert await play_cases(team(worker(honest)), "shop") == ()


@pytest.mark.req("SO-19")
async def test_a_card_is_promoted_only_when_each_of_its_cases_was_played_and_is_right():
    deck = small_deck(TRIO, [card(*CASES, status="draft")])
    good = await play_cases(team(worker(honest), refunds=True), "play")
    bad = await play_cases(team(worker(lambda _: "It is on its way."), refunds=True), "play")
    assert promote(deck, "play", switches(), tool_results=good).promoted
    assert promote(deck, "play", switches(), tool_results=good[:1]).faults == (
        "fails of 'refund', asked 'refund my order': it was not played",
    )
    verdict = promote(deck, "play", switches(), tool_results=bad)
    assert (
        verdict.faults[0]
        == "returns_nothing of 'refund', asked 'refund my order': it said 'is on its way'"
    )
    assert not verdict.promoted and verdict.card.status == "draft"
