"""Which cap: what a limit on sub-agents a message costs in parts left out, and what it saves in time and tokens.

Models are simulated; the turns, the cap, the refusal of what is over it and the reply's words for it are the real ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean, variance
from typing import Any, NamedTuple

from kit.bench.case import read_cases
from kit.bench.grid.stand_ins.simulated_tools import simulate
from kit.bench.routing import RoutingKit
from kit.compose.deck import load_deck
from kit.core.context import Principal, Session
from kit.core.simulation import Law, Part, Truth
from kit.home import HOME
from kit.metrics.estimate import Estimate, normal_reach
from kit.models.simulated import SimulatedModel, use_truth
from kit.runtime.clock import run_virtual
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.tools.feedback import FEEDBACK, feedback_tool
from kit.worlds.consumer.tools import toolbox


class CappedTurn(NamedTuple):
    """One turn; a list of them is a tidy frame."""

    parts: int
    """Sub-agents the message is for."""
    cap: int
    message: int
    """Place among the messages of so many parts: the same for every cap."""
    seconds: float
    """Until the last word, virtual."""
    coverage: float
    """Share of the parts that were answered."""
    input_tokens: int
    output_tokens: int
    """Of all models of the turn."""


def play_caps(
    law: Law, messages: int = 16, sizes: Iterable[int] = range(1, 9), seed: int = 7
) -> list[CappedTurn]:
    """Plays turns of every size at every cap from 1 to 8, in virtual time; blocks, so call it in a
    thread where a loop runs.

    A message of several parts is as many single cases of data/cases, joined. A cap that leaves
    nothing out is played once: the draws of a message are those of its name, whatever the cap.
    """
    deck = load_deck(HOME / "cards" / "consumer")
    subs = deck.active_sub_agents(deck.cards[deck.settings.orchestrator])
    asks: dict[str, list[str]] = {card.id: [] for card in subs}
    for case in read_cases(HOME / "data" / "cases" / "single.jsonl"):
        if len(case.turns) == 1 and len(case.turns[0].expected) == 1:
            asks[case.turns[0].expected[0]].append(case.turns[0].user)
    nowhere: Any = None
    tools = simulate({**toolbox(nowhere, nowhere), FEEDBACK: feedback_tool(FEEDBACK, None)}, deck)
    kit = RoutingKit(bind(deck, SimulatedModel(name="simulated", law=law, seed=seed), tools))
    first_tools = {card.id: card.tools[0] for card in subs if card.tools}

    async def play() -> list[CappedTurn]:
        turns: list[CappedTurn] = []
        for parts, message in product(sizes, range(messages)):
            agents = [list(asks)[(message + place) % len(asks)] for place in range(parts)]
            requests = tuple(
                Part(agent=a, query=asks[a][message % len(asks[a])], tool=first_tools.get(a))
                for a in agents
            )
            at_cap = {cap: await _one(kit, requests, cap, message) for cap in range(1, parts + 1)}
            turns += [at_cap[min(cap, parts)]._replace(cap=cap) for cap in range(1, len(asks) + 1)]
        kit.store.close()
        return turns

    return run_virtual(play())


async def _one(kit: RoutingKit, parts: Sequence[Part], cap: int, message: int) -> CappedTurn:
    text = " Also, ".join(part.query for part in parts)
    session = Session(
        id=f"{len(parts)}-{message}-{cap}", principal=Principal(tenant_id="acme", user_id="u-001")
    )
    with use_truth(Truth(case=f"{len(parts)} parts, message {message}", parts=tuple(parts))):
        turn = run_turn(text, session, kit, cap=cap, history=(), in_play=())
    reply = await turn
    answering = {outcome.agent for outcome in reply.outcomes if outcome.kind == "answer"}
    coverage = sum(part.agent in answering for part in parts) / len(parts)
    usage = reply.usage
    return CappedTurn(
        len(parts),
        cap,
        message,
        reply.events[-1].at,
        coverage,
        usage.input_tokens,
        usage.output_tokens,
    )


class CapSummary(NamedTuple):
    """One cap over a traffic of messages of all sizes; means with their 95 % intervals."""

    cap: int
    coverage: Estimate
    """Share of all parts asked for that were answered."""
    seconds: Estimate
    tokens: Estimate
    """Of a message."""
    left_out: float
    """Share of messages that ask for more than the cap."""


def stratified(values: Mapping[int, Sequence[float]], shares: Mapping[int, float]) -> Estimate:
    """A mean over strata that are not sampled as they occur; `shares` sum to 1. Normal law (Cochran
    1977, section 5.3)."""
    middle = sum(share * fmean(values[name]) for name, share in shares.items())
    spread = sum(
        share**2 * variance(values[name]) / len(values[name]) for name, share in shares.items()
    )
    half, n = normal_reach() * spread**0.5, sum(len(values[name]) for name in shares)
    return Estimate(
        value=middle, low=middle - half, high=middle + half, n=n, basis=f"mean of {n} items"
    )


def mean_at(
    runs: Sequence[CappedTurn],
    cap: int,
    measure: Callable[[CappedTurn], float],
    weights: Mapping[int, float],
) -> Estimate:
    """The mean of a measure at one cap over a traffic, given as size -> share of messages (any sum)."""
    whole = sum(weights.values())
    strata = {
        size: [measure(run) for run in runs if (run.cap, run.parts) == (cap, size)]
        for size in weights
    }
    return stratified(strata, {size: weight / whole for size, weight in weights.items()})


def compare_caps(runs: Sequence[CappedTurn], traffic: Mapping[int, float]) -> list[CapSummary]:
    """Returns what every cap means for a traffic, given as size -> share of messages (any sum)."""
    of_parts = {size: size * share for size, share in traffic.items()}
    summaries: list[CapSummary] = []
    for cap in sorted({run.cap for run in runs}):
        coverage = mean_at(runs, cap, lambda run: run.coverage, of_parts)
        summaries.append(
            CapSummary(
                cap=cap,
                coverage=coverage.model_copy(update={"high": min(1.0, coverage.high)}),
                seconds=mean_at(runs, cap, lambda run: run.seconds, traffic),
                tokens=mean_at(
                    runs, cap, lambda run: float(run.input_tokens + run.output_tokens), traffic
                ),
                left_out=sum(share for size, share in traffic.items() if size > cap)
                / sum(traffic.values()),
            )
        )
    return summaries
