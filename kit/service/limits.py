"""What one asker may have at once and in a minute. One process counts its own."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kit.runtime.handle import Turn


@dataclass(frozen=True)
class Limits:
    """What is allowed."""

    turns_at_once: int = 8
    """Turns that one asker may have running."""
    turns_a_minute: int = 120
    """Turns that one asker may begin within a minute."""
    reader_seconds: float = 30.0
    """Seconds that a turn goes on while nobody reads it; a plan goes on for as long as it takes."""
    most_bytes: int = 1_000_000
    """Bytes of the body of a request."""


@dataclass
class TurnCounts:
    """The turns of each asker: a tenant of the API, a visitor of the app."""

    limits: Limits
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
            return 1.0
        if len(begun) >= self.limits.turns_a_minute:
            return begun[0] + 60 - now
        return 0.0

    def begin(self, asker: str) -> None:
        """Counts a turn, which `end` takes back from those that run."""
        self.begun[asker].append(self.clock())
        self.running[asker] += 1

    def end(self, asker: str) -> None:
        """Says that a turn has ended."""
        self.running[asker] -= 1

    def count(self, asker: str, turn: Turn) -> None:
        """Counts a turn until it ends."""
        self.begin(asker)
        turn.on_end(lambda: self.end(asker))
