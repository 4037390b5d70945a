"""What a tenant may have at once and in a minute. One process counts its own."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kit.runtime.handle import Turn


@dataclass(frozen=True)
class Limits:
    """What the API allows."""

    turns_at_once: int = 8
    """Turns that a tenant may have running."""
    turns_a_minute: int = 120
    """Turns that a tenant may begin within a minute."""
    reader_seconds: float = 30.0
    """Seconds that a turn goes on while nobody reads it; a plan goes on for as long as it takes."""
    most_bytes: int = 1_000_000
    """Bytes of the body of a request."""
    requests_kept: int = 10_000
    """Requests whose `Idempotency-Key` is remembered."""


@dataclass
class Tenants:
    """The turns of each tenant."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    running: Counter[str] = field(default_factory=Counter[str])
    begun: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def wait(self, tenant_id: str) -> float:
        """Returns the seconds until this tenant may begin another turn; 0 for now."""
        begun = self.begun[tenant_id]
        now = self.clock()
        while begun and begun[0] <= now - 60:
            begun.popleft()
        if self.running[tenant_id] >= self.limits.turns_at_once:
            return 1.0
        if len(begun) >= self.limits.turns_a_minute:
            return begun[0] + 60 - now
        return 0.0

    def count(self, tenant_id: str, turn: Turn) -> None:
        """Counts a turn until it ends."""
        self.begun[tenant_id].append(self.clock())
        self.running[tenant_id] += 1
        turn.on_end(lambda: self.running.subtract([tenant_id]))
