"""Each open question of the design has a measurement, and the page says what the measurement says."""

import asyncio

import pytest

from kit.home import HOME
from kit.runtime.clock import run_virtual
from studies.open_questions import carried, progress, tables, timeouts, without_calls

DOCUMENT = (HOME / "docs" / "open_questions.md").read_text(encoding="utf-8")
WRITE = "run `python notebooks/make_open_questions.py`"


@pytest.mark.realtime
@pytest.mark.req("PC2-OQ-1")
def test_prior_context_on_every_switch_carries_what_an_own_history_does_not():
    ways = asyncio.run(carried())
    assert tables(ways, {}, [], {})[0] in DOCUMENT, WRITE
    never, switch, whole = (ways[way][0] for way in ("own history", "prior_context", "everything"))
    assert never.high < switch.low and switch.high < whole.low
    assert ways["own history"][1] < ways["prior_context"][1] < ways["everything"][1]
    assert "cannot be measured without that model" in DOCUMENT


@pytest.mark.realtime
@pytest.mark.req("PC2-OQ-2")
def test_a_time_out_of_its_own_loses_no_answer_and_waits_for_nobody_that_hangs():
    ways = run_virtual(timeouts())
    assert tables({}, ways, [], {})[1] in DOCUMENT, WRITE
    assert [way.answers for way in ways.values()] == [2, 3, 3]
    assert [way.hanging for way in ways.values()] == pytest.approx([2.0, 8.0, 6.0], abs=0.01)
    assert "nothing extends a deadline once it is set" in DOCUMENT


@pytest.mark.realtime
@pytest.mark.req("PC2-OQ-3")
def test_ways_to_tell_progress_are_compared_on_one_turn():
    rows = {row.policy: row for row in run_virtual(progress())}
    assert tables({}, {}, [*rows.values()], {})[2] in DOCUMENT, WRITE
    assert rows["window of 400 ms"].lines < rows["agent by agent"].lines < rows["forward"].lines
    first = {policy: row.first_useful or 0.0 for policy, row in rows.items()}
    assert first["forward"] < first["window of 400 ms"] < first["suppress"]


@pytest.mark.realtime
@pytest.mark.req("PC2-OQ-4")
def test_a_turn_without_a_call_costs_one_model_call():
    spent = asyncio.run(without_calls())
    assert tables({}, {}, [], spent)[3] in DOCUMENT, WRITE
    assert [usage.model_calls for usage in spent.values()] == [1, 2]
