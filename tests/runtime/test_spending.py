"""Extra model calls: made only when needed, on the cheaper model, priced by what they were for (PC1-NFR-7)."""

from collections import Counter, defaultdict
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from kit.compose.deck import Deck, DeckSettings
from kit.core.bodies.call import ModelEnded
from kit.core.card import AgentCard
from kit.core.context import OPERATOR
from kit.core.errors import DeckError
from kit.core.model import ModelSpec
from kit.metrics.summary import metrics
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.job import JOBS
from kit.runtime.team import Team, bind
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, asks, bodies, small_kit, stitched

PRICES = {"lead": (2.0, 8.0), "sub": (1.0, 4.0), "helper": (0.1, 0.4), "composer": (0.5, 2.0)}
"""Dollars a million tokens, in and out."""


def priced(bound: BoundModel, name: str) -> BoundModel:
    spec = ModelSpec(
        key=name, provider="offline", price_in=PRICES[name][0], price_out=PRICES[name][1]
    )
    return replace(bound, spec=spec)


def with_prices(team: Team) -> Team:
    agents: dict[str, Any] = {}
    for name, agent in team.agents.items():
        assert isinstance(agent, LLMAgent)
        composer = priced(agent.composer, "composer") if agent.composer else None
        agents[name] = replace(
            agent,
            model=priced(agent.model, "lead" if name == team.root else "sub"),
            composer=composer,
        )
    jobs = MappingProxyType({name: priced(bound, "helper") for name, bound in team.jobs.items()})
    return replace(team.with_agents(agents), jobs=jobs)


def priced_kit(**settings: Any) -> SmallKit:
    """An orchestrator that asks whom the message names; a helper and a composer of their own."""

    def lead(messages: list[BaseMessage]) -> Line:
        called = [name for name in ("shop", "rewards") if name in str(messages[-1].content)]
        return asks(*called) if called else Line("Hello there.")

    jobs = {
        "prior_context": "The user looked at Harbor Roast.",
        "summary": "Coffee was talked about.",
    }
    helper = ScriptedModel(
        lambda m: Line(jobs["summary" if "Sum up" in str(m[-1].content) else "prior_context"])
    )
    subs = {
        name: ScriptedModel(lambda m, name=name: Line(f"From {name}."))
        for name in ("shop", "rewards")
    }
    models = {
        **subs,
        "orchestrator": ScriptedModel(lead),
        "helper": helper,
        "orchestrator:composer": ScriptedModel(stitched),
    }
    kit = small_kit([], subs, **settings)
    kit.team = with_prices(bind(kit.team.deck, models, {}))
    return kit


MESSAGES = ("shop please", "rewards please", "rewards again", "hello", "shop and rewards")
"""A first agent; a switch; no switch; small talk; a switch beside one who stays."""


async def some_turns(**settings: Any) -> tuple[SmallKit, list[Reply]]:
    kit = priced_kit(**settings)
    return kit, [await run_turn(message, ALICE, kit) for message in MESSAGES]


@pytest.mark.req("PC1-NFR-7")
async def test_extra_calls_are_made_when_they_are_needed_on_the_cheaper_model_and_priced_apart():
    kit, replies = await some_turns(compact_after=3, compact_keep=1)
    turns = [kit.store.turn(reply.turn_id, OPERATOR) for reply in replies]
    made = [
        {spent.purpose: spent.usage.model_calls for spent in turn.measures.spent}
        for turn in turns
        if turn
    ]
    routed = {"decide": 1, "work": 1, "compose": 1}
    assert made == [
        routed,
        {**routed, "prior_context": 1},
        routed,
        {"decide": 1, "summary": 1},
        {"decide": 1, "work": 2, "compose": 1, "prior_context": 1},
    ]
    ended = [body for reply in replies for body in bodies(reply, ModelEnded)]
    asked = Counter(body.model for body in ended)
    assert asked == {"lead": 5, "sub": 5, "composer": 4, "helper": 3}
    dollars: defaultdict[str, float] = defaultdict(float)
    for body in ended:
        read, wrote = PRICES[body.model]
        spent = body.usage.input_tokens * read + body.usage.output_tokens * wrote
        dollars[body.model] += spent / 1e6
    told = metrics(kit.store)
    for purpose, model in (("decide", "lead"), ("work", "sub"), ("compose", "composer")):
        assert told.number("model_calls_total", purpose) == asked[model]
        assert told.number("cost_dollars_total", purpose) == pytest.approx(dollars[model])
    extra = dollars["composer"] + dollars["helper"]
    rows = {(row["metric"], row["of"]): row["value"] for row in told.rows()}
    per_turn = rows["extra_cost_dollars_per_turn", "compose + prior_context + summary"]
    assert per_turn == pytest.approx(extra / len(MESSAGES)) and extra > 0


@pytest.mark.req("PC1-NFR-7")
def test_a_deck_names_the_cheaper_models_and_bind_takes_them():
    deck = priced_deck(helper_model="dear", compose_model="dear")
    team = bind(deck)
    assert {team.jobs[name].spec.key for name in JOBS} == {"dear"}
    composer = team.orchestrator.composer
    assert composer is not None and composer.spec.key == "dear"
    # The orchestrator's own model words the answer unless the deck says otherwise.
    assert bind(priced_deck(helper_model="dear")).orchestrator.composer is None
    assert bind(deck, "offline").orchestrator.composer is None


def priced_deck(**settings: Any) -> Deck:
    cards = [
        AgentCard(id="orchestrator", description="Routes.", model="fair", sub_agents=("shop",)),
        AgentCard(id="shop", description="Shop.", model="fair"),
    ]
    specs = [
        ModelSpec(key=key, provider="offline", price_in=p, price_out=p)
        for key, p in (("fair", 1.0), ("dear", 9.0))
    ]
    return Deck.of(
        cards,
        settings=DeckSettings(orchestrator="orchestrator", required_blocks=(), **settings),
        models=specs,
    )


@pytest.mark.parametrize("setting", ["helper_model", "compose_model"])
def test_a_dearer_model_for_extra_calls_is_warned_of_and_an_unknown_one_refused(
    setting: str,
):
    assert "'dear' costs more than the orchestrator's 'fair'" in "\n".join(
        priced_deck(**{setting: "dear"}).warnings
    )
    assert "costs more" not in "\n".join(priced_deck(**{setting: "fair"}).warnings)
    with pytest.raises(DeckError, match="unknown model 'fare': did you mean 'fair'"):
        priced_deck(**{setting: "fare"})
