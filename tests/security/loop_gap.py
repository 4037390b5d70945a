"""How long an event loop stood still: what every other turn of the process felt."""

import asyncio
import time
from types import TracebackType

LONGEST_GAP = 0.1
"""Seconds that no attack may hold the loop."""
_TICK = 0.002


class LoopGap:
    """`async with LoopGap() as gap:` measures on a real loop; `gap.longest` is the longest stretch
    without a tick, in seconds.

    Of each stretch counts what the loop worked in it, not what the machine gave to others; of a
    wait, which is no work, a tenth.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> "LoopGap":
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.sleep(2 * _TICK)
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            wall, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(_TICK)
            blocked = time.monotonic() - wall - _TICK
            self.longest = max(
                self.longest, min(blocked, max(time.thread_time() - worked, blocked / 10))
            )
