"""Two hundred misbehaving sub-agents against every budget: none exceeds it by more than the call in
flight, none raises."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from kit.core.bodies.call import ModelEnded
from kit.core.bodies.guard import AccessDenied
from kit.core.bodies.turn import Completed
from kit.core.card import AgentCard, Handoff, Policy
from kit.core.event import Event
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Answer, Failure, Outcome, Usage, total
from kit.models.scripted import Line, Script, ScriptedModel
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.context import RunContext
from kit.runtime.dispatch import dispatch
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, asks, small_kit, stitched

EACH = 17
"""Rogues of a kind; six kinds make 102."""
PRICED = ModelSpec(key="priced", provider="offline", price_in=10.0, price_out=10.0)
LOOSE: dict[str, Any] = {
    "time_budget_ms": 10_000,
    "tokens_in": 10**6,
    "tokens_out": 10**6,
    "max_tool_calls": 30,
    "cost": 1e3,
}
TIGHT: dict[str, dict[str, Any]] = {
    "time": {"time_budget_ms": 2_000},
    "in": {"tokens_in": 300},
    "out": {"tokens_out": 60},
    "tools": {"max_tool_calls": 3},
    "cost": {"cost": 0.003},
    "depth": {"max_recursion_depth": 0},
}
"""One agent for each budget, all alike otherwise."""
KINDS = {
    "tools": {"time timeout", "in budget", "tools budget", "cost budget", "depth budget"},
    "flood": {"out budget", "cost budget"},
    "drip": {"time timeout", "out budget"},
    "recursion": {"out budget", "cost budget"},
    "question": {"time low_confidence", "depth low_confidence"},
    "refusal": {"time refusal", "depth refusal"},
}
"""Kind of rogue -> how some of them must have ended, under which budget: the limits were reached."""


@tool
async def dig(deeper: str) -> str:
    """Digs."""
    await asyncio.sleep(0.05)
    return deeper * 3


class Refusing(ScriptedModel):
    """Declines in the way a provider says it."""

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, *args, **kwargs):
            chunk.message.additional_kwargs["refusal"] = "I can't help with that."
            yield chunk


def refusing(script: Script) -> ScriptedModel:
    return Refusing(script)  # pyright: ignore[reportCallIssue]


class Recursive:
    """Calls itself and the next agent, over and over, beside talking to its model."""

    def __init__(self, inner: LLMAgent):
        self.inner, self.card, self.time_budget, self.policy = (
            inner,
            inner.card,
            inner.time_budget,
            inner.policy,
        )

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        for number in range(3):
            for name in (self.card.id, *self.card.sub_agents):
                await dispatch(
                    AgentCall(call_id=f"{call.call_id}.{number}", agent=name, query="on"),
                    ctx,
                    f"{number}.1",
                )
            outcome = await self.inner.run(call, ctx)
            if isinstance(outcome, Failure):
                return outcome
        return Answer(call_id=call.call_id, agent=self.card.id, text="done")


def line_of(kind: str, rng: random.Random) -> Line:
    match kind:
        case "tools":
            return Line(
                "on",
                calls=[("dig", {"deeper": "x" * rng.randint(1, 50)})] * rng.randint(1, 4),
                delay=rng.random() / 2,
            )
        case "flood":
            pieces = ["flood " * rng.randint(1, 40)] * rng.randint(20, 200)
            return Line("".join(pieces), pieces=pieces)
        case "drip":
            return Line("drip " * 60, pieces=["drip "] * 60, pace=rng.uniform(0.1, 0.9))
        case "recursion":
            return Line("again " * 30, delay=rng.random() / 4)
        case "question":
            return Line("Which " + "one " * rng.randint(1, 200) + "do you mean?")
        case _:
            return Line("", delay=rng.random())


def rogues(kind: str, seed: int) -> SmallKit:
    """A kit with the same rogue under each of the tight budgets."""
    rng = random.Random(f"{kind} {seed}")

    def say(_: list[BaseMessage]) -> Line:
        return line_of(kind, rng)

    cards = [
        AgentCard(
            id=name,
            description=f"Rogue {name}.",
            model="offline",
            tools=("dig",),
            policy=Policy(**{**LOOSE, **tight}),
            handoff=Handoff(closed=True),
        )
        for name, tight in TIGHT.items()
    ]
    names = list(TIGHT)
    kit = small_kit(
        [asks(*names), stitched],
        {n: (refusing if kind == "refusal" else ScriptedModel)(say) for n in names},
        {"dig": dig},
        cards=cards,
        cap=len(names),
    )
    replaced: dict[str, Any] = {}
    for number, name in enumerate(names):
        agent = kit.team.agents[name]
        assert isinstance(agent, LLMAgent)
        agent = replace(agent, model=BoundModel(PRICED, agent.model.runnable))
        if kind == "recursion":
            agent = replace(
                agent, card=agent.card.model_copy(update={"sub_agents": (names[number - 1],)})
            )
        replaced[name] = Recursive(agent) if kind == "recursion" else agent
    kit.team = kit.team.with_agents(replaced)
    return kit


def calls_below(reply: Reply, agent: str) -> list[Usage]:
    """Usage of every model call under the top dispatch of an agent, in order."""
    parents = {span.id: span.parent_id for span in reply.trace.spans}
    top = next(
        s.id
        for s in reply.trace.spans
        if s.kind == "agent" and s.name == agent and s.parent_id == "s1"
    )

    def inside(event: Event) -> bool:
        span: str | None = event.span_id
        while span is not None and span != top:
            span = parents.get(span)
        return span == top

    return [e.body.usage for e in reply.events if isinstance(e.body, ModelEnded) and inside(e)]


@pytest.mark.req("SO-2", "SO-4", "SO-6")
@pytest.mark.parametrize("kind", KINDS)
async def test_no_rogue_exceeds_a_budget_by_more_than_the_call_in_flight_and_none_raises(
    kind: str,
) -> None:
    ended: set[str] = set()
    for seed in range(EACH):
        kit = rogues(kind, seed)
        reply = await run_turn("go", ALICE, kit)
        end = reply.events[-1].body
        assert isinstance(end, Completed) and end.error is None, (seed, kind, end)
        answered = [outcome for outcome in reply.outcomes if isinstance(outcome, Answer)]
        assert reply.status == ("ok" if answered else "failed"), (seed, kind, end)
        by = {outcome.agent: outcome for outcome in reply.outcomes}
        assert set(by) == set(TIGHT)
        for name, outcome in by.items():
            limits = Policy(**{**LOOSE, **TIGHT[name]})
            before = total(calls_below(reply, name)[:-1])
            where = (seed, kind, name, outcome)
            assert (
                outcome.timing
                and outcome.timing.seconds <= (limits.time_budget_ms or 0) / 1000 + 1e-9
            ), where
            assert before.input_tokens <= (limits.tokens_in or 0), where
            assert before.output_tokens <= (limits.tokens_out or 0), where
            assert outcome.usage.tool_calls <= (limits.max_tool_calls or 0), where
            assert (before.cost or 0) <= (limits.cost or 0) + 1e-12, where
            assert (
                kind == "recursion" or isinstance(outcome, Failure) or kind in ("flood", "drip")
            ), where
            if isinstance(outcome, Failure):
                ended.add(f"{name} {outcome.reason}")
        refused = {
            (e.body.agent, e.body.because) for e in reply.events if isinstance(e.body, AccessDenied)
        }
        assert kind != "recursion" or {("time", "recursion"), ("depth", "depth")} <= refused
        assert total(o.usage for o in reply.outcomes).tool_calls == reply.usage.tool_calls
    assert KINDS[kind] <= ended
