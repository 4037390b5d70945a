"""Budgets are the runtime's: the tree of accounts adds up under any interleaving, and over budget is a typed result."""

from dataclasses import replace

import pytest

from kit.core.bodies.guard import AccessDenied
from kit.core.card import AgentCard, Policy
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Answer, Failure, Outcome, Usage
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.budget import Ledger, OverBudget
from kit.runtime.context import RunContext
from kit.runtime.dispatch import dispatch
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, answering, asks, bodies, small_kit, stitched

PRICED = ModelSpec(key="priced", provider="offline", price_in=1000.0, price_out=1000.0)


def test_a_reservation_keeps_siblings_from_spending_the_same_token_and_comes_back():
    root = Ledger("root")
    root.reserve(Policy(tokens_in=100, max_recursion_depth=1))
    first, second, third = (Ledger(name, root) for name in "abc")
    first.reserve(Policy(tokens_in=70))
    second.reserve(Policy(tokens_in=70))
    assert (first.room("input_tokens"), second.room("input_tokens")) == (70, 30)
    with pytest.raises(OverBudget, match="nothing is left"):
        third.reserve(Policy(tokens_in=1))
    first.charge(Usage(input_tokens=20))
    assert first.settle() == first.settle() == Usage(input_tokens=20)
    first.charge(Usage(tool_calls=1))
    assert root.settle() == Usage(input_tokens=20, tool_calls=1), "of what was closed too"
    assert root.room("input_tokens") == 50
    assert second.depth == 0


def bounded(policy: Policy, model: ScriptedModel, spec: ModelSpec | None = None) -> SmallKit:
    card = AgentCard(id="a", description="A.", model="offline", policy=policy)
    models = {"a": model, "b": answering("B is here")}
    kit = small_kit([asks("a", "b"), stitched], models, cards=[card])
    agent = kit.team.agents["a"]
    assert isinstance(agent, LLMAgent)
    if spec:
        kit.team = kit.team.with_agents(
            {"a": replace(agent, model=BoundModel(spec, agent.model.runnable))}
        )
    return kit


def failed(reply: Reply) -> Failure:
    [outcome] = [o for o in reply.outcomes if o.agent == "a"]
    assert isinstance(outcome, Failure)
    return outcome


@pytest.mark.req("SO-2", "SO-4")
@pytest.mark.parametrize(
    ("policy", "said"),
    [(Policy(tokens_in=10), "tokens in"), (Policy(cost=0.01), "cost")],
    ids=["tokens", "dollars"],
)
async def test_a_call_that_would_not_fit_is_never_made(policy: Policy, said: str):
    model = answering("A")
    reply = await run_turn("x" * 400, ALICE, bounded(policy, model, spec=PRICED))
    assert failed(reply).reason == "budget" and said in failed(reply).detail
    assert model.seen == [] and "B is here" in reply.text


@pytest.mark.req("SO-2")
async def test_a_reply_that_outgrows_the_tokens_out_is_stopped_where_it_is():
    model = ScriptedModel(lambda _: Line("x", pieces=["12345678"] * 1000, pace=0.01))
    reply = await run_turn("one", ALICE, bounded(Policy(tokens_out=20), model))
    assert failed(reply).reason == "budget"
    assert 20 <= failed(reply).usage.output_tokens <= 22 and failed(reply).usage.estimated
    assert failed(reply).timing and failed(reply).timing.seconds < 0.2  # type: ignore[union-attr]


@pytest.mark.req("SO-2")
async def test_what_a_call_cost_ends_the_agent_when_it_was_too_much():
    reply = await run_turn(
        "one", ALICE, bounded(Policy(cost=0.02), answering("x" * 200), spec=PRICED)
    )
    assert failed(reply).reason == "budget" and "cost" in failed(reply).detail
    assert reply.usage.cost == failed(reply).usage.cost


@pytest.mark.req("SO-6")
async def test_an_agent_may_not_call_itself_or_its_callers_and_the_refusal_is_counted():
    class Loop:
        card = AgentCard(
            id="loop", description="Calls on.", model="offline", sub_agents=("loop", "orchestrator")
        )
        time_budget = None

        async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
            again = [
                await dispatch(AgentCall(call_id=n, agent=n, query="q"), ctx)
                for n in ("loop", "orchestrator")
            ]
            return Answer(
                call_id=call.call_id,
                agent="loop",
                text=", ".join(o.reason for o in again if isinstance(o, Failure)),
            )

    kit = small_kit([asks("loop"), stitched], {"loop": answering("")})
    kit.team = kit.team.with_agents({"loop": Loop()})
    reply = await run_turn("go", ALICE, kit)
    [outcome] = reply.outcomes
    assert isinstance(outcome, Answer) and outcome.text == "not_allowed, not_allowed"
    refused = [(body.agent, body.name, body.because) for body in bodies(reply, AccessDenied)]
    assert refused == [("loop", "loop", "recursion"), ("loop", "orchestrator", "recursion")]


@pytest.mark.req("SO-2")
@pytest.mark.parametrize(("depth", "text"), [(0, "budget"), (1, "answer")])
async def test_depth_is_a_budget(depth: int, text: str):
    class Boss:
        card = AgentCard(
            id="boss",
            description="d",
            model="offline",
            sub_agents=("a",),
            policy=Policy(max_recursion_depth=depth),
        )
        time_budget = None

        async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
            below = await dispatch(AgentCall(call_id="x", agent="a", query="q"), ctx)
            said = below.reason if isinstance(below, Failure) else "answer"
            return Answer(call_id=call.call_id, agent="boss", text=said)

    kit = small_kit([asks("boss"), stitched], {"boss": answering(""), "a": answering("A")})
    kit.team = kit.team.with_agents({"boss": Boss()})
    assert (await run_turn("go", ALICE, kit)).text == text
