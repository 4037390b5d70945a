"""Dose and response: what is planted is found again, by a judge that knows nothing of the kit's own checks."""

import pytest

from studies.dose_response import KINDS, TRUSTING, Axis, sweep
from studies.lying_composer import LIES


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
