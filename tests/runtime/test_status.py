"""Progress: a closed vocabulary, a policy as data over it, and a word within two seconds of a slow agent's start."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from kit.compose.deck import Deck, DeckSettings
from kit.compose.parts import StatusPolicy, StatusRule
from kit.core.bodies.speech import Status, StatusLine
from kit.core.card import AgentCard
from kit.core.context import OPERATOR
from kit.core.errors import DeckError
from kit.core.event import Event
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.status import OWN, Term
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.context import RunContext
from kit.runtime.speech.status_lines import Narrator, TimedLine
from kit.runtime.turn import Reply, run_turn
from kit.tools.tool import ToolResult, tool_context
from tests.kits import ALICE, STATUSES, SmallKit, answering, asks, small_kit, stitched

WORDS = {
    "searching_offers": "Searching offers",
    "looking_up_points_balance": "Looking up your points",
    "thinking_it_through": "Thinking it through",
    "asking_support": "Asking the support team",
}
OFFERS, POINTS, SUPPORT = "searching_offers", "looking_up_points_balance", "asking_support"
Heard = tuple[str, str, float]


def told(policy: StatusPolicy, heard: list[Heard], until: float = 60.0) -> list[TimedLine]:
    """What a narrator says about statuses of agents that are all at work from the start to the end."""
    narrator = Narrator(policy, WORDS, {**OWN, **dict.fromkeys(WORDS, Term())})
    for agent in dict.fromkeys(agent for agent, _, _ in heard):
        narrator.begin(agent)
    said: list[TimedLine] = []
    for agent, status, at in [*heard, ("", "", until)]:
        while (due := narrator.due) is not None and due < at:
            said += narrator.wake(due)
        said += narrator.hear(agent, status, at)
    return said


def texts(said: list[TimedLine]) -> list[tuple[float, str]]:
    return [(round(line.at, 6), line.text) for line in said]


def saying(*steps: tuple[float, str]) -> BaseTool:
    """A tool that waits and sends a status, several times."""

    async def work() -> tuple[str, ToolResult]:
        context = tool_context()
        for seconds, status in steps:
            await asyncio.sleep(seconds)
            if status:
                context.emit(Status(agent=context.agent, status=status))
        return "done", ToolResult(text="done")

    return StructuredTool.from_function(
        coroutine=work, name="work", description="Works.", response_format="content_and_artifact"
    )


@dataclass(frozen=True)
class Worker:
    """An agent that does one thing with its context."""

    card: AgentCard
    steps: tuple[tuple[float, str], ...]
    time_budget: float | None = None

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        emit = ctx.report
        for seconds, status in self.steps:
            await asyncio.sleep(seconds)
            if status:
                emit(Status(agent=self.card.id, status=status))
        return Answer(call_id=call.call_id, agent=self.card.id, text="Done.")


def team_of(workers: dict[str, tuple[tuple[float, str], ...]], **policy: Any) -> SmallKit:
    kit = small_kit(
        [asks(*workers), stitched],
        {name: answering("unused") for name in workers},
        status_phrases=WORDS,
        status_policy=StatusPolicy(**policy),
    )
    cards = kit.team.deck.cards
    kit.team = kit.team.with_agents(
        {name: Worker(cards[name], steps) for name, steps in workers.items()}
    )
    return kit


async def ask(kit: SmallKit) -> Reply:
    return await run_turn("everything", ALICE, kit)


def lines(events: tuple[Event, ...]) -> list[tuple[float, str, str]]:
    return [
        (round(e.at, 6), e.body.agent, e.body.text)
        for e in events
        if isinstance(e.body, StatusLine)
    ]


@pytest.mark.req("PC2-FR-13", "PC2-S5.7")
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (StatusPolicy(), [(1.0, "Searching offers"), (1.1, "Looking up your points")]),
        (
            StatusPolicy(rules={OFFERS: StatusRule(act="suppress")}),
            [(1.1, "Looking up your points")],
        ),
        (
            StatusPolicy(rules={OFFERS: StatusRule(act="transform", into="thinking_it_through")}),
            [(1.0, "Thinking it through"), (1.1, "Looking up your points")],
        ),
        (
            StatusPolicy(rules={OFFERS: StatusRule(act="batch")}),
            [(1.1, "Looking up your points"), (1.4, "Searching offers")],
        ),
        (
            StatusPolicy(default="suppress", rules={OFFERS: StatusRule(act="forward")}),
            [(1.0, "Searching offers")],
        ),
    ],
    ids=["forward", "suppress", "transform", "batch", "all but one suppressed"],
)
def test_a_rule_says_what_becomes_of_each_status(
    policy: StatusPolicy, expected: list[tuple[float, str]]
):
    assert texts(told(policy, [("shop", OFFERS, 1.0), ("rewards", POINTS, 1.1)])) == expected


@pytest.mark.req("PC2-S5.7b")
def test_lines_of_a_window_collapse_into_one_sentence():
    heard: list[Heard] = [
        ("shop", OFFERS, 1.0),
        ("rewards", POINTS, 1.2),
        ("support", SUPPORT, 1.5),
    ]
    said = told(StatusPolicy(default="batch", window_ms=300), heard)
    assert texts(said) == [
        (1.3, "Searching offers and looking up your points"),
        (1.8, "Asking the support team"),
    ]
    assert said[0].agents == ("shop", "rewards")
    apart = told(StatusPolicy(default="batch", window_ms=300, collapse=False), heard)
    assert texts(apart) == [
        (1.3, "Searching offers"),
        (1.3, "Looking up your points"),
        (1.8, "Asking the support team"),
    ]


@pytest.mark.req("PC2-S5.7b")
def test_strict_interleave_hears_nobody_twice_in_a_row():
    heard: list[Heard] = [("shop", OFFERS, 1.0), ("shop", SUPPORT, 1.1), ("rewards", POINTS, 2.0)]
    said = told(StatusPolicy(order="interleave"), heard)
    assert texts(said) == [
        (1.0, "Searching offers"),
        (2.0, "Looking up your points"),
        (2.0, "Asking the support team"),
    ]


@pytest.mark.req("PC2-S5.7b")
@pytest.mark.parametrize("order", ["arrival", "interleave"])
@pytest.mark.parametrize("collapse", [True, False])
def test_the_rate_limit_holds_for_any_flood(order: Any, collapse: bool):
    rng = random.Random(f"{order}{collapse}")
    for _ in range(10):
        times = sorted(rng.uniform(0, 3) for _ in range(40))
        heard = [(rng.choice("abc"), rng.choice([OFFERS, POINTS, SUPPORT]), at) for at in times]
        said = told(StatusPolicy(order=order, gap_ms=250, collapse=collapse), heard)
        at = [line.at for line in said]
        assert at and all(later - earlier >= 0.25 - 1e-9 for earlier, later in pairwise(at))


@pytest.mark.req("PC2-S9.4-3", "PC2-S5.7")
def test_a_retired_term_is_read_in_its_successors_words_and_a_removed_one_not_at_all():
    vocabulary = {
        OFFERS: Term(),
        "hunting_offers": Term(since="0.1", deprecated="0.2", instead=OFFERS),
    }
    narrator = Narrator(StatusPolicy(), WORDS, vocabulary)
    assert texts(narrator.hear("shop", "hunting_offers", 1.0)) == [(1.0, "Searching offers")]
    assert narrator.hear("shop", POINTS, 2.0) == []
    assert set(OWN) < STATUSES and narrator.hear("shop", "thinking_it_through", 3.0) == []


@pytest.mark.req("PC2-S9.5-7", "PC2-S5.7", "PC2-FR-13")
@pytest.mark.parametrize("policy", [{}, {"gap_ms": 10}, {"default": "batch"}], ids=str)
async def test_a_status_outside_the_vocabulary_is_counted_and_never_read(
    policy: dict[str, Any],
):
    kit = team_of({"shop": ((0.1, "SELECT * FROM offers"), (1.0, OFFERS), (1.0, ""))}, **policy)
    reply = await ask(kit)
    assert [text for _, _, text in lines(reply.events)] == ["Searching offers"]
    record = kit.store.turn(reply.turn_id, OPERATOR)
    assert record is not None
    assert [agent.unknown_statuses for agent in record.measures.agents] == [1]
    assert "SELECT" not in "".join(
        event.model_dump_json()
        for event in [*reply.events, *kit.store.events(reply.turn_id, OPERATOR)]
    )


@pytest.mark.req("PC2-S5.7", "PC2-NFR-5", "PC2-AC-9")
async def test_each_silent_invocation_is_spoken_for_once_however_long_it_takes_and_no_more():
    twice = Line(
        calls=[("ask_a", {"query": query, "intent_count": 2}) for query in ("coffee", "tea")]
    )
    kit = small_kit(
        ScriptedModel(twice, asks("a", text=""), stitched),
        {"a": answering("a", delay=7.0)},
        status_phrases=WORDS,
    )
    reply = await ask(kit)
    assert [(at, agent) for at, agent, _ in lines(reply.events)] == [
        (1.5, "a"),
        (1.5, "a"),
        (8.5, "a"),
    ]
    spans = [event.span_id for event in reply.events if isinstance(event.body, StatusLine)]
    started = [event.span_id for event in reply.events if event.kind == "agent_started"]
    assert spans == started and len(set(spans)) == 3, (
        "a line for each invocation, under its own span"
    )


async def test_a_deck_may_set_another_quiet_time_or_none():
    assert [
        at for at, _, _ in lines((await ask(team_of({"a": ((3.0, ""),)}, quiet_ms=400))).events)
    ] == [0.4]
    assert lines((await ask(team_of({"a": ((3.0, ""),)}, quiet_ms=None))).events) == []


@pytest.mark.req("PC1-FR-13", "PC2-S9.2-7")
async def test_a_tools_statuses_are_read_while_it_works():
    model = ScriptedModel(Line(calls=[("work", {})]), Line("Found."))
    card = AgentCard(id="shop", description="Shops.", model="offline", tools=("work",))
    tools = {"work": saying((0.5, OFFERS), (2.0, POINTS))}
    kit = small_kit([asks("shop"), stitched], {"shop": model}, tools, [card], status_phrases=WORDS)
    reply = await ask(kit)
    assert lines(reply.events) == [
        (0.5, "shop", "Searching offers"),
        (2.5, "shop", "Looking up your points"),
    ]


@pytest.mark.req("PC2-FR-13", "PC2-S5.7b")
async def test_what_waits_of_an_agent_that_has_ended_is_old_news():
    reply = await ask(
        team_of(
            {"shop": ((0.2, OFFERS),), "rewards": ((5.0, ""),)},
            default="batch",
            window_ms=500,
            quiet_ms=None,
        )
    )
    assert lines(reply.events) == []


def deck_with(**policy: Any) -> Callable[[], Deck]:
    card = AgentCard(id="solo", description="Answers.", model="offline")
    settings = {
        "orchestrator": "solo",
        "required_blocks": [],
        "statuses": [OFFERS],
        "status_policy": StatusPolicy(**policy),
    }
    return lambda: Deck.of([card], settings=DeckSettings.model_validate(settings))


def test_a_policy_that_names_no_status_is_refused():
    with pytest.raises(DeckError, match="did you mean 'searching_offers'"):
        deck_with(rules={"serching_offers": StatusRule()})()
    with pytest.raises(DeckError, match="unknown status ''"):
        deck_with(rules={OFFERS: StatusRule(act="transform")})()
