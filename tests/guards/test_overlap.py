import itertools

import pytest

from kit.bench.routing import RoutingKit
from kit.core.context import Principal, Session
from kit.patterns.agents_as_tools import MEDIATED
from kit.runtime.pattern import Pattern
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from studies.fan_out_time import (
    ALIKE,
    MIXED,
    ONE_BY_ONE,
    play_exact,
    slow_models,
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


@pytest.mark.req("PC2-FR-6")
async def test_eight_agents_of_200_ms_take_exactly_200_ms_of_virtual_time():
    runs = await play_exact(ALIKE, sizes=(8,))
    assert [run.seconds for run in runs] == pytest.approx([0.2], abs=1e-9)


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
