"""Cost is architecture: Python calls of a traced turn against a hand-written loop, which no busy machine can change."""

import gc
from pathlib import Path

import pytest

from benchmarks.turn_cost.measure import GATE, IN_FLIGHT, calls_per_turn, kib_in_flight
from benchmarks.turn_cost.workload import HandLoop, KitLoop
from kit.cli import main


@pytest.mark.realtime
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_traced_turn_makes_fewer_calls_than_a_hand_loop_through_the_wrapper(
    streaming: bool, tmp_path: Path
):
    hand = await calls_per_turn(HandLoop(2, streaming))
    ours = await calls_per_turn(KitLoop(2, streaming, str(tmp_path / "kit.db")))
    assert ours <= GATE["streaming" if streaming else "whole replies"] * hand, (
        f"{ours:.0f} calls against {hand:.0f}"
    )


def test_without_a_checkout_the_command_says_where_the_measurement_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("kit.home.IS_CHECKOUT", False)
    assert main(["bench"]) == 2
    assert "benchmarks/turn_cost, which only a checkout of the repository has" in (
        capsys.readouterr().err
    )


@pytest.mark.realtime
async def test_a_turn_in_flight_holds_little_memory():
    assert 10 < await kib_in_flight(KitLoop(2, streaming=False), turns=100) <= IN_FLIGHT


@pytest.mark.realtime
async def test_a_turn_leaves_nothing_to_the_garbage_collector():
    """What refers to itself in a circle lives until the collector visits every object of the
    process, in one long pause."""
    runner = KitLoop(2, streaming=True)
    await runner.turn("warm")
    gc.collect()
    gc.disable()
    leftovers: list[int] = []
    try:
        for number in range(60):
            await runner.turn(f"turn {number}")
            if number % 20 == 19:
                leftovers.append(gc.collect())
    finally:
        gc.enable()
    # The engine of a store that an earlier test closed may be let go in the middle of a play, but not in each.
    assert min(leftovers) < 20, leftovers
