"""Seven ways to orchestrate one turn over the same cards: what each promises, and that its promises hold."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from kit.compose.deck import Block, Deck, DeckSettings
from kit.compose.parts import GUARDS
from kit.core.bodies.guard import GuardActed
from kit.core.bodies.speech import Text
from kit.core.card import AgentCard
from kit.core.outcome import Answer, Failure
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import PATTERNS
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.tool import tool_name
from tests.kits import (
    ALICE,
    SmallKit,
    answering,
    asks,
    bodies,
    small_deck,
    small_kit,
    stitched,
)

TWO = "find coffee deals and check my points"


def talking(
    *pieces: str, delay: float = 0.0, pace: float = 0.0, error: BaseException | None = None
) -> ScriptedModel:
    """A sub-agent that says these pieces, `pace` apart."""
    return ScriptedModel(
        lambda _: Line("".join(pieces), pieces=pieces, delay=delay, pace=pace, error=error)
    )


async def ask(kit: SmallKit, pattern: str, message: str = TWO) -> Reply:
    return await run_turn(message, ALICE, kit, PATTERNS[pattern])


def words(reply: Reply) -> list[tuple[float, str]]:
    """What the page was sent as the answer, and when."""
    return [
        (round(e.at, 4), e.body.text)
        for e in reply.events
        if isinstance(e.body, Text) and e.body.channel == "answer"
    ]


def pieces_of(name: str, count: int) -> list[str]:
    return [f"{name}{number} " for number in range(count)]


# direct


@pytest.mark.req("SAT-7", "SAT-23")
@pytest.mark.parametrize("first", ["shop", "rewards"])
async def test_direct_the_first_to_produce_is_live_and_the_other_follows_whole_in_either_order(
    first: str,
):
    second = "rewards" if first == "shop" else "shop"
    models = {
        first: talking(*pieces_of(first, 4), delay=1.0, pace=0.1),
        second: talking(*pieces_of(second, 4), delay=1.05, pace=0.01),
    }
    kit = small_kit([asks("shop", "rewards")], models)
    reply = await ask(kit, "direct")
    one, other = ("".join(pieces_of(name, 4)).strip() for name in (first, second))
    assert reply.text == f"{one}\n\n{other}" == transcript(reply.events).answer.strip()
    assert reply.events[-1].at < 1.6, "both ran at the same time"
    live = [at for at, text in words(reply) if first in text]
    assert live == pytest.approx([1.0, 1.1, 1.2, 1.3], abs=0.031), (
        "spoken as it comes, within the gathering window"
    )
    assert min(at for at, text in words(reply) if second in text) >= 1.4, (
        "and the other only when it has ended"
    )


@pytest.mark.req("SAT-23")
@pytest.mark.parametrize(("flush_ms", "taken"), [(15, 0.15), (0, 0.0), (100, 1.0)])
async def test_direct_what_waited_is_flushed_in_order_with_a_pause_after_each_piece(
    flush_ms: int, taken: float
):
    models = {
        "shop": talking("done ", delay=0.5),
        "rewards": talking(*pieces_of("r", 10), delay=0.5),
    }
    settings: dict[str, Any] = {} if flush_ms == 15 else {"flush_ms": flush_ms}
    kit = small_kit([asks("shop", "rewards")], models, **settings)
    reply = await ask(kit, "direct")
    assert reply.text == "done\n\n" + "".join(pieces_of("r", 10)).strip()
    assert reply.events[-1].at == pytest.approx(0.5 + taken, abs=1e-6)


@pytest.mark.req("SAT-7", "SAT-23")
async def test_direct_the_slot_passes_on_the_next_flushes_then_speaks_live():
    models = {
        "a": talking("a0 ", delay=0.1),
        "b": talking(*pieces_of("b", 3), delay=0.3, pace=1.0),
        "c": talking(*pieces_of("c", 3), delay=0.2, pace=0.2),
    }
    kit = small_kit([asks("a", "b", "c")], models)
    reply = await ask(kit, "direct")
    spoken = {text.strip(): at for at, text in words(reply) if text.strip()}
    assert "".join(text for _, text in words(reply)).split() == [
        "a0",
        "c0",
        "c1",
        "c2",
        "b0",
        "b1",
        "b2",
    ]
    assert spoken["c0"] == pytest.approx(0.2, abs=0.02) and spoken["c1"] == pytest.approx(
        0.4, abs=0.04
    ), "live: it was its turn"
    assert 0.8 <= spoken["b0"] <= 0.82, "waited since 0.3, flushed when c had ended"
    assert spoken["b1"] == pytest.approx(1.3, abs=0.04) and spoken["b2"] == pytest.approx(
        2.3, abs=0.04
    ), "and live after that"


async def test_direct_half_an_answer_of_an_agent_that_fails_is_taken_back():
    breaking = ScriptedModel(
        lambda _: Line(
            "You have 900 points and", pieces=["You have ", "900 points ", "and"], pace=3.0
        )
    )
    card = AgentCard.model_validate(
        {
            "id": "rewards",
            "description": "Points.",
            "model": "offline",
            "policy": {"time_budget_ms": 4000},
        }
    )
    kit = small_kit(
        [asks("rewards", "shop")],
        {"rewards": breaking, "shop": talking("Deals here.", delay=1)},
        cards=[card],
    )
    reply = await ask(kit, "direct")
    assert any("900" in text for _, text in words(reply)), "it was live before it failed"
    assert "900" not in reply.text == transcript(reply.events).answer
    assert reply.text.startswith("Deals here.") and "rewards" in reply.text


async def test_direct_words_before_a_tool_call_are_no_answer():
    async def look(**_: Any) -> str:
        return "4,975 points"

    tool = StructuredTool(
        name="look",
        description="Looks.",
        args_schema={"type": "object", "properties": {}},
        coroutine=look,
    )
    model = ScriptedModel(
        Line("Let me look that up.", calls=[("look", {})]), Line("You have 4,975 points.")
    )
    card = AgentCard(id="rewards", description="Points.", model="offline", tools=("look",))
    kit = small_kit([asks("rewards")], {"rewards": model}, {"look": tool}, cards=[card])
    reply = await ask(kit, "direct", "how many points do I have")
    assert reply.text == transcript(reply.events).answer == "You have 4,975 points."
    assert not any("look that up" in text for _, text in words(reply))


@pytest.mark.parametrize("after", [0.5, 1.2, 2.0])
async def test_direct_a_stopped_turn_leaves_no_task_and_keeps_what_was_said(after: float):
    models = {"a": talking(*pieces_of("a", 5), delay=1, pace=0.5), "b": talking("B", delay=0.1)}
    turn = run_turn(TWO, ALICE, small_kit([asks("a", "b")], models), PATTERNS["direct"])
    await asyncio.sleep(after)
    turn.cancel()
    reply = await turn
    assert reply.status == "cancelled" and "B" in reply.text
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


# classifier_gateway


def route(*labels: str, query: str = "") -> Line:
    return Line(calls=[("submit_route", {"labels": list(labels), "query": query})])


def rest(query: str) -> Line:
    return Line(calls=[("submit_query", {"query": query})])


@pytest.mark.req("SAT-20")
async def test_gateway_a_structured_output_classifier_with_the_cards_as_labels_and_no_preamble():
    lead = ScriptedModel(route("rewards", query="check my points"))
    models = {"shop": answering("S"), "rewards": answering("You have 4,975 points.")}
    kit = small_kit(lead, models, support_agent="shop", guards=GUARDS)
    reply = await ask(kit, "classifier_gateway", "check my points please now")
    forced = kit.team.jobs["submit_route"].runnable.kwargs  # type: ignore[attr-defined]
    assert forced["tool_choice"] == "submit_route"
    assert forced["tools"][0]["function"]["parameters"]["properties"]["labels"]["items"][
        "enum"
    ] == ["shop", "rewards"]
    assert "Answers questions about rewards." in str(lead.seen[0][0].content)
    assert reply.preamble == transcript(reply.events).lead == ""
    assert reply.text == "You have 4,975 points." and reply.routing.invoked == ("rewards",)
    assert (
        next(e.body.query for e in reply.events if e.kind == "agent_started")  # type: ignore
        == "check my points please now"
    )


@pytest.mark.req("SAT-20")
async def test_gateway_mixed_is_support_then_a_rewritten_query_then_shopping_one_after_the_other():
    support, shop = answering("Write to the team.", 2.0), answering("Coffee is on offer.", 1.0)
    lead = ScriptedModel(
        route("shop", "support", query="my receipt is missing"),
        Line(calls=rest("find coffee").calls, delay=0.5),
    )
    kit = small_kit(lead, {"shop": shop, "support": support}, support_agent="support")
    reply = await ask(
        kit, "classifier_gateway", "find coffee and my receipt is missing since monday"
    )
    spans = {s.name: (s.started, s.ended) for s in reply.trace.spans if s.kind == "agent"}
    assert reply.routing.invoked == ("support", "shop")
    assert spans["support"] == pytest.approx((0.0, 2.0)) and spans["shop"] == pytest.approx(
        (2.5, 3.5)
    )
    queries = {e.body.agent: e.body.query for e in reply.events if e.kind == "agent_started"}  # type: ignore[union-attr]
    assert queries == {"support": "my receipt is missing", "shop": "find coffee"}
    assert reply.text == "Write to the team.\n\nCoffee is on offer."
    assert [m.content for m in shop.seen[0][1:]] == ["find coffee"], "no word of the other's part"


async def test_gateway_a_rewriting_that_fails_or_wanders_off_leaves_the_users_own_words():
    whole = "find coffee and my receipt is missing since monday"
    for line, own in (
        (Line(error=OSError("gone")), whole),
        (rest("weather in Leeds"), "find coffee"),
    ):
        lead = ScriptedModel(route("support", "shop", query="my receipt is missing"), line)
        kit = small_kit(
            lead,
            {"shop": answering("S"), "support": answering("H")},
            support_agent="support",
            guards=GUARDS,
        )
        reply = await ask(kit, "classifier_gateway", whole)
        queries = {e.body.agent: e.body.query for e in reply.events if e.kind == "agent_started"}  # type: ignore[union-attr]
        assert queries["shop"] == own


@pytest.mark.req("SAT-20")
@pytest.mark.parametrize("message", ["hello", "what is the capital of France?"])
async def test_gateway_has_no_fastpath_what_fits_no_label_goes_to_the_default(message: str):
    kit = small_kit([route()], {"shop": answering("Hello from shop.")}, default_sub_agent="shop")
    assert (await ask(kit, "classifier_gateway", message)).text == "Hello from shop."
    kit = small_kit([route()], {"shop": answering("Hello from shop.")})
    assert (await ask(kit, "classifier_gateway", message)).routing.invoked == ()


# monolith


def lookup(name: str, text: str) -> StructuredTool:
    async def look(**_: Any) -> str:
        if text == "fails":
            raise OSError("secret=/srv/db")
        return text

    return StructuredTool(
        name=name,
        description=name,
        args_schema={"type": "object", "properties": {}},
        coroutine=look,
    )


def monolithic(
    lead: ScriptedModel,
    deals: str = "Coffee is 20 percent off.",
    points: str = "You have 4,975 points.",
    tool: str = "points",
) -> SmallKit:
    cards = [
        AgentCard(
            id="shop",
            description="Deals.",
            model="offline",
            tools=("deals",),
            prompt_blocks=("shop-block",),
        ),
        AgentCard(
            id="rewards",
            description="Points.",
            model="offline",
            tools=(tool,),
            prompt_blocks=("rewards-block",),
        ),
    ]
    blocks = [
        Block(id=f"{i}-block", category="instructions", owner=i, text=f"About {i}.")
        for i in ("shop", "rewards")
    ]
    root = AgentCard(
        id="orchestrator", description="R.", model="offline", sub_agents=("shop", "rewards")
    )
    deck = Deck.of(
        [root, *cards], blocks, DeckSettings(orchestrator="orchestrator", required_blocks=())
    )
    tools = {"deals": lookup("deals", deals), tool: lookup(tool_name(tool), points)}
    return SmallKit(
        PATTERNS["monolith"].team(deck, lambda deck: bind(deck, {"*": lead}, tools)),
        SqliteStore(":memory:"),
    )


async def test_monolith_is_one_agent_with_every_tool_and_every_prompt_and_dispatches_nobody():
    said = "Coffee is 20 percent off; you have 4,975 points."
    lead = ScriptedModel(Line("Let me see.", calls=[("deals", {}), ("points", {})]), said)
    reply = await ask(monolithic(lead), "monolith")
    assert "About shop." in str(lead.seen[0][0].content) and "About rewards." in str(
        lead.seen[0][0].content
    )
    kinds = [event.kind for event in reply.events]
    assert kinds.count("tool_started") == 2 and "agent_started" not in kinds
    assert reply.text == said
    assert (reply.routing.invoked, reply.routing.intent_count) == (("shop", "rewards"), 2), (
        "told by whose tools were called"
    )
    assert [(o.agent, o.kind) for o in reply.outcomes] == [
        ("shop", "answer"),
        ("rewards", "answer"),
    ]


@pytest.mark.parametrize("tool", ["points", "till.points"])
async def test_monolith_owns_up_to_a_part_whose_tools_failed_and_leaks_nothing_of_why(
    tool: str,
):
    said = "Coffee is 20 percent off."
    lead = ScriptedModel(Line(calls=[("deals", {}), (tool_name(tool), {})]), said, said)
    reply = await ask(monolithic(lead, points="fails", tool=tool), "monolith")
    assert (
        reply.text
        == "Coffee is 20 percent off.\n\nI wasn't able to get an answer about rewards right now."
    )
    assert [(o.agent, o.reason) for o in reply.outcomes if isinstance(o, Failure)] == [
        ("rewards", "exception")
    ]
    assert any(event.kind == "acknowledged" for event in reply.events)


# supervisor


async def test_supervisor_asks_one_at_a_time_and_decides_again_after_each():
    lead = ScriptedModel(asks("shop", "rewards"), asks("rewards", text=""), stitched)
    kit = small_kit(lead, {"shop": answering("S", 1.0), "rewards": answering("R", 2.0)})
    reply = await ask(kit, "supervisor")
    spans = {s.name: (s.started, s.ended) for s in reply.trace.spans if s.kind == "agent"}
    assert spans["shop"] == pytest.approx((0, 1)) and spans["rewards"] == pytest.approx((1, 3))
    assert reply.text == "S | R" and reply.routing.rounds == 2
    assert "one tool at a time" in str(lead.seen[0][0].content)
    shown = [m for m in lead.seen[1] if m.type == "ai"]
    assert [call["name"] for m in shown for call in m.tool_calls] == ["ask_shop"], (  # type: ignore
        "what was not asked was not called"
    )
    assert [body.agent for body in bodies(reply, GuardActed)] == ["rewards"]


# swarm


def swarming(
    models: Mapping[str, ScriptedModel], tools: Mapping[str, Any] | None = None, **settings: Any
) -> SmallKit:
    cards = [
        AgentCard(id=i, description=f"All about {i}.", model="offline", tools=tuple(tools or ()))
        for i in models
    ]
    deck = small_deck(list(models), cards, **settings)
    speaking = {**models, "orchestrator": ScriptedModel()}
    return SmallKit(
        PATTERNS["swarm"].team(deck, lambda deck: bind(deck, speaking, tools or {})),
        SqliteStore(":memory:"),
    )


def over(agent: str, text: str = "") -> Line:
    return Line(text, calls=[(f"ask_{agent}", {"query": f"about {agent}", "intent_count": 1})])


async def test_swarm_an_agent_answers_its_part_and_hands_the_conversation_to_the_next():
    shop, rewards = (
        ScriptedModel(over("rewards", "Coffee is 20 percent off.")),
        ScriptedModel("You have 4,975 points."),
    )
    reply = await ask(
        swarming({"shop": shop, "rewards": rewards, "support": ScriptedModel()}), "swarm"
    )
    assert (
        reply.text
        == "Coffee is 20 percent off.\n\nYou have 4,975 points."
        == transcript(reply.events).answer
    )
    assert reply.routing.invoked == ("shop", "rewards") and reply.usage.model_calls == 2, (
        "nobody routes, nobody composes"
    )
    first = reply.outcomes[0]
    assert (
        isinstance(first, Answer)
        and first.hands_to is not None
        and first.hands_to.agent == "rewards"
    )
    assert rewards.seen[0][-1].content == TWO, "the message travels whole"
    assert "Answered already by shop: Coffee is 20 percent off." in str(rewards.seen[0][0].content)


async def test_swarm_of_several_peers_named_at_once_the_first_gets_the_conversation():
    both = Line("Coffee is 20 percent off.", calls=[*over("support").calls, *over("rewards").calls])
    models = {
        "shop": ScriptedModel(both),
        "rewards": ScriptedModel(),
        "support": ScriptedModel("Write to the team."),
    }
    reply = await ask(swarming(models), "swarm")
    assert (
        reply.text == "Coffee is 20 percent off.\n\nWrite to the team."
        and reply.routing.invoked == ("shop", "support")
    )


async def test_swarm_who_has_no_part_hands_on_without_a_word_and_is_not_counted_as_an_answer():
    kit = swarming(
        {"shop": ScriptedModel(over("rewards")), "rewards": ScriptedModel("You have 4,975 points.")}
    )
    reply = await ask(kit, "swarm")
    assert reply.text == "You have 4,975 points." and reply.routing.invoked == ("rewards",)
    assert [(o.agent, o.result) for o in reply.routing.outcomes] == [
        ("shop", "handed_on"),
        ("rewards", "success"),
    ]


async def test_swarm_goes_on_with_whoever_spoke_last():
    rewards = ScriptedModel("You have 4,975 points.", "And 75 more are pending.")
    kit = swarming({"shop": ScriptedModel(over("rewards")), "rewards": rewards})
    await ask(kit, "swarm", "check my points")
    reply = await ask(kit, "swarm", "and what is pending?")
    assert reply.routing.invoked == ("rewards",)
    assert [m.content for m in rewards.seen[1][1:-1]] == [
        "check my points",
        "You have 4,975 points.",
    ], "one conversation for all"


async def test_swarm_nobody_gets_the_conversation_back_and_the_cap_counts_hands():
    kit = swarming(
        {"a": ScriptedModel(over("b", "A is 111.")), "b": ScriptedModel(over("a", "B is 222."))}
    )
    reply = await ask(kit, "swarm")
    assert reply.text == "A is 111.\n\nB is 222."
    assert [body.guard for body in bodies(reply, GuardActed)] == ["no_return"]
    kit = swarming({"a": ScriptedModel(over("b", "A is 111.")), "b": ScriptedModel()}, cap=1)
    reply = await ask(kit, "swarm")
    assert (
        reply.text.startswith("A is 111.")
        and "left out b" in reply.text
        and reply.routing.cap_behavior == "over"
    )


async def test_swarm_own_tools_come_first_and_the_hand_over_waits_for_the_answer():
    both = Line(calls=[("points", {}), *over("rewards").calls])
    shop = ScriptedModel(both, "By my tool: 4,975.")
    kit = swarming(
        {"shop": shop, "rewards": ScriptedModel("Done.")}, {"points": lookup("points", "4,975")}
    )
    reply = await ask(kit, "swarm")
    assert reply.text == "By my tool: 4,975.\n\nDone."
    ids = [call["id"] for m in shop.seen[1] if m.type == "ai" for call in m.tool_calls]  # type: ignore[attr-defined]
    assert sorted(m.tool_call_id for m in shop.seen[1] if m.type == "tool") == sorted(ids), (  # type: ignore
        "every call id is answered"
    )
