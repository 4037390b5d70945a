"""An event loop whose time jumps when nothing is ready, so that a 12 s wait costs microseconds and is exact."""

import asyncio
import heapq
import math
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, cast

T = TypeVar("T")
TICK = 2.0**-32
"""Waits are whole ticks, so that sums and differences of times are exact: a turn's times do not
depend on when it began, up to twelve days of virtual time."""

STEPS = 1_000_000
"""Steps of a loop at one moment, after which it is stuck: no turn needs a thousandth of them."""


class _Timer(asyncio.TimerHandle):
    """A timer that goes off after those of the same moment that were set before it."""

    __slots__ = ("order",)
    order: int

    def __lt__(self, timer: asyncio.TimerHandle) -> bool:
        if self.when() == timer.when():
            return self.order < cast("_Timer", timer).order
        return self.when() < timer.when()


class _JumpingSelector(selectors.DefaultSelector):
    """Polls real files without waiting; asks the loop to jump when there is nothing to poll for."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            self.loop.count_step()
            return ready
        if self.loop.busy:
            return super().select(0.001)
        if timeout is None:
            raise RuntimeError("virtual loop: every task waits for something that cannot happen")
        self.loop.jump()
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waits of asyncio.sleep and asyncio.timeout cost no real time; executor jobs hold the clock until they end.

    Real sockets do not mix with it: their waiting is invisible to the jump.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._timers = self._steps = 0
        self.busy = 0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = TICK / 2

    def time(self) -> float:
        return self._now

    @property
    def _waiting(self) -> list[asyncio.TimerHandle]:
        loop = cast("Any", self)
        return loop._scheduled

    def jump(self) -> None:
        """Moves the clock to the next timer."""
        if self._waiting[0].when() > self._now:
            self._now = self._waiting[0].when()
            self._steps = 0
        self.count_step()
        # else a timer due now would never be due
        self._clock_resolution = max(TICK / 2, math.ulp(self._now))

    def count_step(self) -> None:
        """Raises RuntimeError for a loop that goes on and on at one moment."""
        self._steps += 1
        if self._steps > STEPS:
            self._steps = 0
            sentence = (
                f"virtual loop: {STEPS:,} steps at {self._now:g} s and time stands still: "
                f"something waits for nothing"
            )
            raise RuntimeError(sentence)

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + _whole(delay), callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = _Timer(_whole(when), callback, args, self, context)
        timer.order = self._timers = self._timers + 1
        heapq.heappush(self._waiting, timer)
        timer._scheduled = True
        return timer

    def run_in_executor(
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        self.busy += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._job_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        self.busy += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self.busy -= 1

    def _job_done(self, _: "asyncio.Future[Any]") -> None:
        self.busy -= 1


def _whole(seconds: float) -> float:
    if not math.isfinite(seconds / TICK):
        raise ValueError(
            f"virtual loop: {seconds} s is no time that comes: wait for something that can happen"
        )
    return round(seconds / TICK) * TICK


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end on a fresh virtual loop, as asyncio.run does on a real one."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
