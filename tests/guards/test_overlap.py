import itertools

import pytest

from kit.bench.routing import RoutingKit
from kit.core.context import Principal, Session
from kit.core.trace import Trace
from kit.patterns.agents_as_tools import MEDIATED
from kit.runtime.pattern import Pattern
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from studies.charts import fan_seconds
from studies.fan_out_time import (
    ALIKE,
    MIXED,
    ONE_BY_ONE,
    play_exact,
    play_measured,
    slow_models,
    trace_one,
)
from studies.study_deck import plain_cards, study_deck

SESSION = Session(id="s", principal=Principal(tenant_id="acme", user_id="alice"))


@pytest.mark.req("PC2-FR-6")
async def test_side_by_side_takes_as_long_as_the_slowest_for_every_number_of_agents():
    runs = await play_exact(MIXED)
    assert [run.n for run in runs] == list(range(1, 9))
    assert [run.seconds for run in runs] == pytest.approx(
        list(itertools.accumulate(MIXED.values(), max))
    )


async def test_one_by_one_takes_the_sum():
    runs = await play_exact(MIXED, ONE_BY_ONE)
    assert [run.seconds for run in runs] == pytest.approx(
        list(itertools.accumulate(MIXED.values()))
    )


@pytest.mark.req("PC2-FR-6")
async def test_eight_agents_of_200_ms_take_exactly_200_ms_of_virtual_time():
    runs = await play_exact(ALIKE, sizes=(8,))
    assert [run.seconds for run in runs] == pytest.approx([0.2], abs=1e-9)


@pytest.mark.realtime
async def test_eight_agents_of_200_ms_stay_within_15_percent_of_the_slowest_in_real_time():
    runs = await play_measured(sizes=(8,), runs=4)
    assert 0.2 <= min(run.seconds for run in runs) <= 1.15 * 0.2, (
        "other programs only ever add time, so the best run counts"
    )


@pytest.mark.realtime
async def test_virtual_time_can_be_asked_from_a_real_loop():
    runs = await play_exact({"slow": 6.0}, sizes=(1,))
    assert [run.seconds for run in runs] == pytest.approx([6.0])


@pytest.mark.parametrize("pattern", [MEDIATED, ONE_BY_ONE])
async def test_both_ways_give_the_same_answer_and_leave_out_the_same_parts(pattern: Pattern):
    kit = RoutingKit(
        bind(study_deck(plain_cards(ALIKE), cap=6), slow_models(ALIKE), {}), SqliteStore(":memory:")
    )
    reply = await run_turn("Everything, please.", SESSION, kit, pattern)
    assert reply.routing.dropped == ("offer_details", "retailer_context")
    assert reply.text == (
        "6 of 8 parts are answered.\n\n"
        "I left out offer details and retailer context for now; ask me again and I'll take them next."
    )


async def test_thinking_time_of_the_orchestrator_is_not_part_of_the_fan_out():
    trace = await trace_one(MIXED, think=0.5)
    assert fan_seconds(trace) == pytest.approx(max(MIXED.values()))
    assert trace.spans[0].seconds == pytest.approx(max(MIXED.values()) + 2 * 0.5)


def test_nobody_asked_takes_no_time():
    assert fan_seconds(Trace(turn_id="t")) == 0.0
