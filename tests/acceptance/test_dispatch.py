"""The dispatch contract: discovery at bind, one loop for one or many intents, the cap, the deadlines."""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from kit.core.bodies.call import AgentEnded, ModelStarted
from kit.core.bodies.guard import AccessDenied, CallDropped
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import OPERATOR
from kit.core.outcome import AgentCall, Outcome
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import PATTERNS
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.context import RunContext
from kit.runtime.dispatch import dispatch
from kit.runtime.pattern import Pattern
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.wire import open_kit
from tests.kits import ALICE, SmallKit, answering, asks, bodies, failing, small_kit, stitched


def lead(kit: SmallKit) -> ScriptedModel:
    bound = kit.team.orchestrator.model.runnable
    model = getattr(bound, "bound", bound)
    assert isinstance(model, ScriptedModel)
    return model


def tools_seen(kit: SmallKit) -> list[dict[str, Any]]:
    return [tool["function"] for tool in kit.team.orchestrator.model.runnable.kwargs["tools"]]  # type: ignore[attr-defined]


@pytest.mark.req("PC2-AC-1", "PC2-FR-1", "PC2-FR-2", "PC1-FR-4", "PC2-S9.1-1", "SAT-16")
def test_orchestrator_sees_one_ask_tool_per_sub_agent_with_the_cards_description_and_fields():
    field = HandoffField(type="string", description="Topic", enum=("a", "b"), max_length=299)
    handoff = Handoff(fields={"support_category": field})
    card = AgentCard(id="support", description="Helps.", model="offline", handoff=handoff)
    models = {name: answering(name) for name in ("shop", "rewards", "support")}
    tools = {tool["name"]: tool for tool in tools_seen(small_kit([], models, cards=[card]))}
    assert {name: tool["description"] for name, tool in tools.items()} == {
        "ask_shop": "Answers questions about shop.",
        "ask_rewards": "Answers questions about rewards.",
        "ask_support": "Helps.",
    }
    asked = ["query", "intent_count", "prior_context"]
    assert list(tools["ask_shop"]["parameters"]["properties"]) == asked
    schema = tools["ask_support"]["parameters"]
    assert list(schema["properties"]) == [*asked, "support_category"]
    assert schema["required"] == ["query", "intent_count"]
    assert schema["properties"]["support_category"]["enum"] == ["a", "b"]


@pytest.mark.req("PC2-FR-2")
@pytest.mark.parametrize("pattern", ["mediated", "classifier_gateway", "monolith"])
async def test_the_requests_of_a_card_are_sent_to_no_model(pattern: str):
    """They are there for the stand-in; a provider's model routes by the descriptions alone."""
    model = ScriptedModel(lambda _: "I cannot help with that.")
    async with open_kit(Settings(store=":memory:", pace=0.0), models=model) as kit:
        await kit.ask("how many points do I have", kit.session("s"), pattern=pattern)
        team = kit.stages.team(PATTERNS[pattern])
    sent = f"{model.seen} {[prompt.text for prompt in team.prompts]}"
    for agent in team.agents.values():
        if isinstance(agent, LLMAgent):
            bound: Any = agent.model.runnable
            sent += str(getattr(bound, "kwargs", ""))
    for card in team.deck.cards.values():
        for request in card.requests:
            # A description may name some of what its card lists.
            assert request in card.description or len(request) < 20 or request not in sent, request


@pytest.mark.req("PC2-AC-2", "PC2-FR-3", "PC2-FR-4", "PC1-FR-3", "PC1-S9.2-2", "PC2-S9.2-1")
async def test_single_intent_is_one_call_one_agent_one_result_one_composition():
    kit = small_kit(
        [asks("shop"), Line("Composed by the orchestrator.")],
        {"shop": answering("raw words of shop")},
    )
    reply = await run_turn("find coffee", ALICE, kit)
    models = bodies(reply, ModelStarted)
    assert [(m.agent, m.purpose) for m in models] == [
        ("orchestrator", "decide"),
        ("shop", "work"),
        ("orchestrator", "compose"),
    ]
    tree = [(depth, span.kind, span.agent) for depth, span in reply.trace.rows()]
    assert tree == [
        (0, "turn", ""),
        (1, "model", "orchestrator"),
        (1, "agent", "shop"),
        (2, "model", "shop"),
        (1, "model", "orchestrator"),
    ]
    results = [m for m in lead(kit).seen[1] if isinstance(m, ToolMessage)]
    assert [m.content for m in results] == ["raw words of shop"]
    assert reply.text == "Composed by the orchestrator."
    said = [e.body.text for e in reply.events if e.body.kind == "text"]
    assert "raw words of shop" not in " ".join(said)


@pytest.mark.req("PC2-AC-3", "PC2-FR-6", "PC2-NFR-2", "PC1-S9.2-3", "PC2-S9.2-2")
async def test_two_intents_overlap_and_the_turn_waits_for_the_slowest_only():
    models = {"shop": answering("A", 0.2), "rewards": answering("B", 3.0)}
    lead = [asks("shop", "rewards"), Line("A and B.", delay=0.7)]
    reply = await run_turn("coffee and points", ALICE, small_kit(lead, models))
    shop, rewards = (o.timing for o in reply.outcomes)
    assert shop and rewards and shop.started == rewards.started
    assert rewards.ended == pytest.approx(3.0, abs=1e-9)
    assert reply.events[-1].at == pytest.approx(3.0 + 0.7, abs=1e-9), "and then the composition"
    assert reply.text == "A and B."


