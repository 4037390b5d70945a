"""How long a turn takes when its sub-agents run side by side, and when each waits for the one before.

The sub-agents are simulated: their models answer after a known time and do nothing else. The turns are real ones.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage

from kit.bench.routing import RoutingKit
from kit.core.outcome import AgentCall, Answer, FanOut, Outcome
from kit.core.trace import Trace
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.agents_as_tools import MEDIATED
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.answer.acknowledge import settle
from kit.runtime.clock import run_virtual
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.pattern import Pattern
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from studies.charts import fan_seconds
from studies.study_deck import ORCHESTRATOR, plain_cards, study_deck, study_session

Seconds = Mapping[str, float]
"""Agent id -> how long its model takes to answer."""
Clock = Literal["measured", "exact"]

ALIKE: Seconds = dict.fromkeys(
    (
        "shop",
        "rewards",
        "ereceipts",
        "support",
        "play",
        "restaurants",
        "offer_details",
        "retailer_context",
    ),
    0.2,
)
MIXED: Seconds = dict(zip(ALIKE, (0.18, 0.08, 0.25, 0.4, 0.06, 0.22, 0.12, 0.1), strict=True))
RUNS = 6
"""The range of six runs holds the true median 97 times in 100 (1 - 2 / 2**6), whatever the distribution."""


class Run(NamedTuple):
    """One turn, timed; a list of them is a tidy frame."""

    way: str
    """Name of the pattern."""
    clock: Clock
    n: int
    """Sub-agents asked."""
    run: int
    seconds: float
    """From the first sub-agent's start to the last one's end."""


def slow_models(seconds: Seconds, think: float = 0.0) -> dict[str, str | BaseChatModel]:
    """Returns a model for each sub-agent that answers after its seconds, and an orchestrator's that asks them all.

    `think`: seconds the orchestrator takes to decide, and again to compose.
    """
    asks = [
        (f"ask_{name}", {"query": f"everything about {name}", "intent_count": len(seconds)})
        for name in seconds
    ]

    def lead(messages: list[BaseMessage]) -> Line:
        if not isinstance(messages[-1], ToolMessage):
            return Line("Let me ask around.", calls=asks, delay=think)
        successes = sum(
            isinstance(message, ToolMessage) and message.status == "success" for message in messages
        )
        return Line(f"{successes} of {len(seconds)} parts are answered.", delay=think)

    return {
        ORCHESTRATOR: ScriptedModel(lead),
        **{name: _slow(name, delay) for name, delay in seconds.items()},
    }


async def ask_one_by_one(call: AgentCall, ctx: RunContext) -> Outcome:
    """Plays the baseline: each sub-agent is asked only when the one before it has answered."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = lead.open(call, ctx)
    decision = await lead.decide(thread, call, ctx)
    fans = [await fan_out([ask], ctx) for ask in decision.asks]
    fan = FanOut(
        outcomes=tuple(outcome for fan in fans for outcome in fan.outcomes),
        dropped=tuple(ask for fan in fans for ask in fan.dropped),
        cap=ctx.turn.cap,
    )
    thread += await lead.tool_messages(decision, fan, ctx)
    composition = await lead.compose(thread, call, ctx, live=fan.clean, news=len(decision.asks))
    return Answer(call_id=call.call_id, agent=call.agent, text=settle(composition.text, ctx))


ONE_BY_ONE = Pattern("one_by_one", ask_one_by_one)


async def trace_one(seconds: Seconds, pattern: Pattern = MEDIATED, think: float = 0.0) -> Trace:
    """Plays one turn that asks everybody, on the running loop; it is stored nowhere."""
    kit = RoutingKit(bind(study_deck(plain_cards(seconds)), slow_models(seconds, think), {}))
    try:
        return (await run_turn("Everything, please.", study_session("fan-out"), kit, pattern)).trace
    finally:
        kit.store.close()


async def play_measured(
    seconds: Seconds = ALIKE,
    pattern: Pattern = MEDIATED,
    sizes: Sequence[int] = range(1, 9),
    runs: int = RUNS,
) -> list[Run]:
    """Plays turns in real time that ask the first n sub-agents, for every n of `sizes`.

    Sizes take turns within a run, so that a busy moment of the machine hits all of them alike.
    """
    await _time(
        dict.fromkeys(seconds, 0.0), pattern
    )  # the first turn of a process pays for imports
    return await _sweep(seconds, pattern, sizes, runs, "measured")


async def play_exact(
    seconds: Seconds = ALIKE, pattern: Pattern = MEDIATED, sizes: Sequence[int] = range(1, 9)
) -> list[Run]:
    """Plays the same turns in virtual time, where only waiting counts: equal on every machine, and over at once.

    The virtual loop runs in a thread of its own, so this can be awaited from any loop.
    """
    return await asyncio.to_thread(run_virtual, _sweep(seconds, pattern, sizes, 1, "exact"))


async def _sweep(
    seconds: Seconds, pattern: Pattern, sizes: Sequence[int], runs: int, clock: Clock
) -> list[Run]:
    return [
        Run(pattern.name, clock, n, run, await _time(dict(islice(seconds.items(), n)), pattern))
        for run in range(runs)
        for n in sizes
    ]


async def _time(seconds: Seconds, pattern: Pattern) -> float:
    return fan_seconds(await trace_one(seconds, pattern))


def _slow(name: str, delay: float) -> ScriptedModel:
    return ScriptedModel(lambda _: Line(f"The part of {name}.", delay=delay))
