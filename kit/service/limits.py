"""What one asker may have at once and in a minute. One process counts its own, those with a Redis count together."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kit.core.limits import MOST_BYTES

if TYPE_CHECKING:
    from kit.stores.bus.shared_turns import SharedTurns


ALL_RUN = 1.0
"""Seconds after which it may be tried again, where as many turns run as one may have."""


@dataclass(frozen=True)
class Limits:
    """What is allowed."""

    turns_at_once: int = 8
    """Turns that one asker may have running."""
    turns_a_minute: int = 120
    """Turns that one asker may begin within a minute."""
    reader_seconds: float = 30.0
    """Seconds that a turn goes on while nobody reads it; a plan goes on for as long as it takes."""
    most_bytes: int = MOST_BYTES
    """Bytes of the body of a request."""


@dataclass
class TurnCounts:
    """The turns of each asker: a tenant of the API, a visitor of the app."""

    limits: Limits
    shared: "SharedTurns | None" = None
    """Where the turns of other processes are counted."""
    clock: Callable[[], float] = time.monotonic
    running: Counter[str] = field(default_factory=Counter[str])
    begun: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def wait(self, asker: str) -> float:
        """Returns the seconds until this asker may begin another turn; 0 for now."""
        begun = self.begun[asker]
        now = self.clock()
        while begun and begun[0] <= now - 60:
            begun.popleft()
        if self.running[asker] >= self.limits.turns_at_once:
            return ALL_RUN
        if len(begun) >= self.limits.turns_a_minute:
            return begun[0] + 60 - now
        return 0.0

    async def begin(self, asker: str, turn: str) -> float:
        """Counts a turn, which has an id of its own here and which `end` takes back from those that run, and
        returns 0; or the seconds until this asker may begin one."""
        seconds = self.wait(asker)
        if seconds:
            return seconds
        # Before anything is waited for: another request must not take the same place.
        self.begun[asker].append(self.clock())
        self.running[asker] += 1
        if self.shared is not None:
            limits = self.limits
            seconds = await self.shared.take(
                asker, turn, limits.turns_at_once, limits.turns_a_minute
            )
        if seconds:
            self.begun[asker].pop()
            self.running[asker] -= 1
        return seconds

    def end(self, asker: str, turn: str) -> None:
        """Says that a turn has ended."""
        self.running[asker] -= 1
        if self.shared is not None:
            self.shared.give_back(asker, turn)
