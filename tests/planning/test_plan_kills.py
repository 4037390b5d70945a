"""A killed process loses nothing of a plan, wherever it is killed; `python -m tests.plan_kills`
does this at every point."""

import pytest

from tests.plan_points import kill_at, points_of_a_plan


@pytest.mark.realtime
@pytest.mark.req("AS-3")
@pytest.mark.parametrize("honours_keys", [True, False])
def test_a_plan_whose_process_is_killed_in_a_step_goes_on_and_calls_nothing_a_second_time(
    honours_keys: bool,
) -> None:
    """Where a call cannot be repeated, the step that died in it ends uncertain."""
    points = points_of_a_plan(honours_keys=honours_keys)
    assert points > 200
    killed, _, broken = kill_at(1 + points // 2, honours_keys=honours_keys)
    assert killed and not broken
