"""A killed process loses nothing of a plan, wherever it is killed; `python -m tests.plan_kills`
does this at every point."""

import pytest

from tests.plan_points import kill_at, points_of_a_plan

SOME = 2


@pytest.mark.realtime
@pytest.mark.req("AS-3")
def test_a_plan_whose_process_is_killed_at_any_point_completes_with_each_step_run_once() -> None:
    every = points_of_a_plan()
    assert every > 200
    chosen = [1 + every * number // SOME for number in range(SOME)]
    results = {point: kill_at(point) for point in chosen}
    assert all(killed for killed, _, _ in results.values())
    assert {point: broken for point, (_, _, broken) in results.items() if broken} == {}


@pytest.mark.realtime
@pytest.mark.req("AS-3")
def test_a_step_that_died_in_a_call_that_cannot_be_repeated_ends_uncertain_and_is_called_no_second_time() -> (
    None
):
    every = points_of_a_plan(honours_keys=False)
    _, _, broken = kill_at(1 + every // 2, honours_keys=False)
    assert not broken
