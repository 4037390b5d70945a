"""The time of a turn of which a part is played: it jumps while nothing is called, and runs once something is."""

import asyncio
import heapq
from itertools import count

HOPS = 40
"""Times that the loop goes round before the clock jumps: whoever is ready goes first."""


class ReplayClock:
    """Seconds since the turn began. `until()` waits for a moment of the recording; `run()` ends the
    jumping, for good."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = 0.0
        self._offset = 0.0
        self._runs = False
        self._jumps = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def __call__(self) -> float:
        if self._runs:
            return self._loop.time() - self._offset
        return self._now

    async def until(self, moment: float) -> None:
        """Waits until that second of the turn. Waits of one moment end in the order in which they began."""
        future: asyncio.Future[None] = self._loop.create_future()
        heapq.heappush(self._waiting, (moment, next(self._order), future))
        if self._runs:
            self._ring_later()
        elif not self._jumps:
            self._jumps = True
            self._loop.call_soon(self._jump, HOPS)
        await future

    def run(self) -> None:
        """From now on time passes by itself."""
        if not self._runs:
            self._runs = True
            self._offset = self._loop.time() - self._now
            self._ring_later()

    def _jump(self, hops: int) -> None:
        if self._runs or not self._waiting:
            self._jumps = False
        elif hops:
            # What one moment wakes needs some rounds of the loop to be through; a clock that jumped at
            # once would let the next recorded event overtake it.
            self._loop.call_soon(self._jump, hops - 1)
        else:
            self._now = max(self._now, self._waiting[0][0])
            self._ring()
            self._loop.call_soon(self._jump, HOPS)

    def _ring_later(self) -> None:
        for moment, _, _ in self._waiting:
            self._loop.call_later(max(0.0, moment - self()), self._ring, moment)

    def _ring(self, moment: float = 0.0) -> None:
        while self._waiting and self._waiting[0][0] <= max(moment, self()):
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)
