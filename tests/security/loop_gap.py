"""How long an event loop worked at one thing: what every other turn of the process felt."""

import asyncio
import time
from types import TracebackType

from tests.effort import leave_out_garbage_of_others, slowness

LONGEST_GAP = 0.1
"""Seconds at the pace of the reference machine (tests/effort.py) that no attack may hold the loop."""
_TICK = 0.002


class LoopGap:
    """`async with LoopGap() as gap:` measures on a real loop; `gap.longest` is the longest stretch
    of work without a tick, in seconds at the reference pace.

    Only what the loop worked counts, not what the machine gave to others: whether a loop stands
    still because it waits is shown by what else goes on meanwhile, not by a clock.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._worked = 0.0

    async def __aenter__(self) -> "LoopGap":
        leave_out_garbage_of_others()
        self._slowness = slowness()
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
        self.longest = self._worked / max(self._slowness, slowness())

    async def _watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_TICK)
            self._worked = max(self._worked, time.thread_time() - before)
