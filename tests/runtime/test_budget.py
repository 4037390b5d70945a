"""Budgets are the runtime's: the tree of accounts adds up under any interleaving, and over budget is a typed result."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.compose.parts import DeckSettings
from kit.core.bodies.call import AgentEnded, ModelEnded, ToolEnded
from kit.core.bodies.guard import AccessDenied
from kit.core.card import AgentCard, Policy
from kit.core.context import DynamicContext, InheritedContext, Principal
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Answer, Failure, Outcome, Usage, total
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.budget import Ledger, OverBudget
from kit.runtime.call_model import call_model
from kit.runtime.clock import run_virtual
from kit.runtime.context import RunContext, SessionMemory, TurnState
from kit.runtime.dispatch import dispatch, fan_out
from kit.runtime.log import TurnLog
from kit.runtime.speech.progress import Progress
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, answering, asks, bodies, small_kit, stitched

PRICED = ModelSpec(key="priced", provider="offline", price_in=1000.0, price_out=1000.0)


class Node:
    """An agent that calls a model, asks others, and then answers, fails or hangs, as its seed says."""

    def __init__(self, name: str, subs: tuple[str, ...], rng: random.Random):
        self.card = AgentCard(id=name, description=name, model="offline", sub_agents=subs)
        self.time_budget = rng.choice([None, None, 0.5, 2.0])
        self.policy = Policy(
            tokens_out=rng.choice([None, None, 40]), max_tool_calls=rng.choice([None, 2])
        )
        self.wait, self.text = rng.choice([0, 0.1, 1.0]), "word " * rng.randint(0, 30)
        self.end = rng.choice(["answer", "raise", "cancel", "hang", "model fails"])
        model = ScriptedModel(
            lambda _: Line(self.text, pieces=self.text.split(" "), pace=self.wait / 10)
        )
        self.model = BoundModel(PRICED, model)

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        await call_model(self.model, [], ctx, agent=self.card.id, purpose="work")
        if self.card.sub_agents:
            calls = [
                AgentCall(call_id=f"{self.card.id}-{sub}", agent=sub, query="q")
                for sub in self.card.sub_agents
            ]
            await fan_out(calls, ctx)
        ctx.ledger.charge(Usage(tool_calls=1))
        match self.end:
            case "raise":
                raise RuntimeError("no")
            case "cancel":
                raise asyncio.CancelledError
            case "hang":
                await asyncio.sleep(60)
            case _:
                await call_model(self.model, [], ctx, agent=self.card.id, purpose="work")
        return Answer(call_id=call.call_id, agent=self.card.id, text="ok")


def tree(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(1, 7))]
    subs: dict[str, list[str]] = {name: [] for name in ["root", *names]}
    for i, name in enumerate(names):
        subs[rng.choice(["root", *names[:i]])].append(name)
    return {name: Node(name, tuple(below), rng) for name, below in subs.items()}


def context(agents: dict[str, Any], ledger: Ledger) -> RunContext:
    log = TurnLog("t", asyncio.get_running_loop().time)
    dynamic = DynamicContext(date="2026-11-01", user_id="alice", locale="en-GB")
    deck = DeckSettings(orchestrator="root", required_blocks=())
    state = TurnState(log, agents, dynamic, "p", deck, SessionMemory(), Progress(log, deck), cap=99)
    inherited = InheritedContext(
        principal=Principal(tenant_id="acme", user_id="alice"), episode_id="e", locale="en-GB"
    )
    return RunContext(
        state, inherited, ledger, log.new_span(), callees=frozenset(agents["root"].card.sub_agents)
    )


@pytest.mark.req("SO-2")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(0.0, 6.0), st.booleans(), st.sampled_from([None, 30, 100]))
def test_leaves_sum_to_the_root_under_any_interleaving(
    seed: int, stop: float, stops: bool, limit: int | None
):
    async def scenario() -> None:
        agents = tree(seed)
        root = Ledger("root")
        root.reserve(Policy(tokens_out=limit))
        ctx = context(agents, root)
        task = asyncio.ensure_future(
            fan_out([AgentCall(call_id=s, agent=s, query="q") for s in ctx.callees], ctx)
        )
        await asyncio.wait([task], timeout=stop if stops else None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        bodies = [event.body for event in ctx.turn.log.events]
        leaves = total([b.usage for b in bodies if isinstance(b, ModelEnded)])
        spent = root.settle()
        assert root.children == []
        assert (spent.input_tokens, spent.output_tokens, spent.model_calls) == (
            leaves.input_tokens,
            leaves.output_tokens,
            leaves.model_calls,
        )
        assert spent.cost == pytest.approx(leaves.cost)
        tops = [
            b.outcome.usage for b in bodies if isinstance(b, AgentEnded) and b.agent in ctx.callees
        ]
        assert total(tops).model_dump(exclude={"cost"}) == spent.model_dump(exclude={"cost"})
        assert root.settle() == spent

    run_virtual(scenario())


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
    first.settle()
    first.settle()
    assert root.room("input_tokens") == 50
    assert second.depth == 0


def bounded(
    policy: Policy,
    model: ScriptedModel,
    tools: dict[str, Any] | None = None,
    spec: ModelSpec | None = None,
) -> SmallKit:
    card = AgentCard(
        id="a", description="A.", model="offline", policy=policy, tools=tuple(tools or ())
    )
    kit = small_kit(
        [asks("a", "b"), stitched], {"a": model, "b": answering("B is here")}, tools, cards=[card]
    )
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
async def test_a_call_that_would_not_fit_the_tokens_in_is_never_made():
    model = answering("A")
    reply = await run_turn("x" * 400, ALICE, bounded(Policy(tokens_in=10), model))
    assert failed(reply).reason == "budget" and "tokens in" in failed(reply).detail
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


@pytest.mark.req("SO-2")
async def test_a_call_that_would_cost_more_than_is_left_is_never_made():
    model = answering("A")
    reply = await run_turn("one", ALICE, bounded(Policy(cost=0.01), model, spec=PRICED))
    assert (
        failed(reply).reason == "budget"
        and "cost" in failed(reply).detail
        and failed(reply).usage.cost is None
    )
    assert model.seen == [] and "B is here" in reply.text


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


@pytest.mark.req("SO-11")
async def test_a_tool_outside_the_whitelist_is_refused_and_counted():
    model = ScriptedModel(Line(calls=[("wipe", {})]), Line("I have no such tool."))
    reply = await run_turn("go", ALICE, bounded(Policy(), model))
    refused = [(body.agent, body.what, body.name) for body in bodies(reply, AccessDenied)]
    assert refused == [("a", "tool", "wipe")]
    assert [body.error for body in bodies(reply, ToolEnded)] == [
        "not_allowed: 'wipe' is not on the card"
    ]