@pytest.mark.req("PC2-AC-4", "PC2-FR-7", "PC2-S5.4a", "PC2-S9.1-7", "PC2-S9.5-6")
async def test_over_cap_call_never_runs_and_is_recorded():
    models = {i: answering(f"text {i}") for i in ("a", "b", "c")}
    kit = small_kit([asks("a", "b", "c"), stitched], models, cap=2)
    reply = await run_turn("three things", ALICE, kit)
    assert reply.routing.invoked == ("a", "b")
    assert models["c"].seen == []
    dropped = bodies(reply, CallDropped)
    assert [(d.agent, d.reason) for d in dropped] == [("c", "over_cap")]
    assert reply.routing.cap_behavior == "over"
    assert reply.routing.intent_count == 3
    assert reply.routing.dropped == ("c",)
    assert [span.name for span in reply.trace.spans if span.kind == "agent"] == ["a", "b"]
    kept = kit.store.turn(reply.turn_id, OPERATOR)
    assert reply.trace.routing == reply.routing and kept is not None and kept.cap_behavior == "over"


@pytest.mark.req("PC2-S10.2")
@pytest.mark.parametrize("reported", [9, 10**9])
async def test_a_model_that_reports_more_than_a_message_holds_is_over_no_cap(reported: int):
    asked = [("a", "how many points do I have"), ("b", "find coffee deals")]
    calls = [(f"ask_{agent}", {"query": query, "intent_count": reported}) for agent, query in asked]
    models = {"a": answering("A."), "b": answering("B.")}
    kit = small_kit([Line(calls=calls), stitched, stitched], models, cap=4)
    reply = await run_turn("how many points do I have and find coffee deals", ALICE, kit)
    assert (reply.routing.cap_behavior, reply.routing.reported_intents) == ("within", reported)


async def test_every_tool_call_id_gets_exactly_one_tool_message():
    models = {"a": answering("fine"), "b": failing(ValueError("boom")), "c": answering("never")}
    kit = small_kit([asks("a", "b", "c", "ghost"), stitched], models, cap=2)
    await run_turn("four things", ALICE, kit)
    last = lead(kit).seen[1]
    calls = next(m for m in last if m.type == "ai" and m.tool_calls)  # type: ignore[attr-defined]
    ids = [call["id"] for call in calls.tool_calls]  # type: ignore[attr-defined]
    assert [m.tool_call_id for m in last if isinstance(m, ToolMessage)] == ids
    assert "boom" not in str(last), "of a failure its model reads no raw word"


@pytest.mark.req("PC2-FR-1")
async def test_an_agent_that_is_bound_but_not_on_the_callers_card_is_refused_and_the_refusal_is_counted():
    async def reaching(call: AgentCall, ctx: RunContext) -> Outcome:
        below = ctx._replace(callees=frozenset({"shop"}))
        return await dispatch(AgentCall(call_id="c", agent="rewards", query="q"), below)

    rewards = answering("4,975 points")
    kit = small_kit([], {"shop": answering("Deals."), "rewards": rewards})
    reply = await run_turn("points", ALICE, kit, Pattern("reaching", reaching))
    refused = [(body.what, body.name, body.because) for body in bodies(reply, AccessDenied)]
    assert refused == [("agent", "rewards", "not_on_card")] and rewards.seen == []
    assert [getattr(body.outcome, "reason", None) for body in bodies(reply, AgentEnded)] == [
        "not_allowed"
    ]


@pytest.mark.req("PC2-AC-10", "PC2-FR-15")
@pytest.mark.parametrize("message", ["find coffee and points", ""])
async def test_every_turn_carries_one_routing_decision(message: str):
    models = {"a": answering("A"), "b": failing(ValueError("x"))}
    kit = small_kit([asks("a", "b", intents=3), stitched], models)
    reply = await run_turn(message, ALICE, kit)
    decisions = [e.body.decision for e in reply.events if e.body.kind == "routing"]
    assert decisions == [reply.routing]
    if message:
        assert reply.routing.invoked == ("a", "b")
        assert (
            reply.routing.intent_count,
            reply.routing.reported_intents,
            reply.routing.cap_behavior,
        ) == (2, 3, "within")
        assert [(o.agent, o.result) for o in reply.routing.outcomes] == [
            ("a", "success"),
            ("b", "failure"),
        ]


async def test_as_many_run_as_the_cap_allows_however_many_one_reply_asks_for():
    """More calls of one agent than any message has parts are a loop of the model's; of as many agents they are not."""
    models = {f"desk{number}": answering(f"Desk {number} is open.") for number in range(70)}
    reply = await run_turn("all desks", ALICE, small_kit([asks(*models), stitched], models, cap=70))
    assert len(reply.outcomes) == 70
    capped = await run_turn("all desks", ALICE, small_kit([asks(*models), stitched], models))
    assert len(capped.outcomes) == 4 and "Desk 0 is open." in capped.text
    same = [asks(*["desk0"] * 70), stitched]
    looping = await run_turn("all desks", ALICE, small_kit(same, models))
    assert looping.outcomes == ()
