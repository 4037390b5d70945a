"""Known-truth models: their laws hold, their draws depend on nothing but seed, case and place, and
they say what they are."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from kit.bench.routing import RoutingKit
from kit.compose.models import build_model, load_models
from kit.compose.parts import GUARDS
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.guard import GuardActed
from kit.core.context import Principal, Session
from kit.core.model import ModelSpec
from kit.core.outcome import Failure
from kit.core.simulation import Law, LogNormal, Part, Truth
from kit.models.simulated import SimulatedModel, draws, use_truth
from kit.runtime.clock import run_virtual
from kit.runtime.team import bind
from kit.runtime.turn import Reply, Turn, run_turn
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.kits import small_deck

ROOT = Path(__file__).parents[2]
WORDS = {
    "shop": "find coffee deals",
    "rewards": "check my points balance",
    "support": "get help with a receipt",
}
AGENTS = tuple(WORDS)
BODY = {"body": {"started_at"}}


def sim(law: Law) -> RoutingKit:
    """Three agents, every guard on, one simulated model for all."""
    model = SimulatedModel(name="simulated test", law=law, seed=7)
    return RoutingKit(bind(small_deck(AGENTS, guards=GUARDS), model), SqliteStore(":memory:"))


def start(kit: RoutingKit, case: str, agents: Sequence[str] = AGENTS) -> Turn:
    with use_truth(
        Truth(case=case, parts=tuple(Part(agent=agent, query=WORDS[agent]) for agent in agents))
    ):
        return run_turn(
            " and ".join(WORDS[agent] for agent in agents),
            Session(id=case, principal=Principal(tenant_id="a", user_id="b")),
            kit,
            turn_id=f"turn-{case}",
        )


def replies(law: Law, count: int, agents: Sequence[str] = AGENTS) -> list[Reply]:
    async def one_after_another() -> list[Reply]:
        kit = sim(law)
        return [await start(kit, f"c{number}", agents) for number in range(count)]

    return run_virtual(one_after_another())


def said(reply: Reply, **wanted: Any) -> list[GuardActed]:
    bodies = (event.body for event in reply.events if isinstance(event.body, GuardActed))
    return [
        body
        for body in bodies
        if all(getattr(body, name) == value for name, value in wanted.items())
    ]


def expected(share: float, count: int) -> Any:
    """A count within four standard errors of what a chance makes of it."""
    return pytest.approx(share * count, abs=4 * math.sqrt(share * (1 - share) * count) + 1e-9)


def test_a_turn_is_the_same_to_the_last_event_in_whatever_order_and_company_it_runs() -> None:
    law = Law(
        latency=LogNormal(median=1, sigma=0.8),
        drop=0.3,
        refusal=0.2,
        malformed=0.2,
        stray=0.2,
        over_trigger=0.2,
    )
    names = [f"c{number}" for number in range(12)]

    async def play(cases: Sequence[str], *, together: bool) -> dict[str, list[str]]:
        kit = sim(law)
        logs: dict[str, list[str]] = {}
        turns = {case: start(kit, case) for case in cases} if together else {}
        for case in cases:
            reply = await (turns[case] if together else start(kit, case))
            logs[case] = [event.model_dump_json(exclude=BODY) for event in reply.events]
        return logs

    alone = run_virtual(play(names, together=False))
    beside = run_virtual(play(names[::-1], together=True))
    assert [name for name in names if alone[name] != beside[name]] == []
    assert len({str(lines) for lines in alone.values()}) == 12, "each case has draws of its own"


def test_a_call_takes_its_drawn_latency_exactly_and_its_first_word_comes_earlier() -> None:
    law = Law(latency=LogNormal(median=2.0, sigma=0.5), first=0.25)
    [reply] = replies(law, 1)
    models = [span for span in reply.trace.spans if span.kind == "model"]
    places = ("orchestrator:1", "orchestrator/1.1.shop:1", "orchestrator:2")
    seconds = [law.latency.quantile(draws(7, "c0", place).latency) for place in places]
    assert (models[0].ttft, models[1].agent) == (pytest.approx(0.25 * seconds[0], abs=2e-6), "shop")
    spans = (models[0], models[1], models[-1])
    assert [span.seconds for span in spans] == pytest.approx(seconds, abs=2e-6)


def test_counting_too_many_makes_the_failsafe_ask_in_vain_and_stray_calls_reach_an_agent_nobody_needs() -> (
    None
):
    done = replies(Law(over_trigger=0.3, stray=0.3), 60, ("shop", "rewards"))
    asked_again = [r for r in done if said(r, guard="failsafe", action="asked_again")]
    assert len(asked_again) == expected(0.3, 60)
    stray = [r for r in done if "support" in r.routing.invoked]
    # at the first try, or else when asked again
    assert len(stray) == expected(0.3 + 0.7 * 0.3 * 0.3, 60)


def test_refusals_and_unreadable_calls_are_what_the_runtime_takes_them_for() -> None:
    refused = [o for reply in replies(Law(refusal=0.25), 30) for o in reply.outcomes]
    assert {o.reason for o in refused if isinstance(o, Failure)} == {"refusal"}
    assert sum(isinstance(o, Failure) for o in refused) == expected(0.25, len(refused))
    garbled = replies(Law(malformed=1.0), 5, ("shop", "rewards"))
    assert all(said(reply, guard="failsafe", action="asked_again") for reply in garbled)


def test_a_law_belongs_to_simulated_models_and_to_no_other() -> None:
    for given in ({"provider": "simulated"}, {"provider": "openai", "law": {}}):
        with pytest.raises(
            ValidationError, match="a simulated model needs a law, and no other model may have one"
        ):
            ModelSpec.model_validate({"key": "simulated-x", **given})


async def test_badge_and_every_model_span_say_simulated() -> None:
    settings = Settings(model="simulated-gpt-5.4-nano", store=":memory:", pace=0.0)
    async with open_kit(settings) as kit:
        reply = await kit.ask("find coffee deals and check my points balance", kit.session("s"))
    assert "simulated" in kit.model
    assert {
        "simulated" in e.body.model for e in reply.events if isinstance(e.body, ModelStarted)
    } == {True}
    assert reply.routing.invoked == ("shop", "rewards")


@pytest.mark.req("SAT-21")
def test_a_published_model_has_a_simulated_twin_fitted_to_its_mean_latency() -> None:
    specs = load_models(ROOT / "cards" / "models.yaml")
    for key in ("gpt-5.4-nano", "gpt-4.1-mini"):
        law = specs[f"simulated-{key}"].law
        (mean,) = [f.value for f in specs[key].published if "mean latency" in f.what]
        assert law is not None and law.latency.mean == pytest.approx(mean / 1000)
    assert {build_model(spec)._llm_type for key, spec in specs.items() if "simulated" in key} == {
        "simulated"
    }
