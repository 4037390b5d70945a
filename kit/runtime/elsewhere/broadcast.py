"""What the processes of a service tell each other over the bus: what happens in the turns that run here,
and which turn is to stop."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kit.core.event import Event
from kit.runtime.handle import Turn, Turns
from kit.stores.bus.bus import FIRST, Bus, BusError
from kit.stores.rows import log_of

log = logging.getLogger("kit.bus")
STOPS = "stops"
"""The stream that names turns which their users want to stop, wherever they run."""
PAUSES = (0.2, 1.0, 2.0, 4.0, 8.0)
"""Seconds after which something is said again that the bus did not take."""
SILENCE = 10.0
"""Seconds that one look for stops waits."""


def turn_stream(turn_id: str) -> str:
    """The stream of a turn's events: its sub-agents as they begin and end, the steps of its plan, its text."""
    return f"turn:{turn_id}"


class Broadcast:
    """Tells of the turns of a kit, and stops those that another process asks to stop."""

    def __init__(self, bus: Bus, turns: Turns):
        self._bus = bus
        self._turns = turns
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Begins to tell of every turn that begins, and to listen for stops."""
        self._turns.on_begin = lambda turn: self._spawn(self._tell(turn))
        self._listening = self._spawn(self._listen())

    async def end(self) -> None:
        """Says what there is left to say, and listens no more."""
        self._listening.cancel()
        await asyncio.wait(self._tasks, timeout=sum(PAUSES))
        for task in list(self._tasks):
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _tell(self, turn: Turn) -> None:
        """Tells of a turn from its first event to its last, as many of them at once as have happened."""
        count = 0
        async for event in turn.follow():
            if event.seq >= count:
                fresh = turn.events[count:]
                count += len(fresh)
                await self._publish(turn.id, fresh)

    async def _publish(self, turn_id: str, events: Sequence[Event]) -> None:
        body = {"events": log_of(events).decode()}
        for pause in PAUSES:
            try:
                await self._bus.publish(turn_stream(turn_id), body)
                return
            except BusError as error:
                # Whoever follows the turn finds in the store what is told nowhere.
                log.warning("the events of turn %s were not told: %s", turn_id, error)
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        """Stops turns of this kit that another process names."""
        after: str | None = None
        while True:
            try:
                # What was said before this process began is about turns of others.
                if after is None:
                    after = await self._bus.last(STOPS)
                for entry in await self._bus.read(STOPS, after or FIRST, SILENCE):
                    after = entry.id
                    turn = self._turns.running(str(entry.body.get("turn_id")))
                    if turn is not None:
                        turn.cancel()
            except BusError as error:
                log.warning("stops of other processes are not heard: %s", error)
                await asyncio.sleep(PAUSES[1])


@asynccontextmanager
async def telling(bus: Bus, turns: Turns) -> AsyncGenerator[None]:
    """Tells the other processes of a kit's turns, and stops those that they ask to stop, until the end of the block."""
    broadcast = Broadcast(bus, turns)
    broadcast.begin()
    try:
        yield
    finally:
        await broadcast.end()
