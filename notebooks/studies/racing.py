"""Race against delegate: what it costs to let two agents answer and take the faster one.

Models are simulated by laws; the turns, the race, its cancelled loser and what that had spent are the real ones.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kit.bench.routing import RoutingKit
from kit.compose.deck import Deck, DeckSettings
from kit.compose.topology import Topology
from kit.core.card import AgentCard
from kit.core.simulation import Law, LogNormal, Part, Truth
from kit.core.value import Value
from kit.metrics.estimate import Estimate
from kit.models.simulated import SimulatedModel, use_truth
from kit.patterns.topology import with_topologies
from kit.runtime.clock import run_virtual
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from studies.study_deck import study_session
from studies.study_statistics import mean, quantile

AGENT, TWIN = "explainer", "quick"


class PricedModel(Value):
    """A simulated model and its assumed prices, in dollars per million tokens."""

    law: Law
    price_in: float
    price_out: float


class RacingTurn(NamedTuple):
    """One turn; a list of them is a tidy frame."""

    way: str
    message: int
    seconds: float
    """Of the call of the sub-agent, until its answer was there."""
    calls: int
    """Model calls of the sub-agents, stopped ones too."""
    dollars: float
    """Of these calls, at the assumed prices; a stopped one is billed for what it had written by
    then, as the kit counts it."""
    most: float
    """The same if a provider bills a stopped call as if it had come to its end."""


SIMULATED = {
    "gpt-4.1-mini": PricedModel(
        law=Law(
            latency=LogNormal.model_validate({"mean": 3.23, "sigma": 0.5}),
            tokens=LogNormal(median=60, sigma=0.4),
        ),
        price_in=0.4,
        price_out=1.6,
    ),
    "gpt-5.4-nano": PricedModel(
        law=Law(
            latency=LogNormal.model_validate({"mean": 1.45, "sigma": 0.5}),
            tokens=LogNormal(median=60, sigma=0.4),
        ),
        price_in=0.2,
        price_out=1.25,
    ),
}
"""Means of latency as published; spread, tokens and prices are assumptions."""
WAYS: Mapping[str, tuple[str, ...]] = {
    "delegate, slow": ("gpt-4.1-mini",),
    "race, slow and slow": ("gpt-4.1-mini", "gpt-4.1-mini"),
    "race, slow and quick": ("gpt-4.1-mini", "gpt-5.4-nano"),
    "delegate, quick": ("gpt-5.4-nano",),
}


class Traffic(Value):
    """What is asked of the raced sub-agent in a month. Only the number of users is given; the rest is assumed."""

    users: int = 1_200_000
    messages: float = 12.0
    """Of a user, a month."""
    share: float = 0.25
    """Of messages that need this sub-agent."""
    busiest: float = 0.1
    """Share of a day's messages in its busiest hour."""
    reads: int = 2_500
    """Tokens of the sub-agent's prompt; 2,000 to 3,000 are published for a narrow agent."""

    @property
    def a_month(self) -> float:
        """Calls of the sub-agent a month."""
        return self.users * self.messages * self.share

    @property
    def busiest_a_second(self) -> float:
        return self.a_month / 30 * self.busiest / 3600


def play_races(
    ways: Mapping[str, Sequence[str]] = WAYS,
    models: Mapping[str, PricedModel] = SIMULATED,
    *,
    reads: int = Traffic().reads,
    messages: int = 400,
    seed: int = 7,
) -> list[RacingTurn]:
    """Plays the same messages every way, in virtual time; blocks, so call it in a thread where a
    loop runs.

    `ways`: name -> models of the agents that answer: one is delegate, two or three race. The
    orchestrator's calls are the same in all of them and in no bill. `reads`: tokens of a
    sub-agent's prompt.
    """

    async def play() -> list[RacingTurn]:
        turns: list[RacingTurn] = []
        for way, keys in ways.items():
            kit = _kit([models[key].law for key in keys], seed)
            for message in range(messages):
                turns.append(await _one(way, message, kit, [models[key] for key in keys], reads))
            kit.store.close()
        return turns

    return run_virtual(play())


