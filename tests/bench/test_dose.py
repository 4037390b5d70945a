"""Dose and response: what is planted is found again, by a judge that knows nothing of the kit's own checks."""

import random
from collections import Counter

import pandas as pd
import pytest

from studies.dose_response import DOSES, KINDS, PARTS, TRUSTING, Axis, Response, draw_faults, sweep
from studies.lying_composer import CLAIM, LIES


async def test_no_dose_costs_nothing_and_every_answer_is_sound():
    rows = [
        *await sweep("partial", (0.0,), 3),
        *await sweep("partial", (0.0,), 3, pattern=TRUSTING),
    ]
    assert [row.sound and row.path == "" and row.failed == 0 for row in rows] == [True] * 6
    assert len({(row.model_calls, row.tokens) for row in rows}) == 1


async def test_a_trusted_liar_gets_away_with_each_of_its_lies():
    rows = [row for row in await sweep("data", (0.5,), 40, pattern=TRUSTING) if row.failed]
    assert {row.lie for row in rows} == set(LIES)
    assert not any(row.sound for row in rows) and sum(row.admissions for row in rows) == 0
    assert {row.lie for row in rows if row.made_up} == {"claims"}
    assert {row.lie for row in rows if row.present < row.healthy} == {"omits"}


@pytest.mark.parametrize("axis", KINDS)
async def test_the_same_liar_checked_loses_every_time(axis: Axis):
    rows = await sweep(axis, (0.3,), 24)
    assert all(row.sound for row in rows)
    assert {row.path for row in rows if row.failed} <= {"recomposed", "appended", "rescued"}
    assert all(row.path == "" for row in rows if not row.failed)


async def test_the_honest_composer_owns_up_by_itself_and_costs_nothing_more():
    checked, taken = [
        await sweep("partial", (0.5,), 8, composer="honest", pattern=p) for p in (None, TRUSTING)
    ]
    assert {row.path for row in checked if row.failed} == {"composed"}
    assert all(row.sound for row in checked)
    assert [row.model_calls for row in checked] == [row.model_calls for row in taken]


async def test_both_patterns_meet_the_same_faults_and_a_seed_repeats_them():
    checked, again, taken = [
        await sweep("invocation", (0.4,), 12, pattern=p) for p in (None, None, TRUSTING)
    ]
    assert checked == again
    assert [(row.failed, row.lie) for row in checked] == [(row.failed, row.lie) for row in taken]
    assert [row.failed for row in await sweep("invocation", (0.4,), 12, seed=8)] != [
        row.failed for row in checked
    ]


async def test_a_part_that_hangs_takes_its_whole_budget_and_no_more():
    rows = await sweep("invocation", (0.5,), 12)
    assert {row.seconds for row in rows} == {0.0, 8.0}


@pytest.mark.parametrize("axis", KINDS)
def test_a_dose_is_the_share_of_parts_that_fail(axis: Axis):
    rng = random.Random(1)
    drawn = [draw_faults(axis, 0.3, rng) for _ in range(3000)]
    assert sum(map(len, drawn)) / (3000 * len(PARTS)) == pytest.approx(0.3, abs=0.02)
    kinds = Counter(fault.kind for faults in drawn for fault in faults)
    assert set(kinds) == set(KINDS[axis])
    assert max(map(len, drawn)) == len(PARTS) - (axis == "partial")


async def test_rows_make_a_tidy_frame():
    frame = pd.DataFrame(await sweep("data", (0.0, 0.5), 2))
    assert list(frame.columns) == list(Response._fields)
    assert list(frame["dose"]) == [0.0, 0.0, 0.5, 0.5]
    assert DOSES[0] == 0.0 and "," in CLAIM
