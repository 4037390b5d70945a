"""What remedies buy and what judgment costs: the figures of the notebook on time-outs, held against
the laws behind them."""

import asyncio
from collections.abc import Sequence

import pytest

from kit.compose.models import load_models
from kit.core.simulation import Law
from kit.core.timeout import REMEDIES
from studies.function_or_agent import cost_ratio, play_pairs
from studies.timeout_causes import play_faults
from studies.timeout_remedies import (
    BUDGET,
    Call,
    play_calls,
    summarise,
)


@pytest.fixture(scope="module")
def played() -> Sequence[Call]:
    return asyncio.run(play_calls(count=80))


def law_of(model: str) -> Law:
    law = load_models("cards/models.yaml")[model].law
    assert law is not None
    return law


# remedies


@pytest.mark.req("SO-13")
def test_every_remedy_answers_more_within_the_budget_and_more_time_does_not(
    played: Sequence[Call],
):
    found = {one.way: one for one in summarise(played)}
    bare = found["as it is"]
    for way in ("race", "fallback", "pipeline"):
        assert found[way].in_time.low > bare.in_time.high, way
        assert found[way].cost.low > 1 and found[way].tokens.low > bare.tokens.high, (
            "and costs more"
        )
        assert found[way].own.high < bare.own.low, "in other words than those of the first model"
    assert found["more time"].in_time == bare.in_time
    assert found["more time"].p95.low > BUDGET >= bare.p95.high, "it only makes everybody wait"
    assert [one.way for one in summarise(played) if one.caveat.value > 0] == ["pipeline"]


@pytest.mark.req("SO-20")
async def test_a_remedy_for_something_else_changes_nothing():
    rows = await play_faults()
    answered = {(row.cause, row.way) for row in rows if row.result == "answer"}
    reasoning = {("reasoning", way) for way in ("race", "pipeline")}
    assert answered == reasoning | {("model", way) for way in ("race", "fallback", "pipeline")}
    assert all(row.diagnoses[0].cause == row.cause for row in rows if row.way == "as it is")
    for cause, remedies in REMEDIES.items():
        is_offered = any("fallback_model" in remedy.keys for remedy in remedies)
        assert is_offered == (cause == "model"), "what changes nothing is not offered"


# a function or a sub-agent


@pytest.mark.req("SO-17")
async def test_a_sub_agent_takes_the_function_and_two_model_calls_longer():
    rows = await play_pairs("simulated-gpt-5.4-nano", 30)
    law = law_of("simulated-gpt-5.4-nano")
    assert {round(row.function, 6) for row in rows} == {0.2}
    extra = [row.agent - row.function for row in rows]
    assert sum(extra) / len(extra) == pytest.approx(2 * law.latency.mean, rel=0.12)
    whole = [row.turn_agent - row.turn_function for row in rows]
    assert sum(whole) / len(whole) == pytest.approx(2 * law.latency.mean, rel=0.25)
    alone, turn = (
        cost_ratio(rows, lambda r: r.agent, lambda r: r.function),
        cost_ratio(rows, lambda r: r.turn_agent, lambda r: r.turn_function),
    )
    assert alone.low > turn.high > turn.low > 1, (
        "in a whole turn the orchestrator's calls are on both sides"
    )
    assert cost_ratio(rows, lambda r: r.tokens_agent, lambda r: r.tokens_function).low > 1
    assert all(row.tokens_agent > row.tokens_function + row.agent_tokens / 2 for row in rows)
