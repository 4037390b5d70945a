"""One task as a deterministic function and as a sub-agent: how much longer it takes and how many
more tokens.

The task is the discovery deck's: titles for a wish. As a function it is the tool that looks into
the catalogue; as a sub-agent it is the explainer, which calls that tool and words what it found.
Prompts, schemas, contract and dispatch are the real ones. The models are simulated after published
means, and the tool takes a fixed time, which is an assumption.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from statistics import NormalDist
from typing import Any, NamedTuple

from kit.bench.grid.stand_ins.simulated_tools import simulate
from kit.bench.routing import RoutingKit
from kit.compose.deck import Deck, load_deck
from kit.core.card import Policy
from kit.core.outcome import AgentCall, Usage
from kit.core.simulation import Law, Part, Truth
from kit.home import HOME
from kit.metrics.estimate import Estimate
from kit.models.simulated import use_truth
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.call_tool import call_tool
from kit.runtime.clock import run_virtual
from kit.runtime.dispatch import dispatch
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.worlds.manga.tools import toolbox
from studies.study_deck import direct_context, study_session
from studies.study_statistics import ratio

WISH = "recommend me a dark fantasy that is new"
AGENT, TOOL = "explainer", "catalog-search"
UNHURRIED = Policy(time_budget_ms=600_000)
"""A time-out would cut off what is measured."""
RULE = 0.3
"""Seconds. The source asks no sub-agent where an answer is due sooner: a model call takes longer."""
PUBLISHED = {"dollars": (5.0, 15.0), "seconds": (3.0, 8.0)}
"""The source's ratios of a sub-agent to a deterministic skill; it names neither task, nor model, nor sample."""


class Pair(NamedTuple):
    """One wish answered both ways; a list of them is a tidy frame. Seconds are virtual: only waiting counts."""

    model: str
    case: int
    function: float
    """Seconds of the function by itself."""
    agent: float
    """Seconds of the sub-agent's whole call, the function in it included."""
    agent_tokens: int
    """Read and written in that call; the function by itself has none."""
    turn_function: float
    """Seconds of a whole turn in which the orchestrator holds the function as a tool of its own."""
    turn_agent: float
    """Seconds of a whole turn in which it asks the sub-agent."""
    tokens_function: int
    """Of those turns."""
    tokens_agent: int


async def play_pairs(model: str, count: int = 60) -> list[Pair]:
    """Plays `count` wishes both ways with one simulated model for everybody, in virtual time."""
    return await asyncio.to_thread(run_virtual, _play_pairs(model, count))


def cost_ratio(
    rows: Sequence[Pair], over: Callable[[Pair], float], under: Callable[[Pair], float]
) -> Estimate:
    """Returns how many times as much the one is as the other, over the same wishes."""
    return ratio([over(row) for row in rows], [under(row) for row in rows])


def implied_seconds(rows: Sequence[Pair]) -> tuple[float, float]:
    """Returns the seconds a function would have to take for the source's ratios of time to hold for
    this sub-agent: from, to."""
    model_seconds = sum(row.agent - row.function for row in rows) / len(rows)
    low, high = PUBLISHED["seconds"]
    return model_seconds / (high - 1), model_seconds / (low - 1)


def chance_within(law: Law, seconds: float) -> float:
    """Returns the chance that a single model call by this law takes no longer."""
    return NormalDist().cdf(log(seconds / law.latency.median) / law.latency.sigma)


async def _play_pairs(model: str, count: int) -> list[Pair]:
    deck = load_deck(HOME / "cards" / "manga")
    decks = (_with_lead(deck, tools=(TOOL,)), _with_lead(deck, sub_agents=(AGENT,)))
    nowhere: Any = None
    kits = [RoutingKit(bind(one, model, simulate(toolbox(nowhere), deck))) for one in decks]
    try:
        return [await _pair(model, case, *kits) for case in range(count)]
    finally:
        for kit in kits:
            kit.store.close()


async def _pair(model: str, case: int, holding: RoutingKit, asking: RoutingKit) -> Pair:
    explainer, session = asking.team.agents[AGENT], study_session(f"skill-{case}")
    assert isinstance(explainer, LLMAgent)
    ctx = direct_context(asking.team, [AGENT])
    with use_truth(Truth(case=f"skill/{case}", parts=(Part(agent=AGENT, query=WISH, tool=TOOL),))):
        began = ctx.turn.log.now()
        await call_tool(
            {"name": TOOL, "args": {}, "id": "f", "type": "tool_call"}, explainer.tools, AGENT, ctx
        )
        function = ctx.turn.log.now() - began
        outcome = await dispatch(AgentCall(call_id="a", agent=AGENT, query=WISH), ctx)
        by_function, by_agent = [await run_turn(WISH, session, kit) for kit in (holding, asking)]
    assert outcome.kind == "answer" and outcome.timing is not None, outcome
    return Pair(
        model=model,
        case=case,
        function=function,
        agent=outcome.timing.ended - outcome.timing.started,
        agent_tokens=_tokens(outcome.usage),
        turn_function=by_function.events[-1].at,
        turn_agent=by_agent.events[-1].at,
        tokens_function=_tokens(by_function.usage),
        tokens_agent=_tokens(by_agent.usage),
    )


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _with_lead(deck: Deck, **fields: tuple[str, ...]) -> Deck:
    """Returns the deck whose orchestrator has nothing but these tools or sub-agents, and with time
    for everybody to finish."""
    cards = {
        name: card.model_copy(update={"policy": UNHURRIED}) for name, card in deck.cards.items()
    }
    lead = deck.settings.orchestrator
    cards[lead] = cards[lead].model_copy(update={"sub_agents": (), **fields})
    settings = deck.settings.model_copy(update={"turn_budget_ms": UNHURRIED.time_budget_ms})
    return replace(deck, cards=cards, settings=settings)
