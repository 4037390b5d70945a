"""The virtual clock: waits cost nothing and are exact, equal timers keep their order, real work holds the time."""

import asyncio
import math
import random
import time

import pytest

from kit.runtime import clock
from kit.runtime.clock import TICK, run_virtual

DAY = 24 * 3600.0


def now() -> float:
    return asyncio.get_running_loop().time()


def test_timers_of_one_moment_go_off_in_the_order_in_which_they_were_set():
    async def set_many() -> list[int]:
        loop, rung = asyncio.get_running_loop(), list[int]()
        for number in range(100):
            if number % 2:
                loop.call_at(1.0, rung.append, number)
            else:
                loop.call_later(1.0, rung.append, number)
        await asyncio.sleep(1.0)
        return rung

    assert run_virtual(set_many()) == list(range(100))


@pytest.mark.parametrize("began", [1 / 3, 11.9 * DAY])
def test_times_of_a_turn_do_not_depend_on_when_it_began(began: float):
    rng = random.Random(5)
    waits = [rng.uniform(0, 10) for _ in range(200)]

    async def since(start: float) -> list[float]:
        await asyncio.sleep(start)
        first, seen = now(), list[float]()
        for wait in waits:
            await asyncio.sleep(wait)
            seen.append(now() - first)
        return seen

    told = run_virtual(since(began))
    assert told == run_virtual(since(0.0))
    assert all(at % TICK == 0 for at in told) and told[-1] == pytest.approx(
        sum(waits), abs=200 * TICK
    )


def test_work_in_a_thread_holds_the_clock_until_it_ends():
    async def beside() -> list[tuple[str, float]]:
        ends: list[tuple[str, float]] = []

        async def work() -> None:
            await asyncio.to_thread(time.sleep, 0.05)
            ends.append(("work", now()))

        async def wait() -> None:
            await asyncio.sleep(0.001)
            ends.append(("wait", now()))

        await asyncio.gather(wait(), work())
        return ends

    assert run_virtual(beside()) == [("work", 0.0), ("wait", pytest.approx(0.001))]


def test_waiting_for_what_cannot_happen_is_an_error_and_no_hang():
    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="every task waits for something that cannot happen"):
        run_virtual(forever())


def test_a_loop_that_never_waits_is_an_error_and_no_hang(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "STEPS", 10_000)

    async def spin() -> None:
        await asyncio.sleep(1.0)
        while True:
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="steps at 1 s and time stands still"):
        run_virtual(spin())


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 1e300])
def test_a_time_that_never_comes_is_an_error_that_says_so(seconds: float):
    # From Python 3.13 on asyncio refuses NaN itself, in words of its own.
    with pytest.raises(ValueError, match=r"is no time that comes|Invalid delay: NaN"):
        run_virtual(asyncio.sleep(seconds))
