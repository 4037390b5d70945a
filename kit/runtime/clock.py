"""An event loop whose time jumps when nothing is ready, so that a 12 s wait costs microseconds and is exact."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Polls real files without waiting; asks the loop to jump when there is nothing to poll for."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
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
        self.busy = 0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def jump(self) -> None:
        """Moves the clock to the next timer."""
        scheduled = cast("list[asyncio.TimerHandle]", self._scheduled)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._now = max(self._now, scheduled[0].when())

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
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


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end on a fresh virtual loop, as asyncio.run does on a real one."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
