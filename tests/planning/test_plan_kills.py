"""A killed process loses nothing of a plan, wherever it is killed; `python -m tests.plan_kills`
does this at every point."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.forks import exit_code
from tests.plan_points import kill_at, points_of_a_plan

SOME = 10


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
    results = [kill_at(1 + every * number // 6, honours_keys=False) for number in range(6)]
    assert [broken for _, _, broken in results if broken] == []


def exit_with_threads_of_origin() -> None:
    sys.exit(len(list(Path(f"/proc/{os.getppid()}/task").iterdir())))


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(),
    reason="threads are counted in /proc, which this system lacks",
)
def test_what_is_forked_has_one_thread() -> None:
    assert exit_code(exit_with_threads_of_origin) == 1


def test_a_fork_that_hangs_is_killed_and_told() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="sleep hung"):
        exit_code(time.sleep, 600, seconds=0.1)
    assert time.monotonic() - began < 60
