"""The turns that this process runs for others, and who reads each of them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from kit.core.context import Principal
from kit.core.errors import KitError
from kit.runtime.handle import Turn
from kit.service.limits import Limits


class KeyReused(KitError):
    """An `Idempotency-Key` that came with another request before."""


@dataclass
class ServedTurn:
    """A turn that runs, and how many read it."""

    turn: Turn
    principal: Principal
    is_plan: bool
    readers: int = 0
    timer: asyncio.TimerHandle | None = None
    """Ends the turn, unless somebody comes to read it."""


class ServedTurns:
    """The running turns by their ids."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._running: dict[str, ServedTurn] = {}

    def add(self, turn: Turn, principal: Principal, *, is_plan: bool) -> ServedTurn:
        """Holds a turn until it has ended."""
        served = ServedTurn(turn, principal, is_plan)
        self._running[turn.id] = served
        # Whoever asked may be gone before the first event is sent.
        self._stop_unread(served)
        turn.on_end(lambda: self._end(served))
        return served

    def _end(self, served: ServedTurn) -> None:
        self._running.pop(served.turn.id, None)
        if served.timer is not None:
            served.timer.cancel()

    def of(self, turn_id: str, principal: Principal) -> ServedTurn | None:
        """Returns a turn that runs here; None where there is none of that principal."""
        served = self._running.get(turn_id)
        if served is None or served.principal != principal:
            return None
        return served

    @contextmanager
    def reading(self, served: ServedTurn) -> Generator[None]:
        """Counts a reader. A turn that is no plan ends some time after the last one has left."""
        served.readers += 1
        if served.timer is not None:
            served.timer.cancel()
            served.timer = None
        try:
            yield
        finally:
            served.readers -= 1
            self._stop_unread(served)

    def _stop_unread(self, served: ServedTurn) -> None:
        """Stops a turn later, unless somebody comes to read it; a plan goes on without readers."""
        if served.readers or served.is_plan or served.turn.done:
            return
        loop = asyncio.get_running_loop()
        served.timer = loop.call_later(self._limits.reader_seconds, served.turn.cancel)