def _kit(laws: Sequence[Law], seed: int) -> RoutingKit:
    names = [AGENT, *(f"{TWIN}_{place}" for place in range(1, len(laws)))]
    settings = (
        {"topologies": {"chat": {AGENT: Topology(kind="race", members=tuple(names))}}}
        if len(names) > 1
        else {}
    )
    cards = [
        AgentCard(id=name, description=f"Explains, as {name}.", model="offline") for name in names
    ]
    root = AgentCard(id="orchestrator", description="Asks.", model="offline", sub_agents=(AGENT,))
    deck = Deck.of(
        [root, *cards],
        settings=DeckSettings.model_validate(
            {
                "orchestrator": root.id,
                "required_blocks": (),
                "defaults": {"time_budget_ms": 600_000},
                **settings,
            }
        ),
    )
    models = {
        name: SimulatedModel(name="simulated", law=law, seed=seed)
        for name, law in [*zip(names, laws, strict=True), (root.id, Law())]
    }
    return RoutingKit(with_topologies(bind(deck, models, {})))


async def _one(
    way: str, message: int, kit: RoutingKit, models: Sequence[PricedModel], reads: int
) -> RacingTurn:
    with use_truth(
        Truth(case=f"message {message}", parts=(Part(agent=AGENT, query="explain this"),))
    ):
        turn = run_turn(
            "explain this", study_session(f"{way}-{message}"), kit, history=(), in_play=()
        )
    trace = (await turn).trace
    outer = next(span for span in trace.spans if span.kind == "agent" and span.name == AGENT)
    calls = [span for span in trace.spans if span.kind == "model" and span.agent != "orchestrator"]
    dollars, most = 0.0, 0.0
    for call in calls:
        model, wrote = models[_place(call.agent)], call.usage.output_tokens
        whole = max(wrote, model.law.tokens.mean) if call.status == "error" else wrote
        dollars += (reads * model.price_in + wrote * model.price_out) / 1e6
        most += (reads * model.price_in + whole * model.price_out) / 1e6
    return RacingTurn(way, message, outer.seconds, len(calls), dollars, most)


def _place(agent: str) -> int:
    """Returns which of the racing models an agent has."""
    return int(agent.rpartition("_")[2]) if agent.startswith(TWIN) else 0


class MonthlyFigures(NamedTuple):
    """What one way of answering costs and takes, for a month of traffic."""

    way: str
    p50: Estimate
    p95: Estimate
    """Seconds of the sub-agent's call, by order statistics."""
    dollars: Estimate
    """A month."""
    most: Estimate
    """A month, if stopped calls are billed whole."""
    calls_at_once: float
    """Model calls of sub-agents in flight on average, in the busiest hour (Little 1961)."""


def monthly_figures(runs: Sequence[RacingTurn], traffic: Traffic) -> list[MonthlyFigures]:
    """Returns what every way means for a traffic."""
    figures: list[MonthlyFigures] = []
    for way in dict.fromkeys(run.way for run in runs):
        mine = [run for run in runs if run.way == way]
        seconds = [run.seconds for run in mine]
        dollars, most = (
            _scale(traffic.a_month, mean([getattr(run, name) for run in mine]))
            for name in ("dollars", "most")
        )
        flying = traffic.busiest_a_second * sum(run.seconds * run.calls for run in mine) / len(mine)
        p50, p95 = (quantile(seconds, share, bounded=True) for share in (0.5, 0.95))
        figures.append(MonthlyFigures(way, p50, p95, dollars, most, flying))
    return figures


def cost_points(ways: Sequence[MonthlyFigures]) -> list[dict[str, float | str]]:
    """Returns cost against latency, a row a way; a bill's whiskers reach from what the kit counts
    to what a provider may bill."""
    return [
        {"name": way.way, "x": way.dollars.value, "x_low": way.dollars.low, "x_high": way.most.high}
        | {"y": way.p95.value, "y_low": way.p95.low, "y_high": way.p95.high}
        for way in ways
    ]


def _scale(factor: float, one: Estimate) -> Estimate:
    return one.model_copy(
        update={name: factor * getattr(one, name) for name in ("value", "low", "high")}
    )
