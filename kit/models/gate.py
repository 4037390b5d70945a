"""One gate for all calls under a provider's key, whichever agent of whichever turn makes them: the
limits of a minute, and pauses that the provider asks for."""

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from kit.core.model import ModelSpec, RateLimits
from kit.models.access import ModelAccess
from kit.models.deadline import seconds_left
from kit.models.diagnosis import pause_asked, status_of

MINUTE = 60.0
JITTER = 0.1
"""A pause is longer than was asked for by up to this share, so that not everybody comes back at once."""
_ROUNDING = 1e-6
"""Seconds below which a wait is a rounding error, which no clock moves by."""
_REAL = ("openai", "langchain")


class RateLimited(Exception):
    """Raised where a call would wait at the gate for longer than whoever makes it has."""

    status_code = 429


@dataclass
class _Minute:
    """What went through on one event loop."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever waits: the others wait behind it, in order."""
    requests: deque[float] = field(default_factory=deque[float])
    tokens: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    open_at: float = 0.0

    def pause(self, limits: RateLimits, tokens: int, now: float) -> float:
        """Seconds until a request of so many tokens keeps within the limits; one of more than a minute's goes alone."""
        while self.requests and self.requests[0] <= now - MINUTE:
            self.requests.popleft()
        while self.tokens and self.tokens[0][0] <= now - MINUTE:
            self.tokens.popleft()
        free_at = self.open_at
        if limits.requests is not None and len(self.requests) >= limits.requests:
            free_at = max(free_at, self.requests[-limits.requests] + MINUTE)
        if limits.tokens is not None:
            excess = tokens + sum(count for _, count in self.tokens) - limits.tokens
            for sent_at, count in self.tokens:
                if excess <= 0:
                    break
                free_at = max(free_at, sent_at + MINUTE)
                excess -= count
        if free_at - now > _ROUNDING:
            return free_at - now
        return 0.0


class Gate:
    """Lets calls through so that no minute holds more than its limits, first come, first served."""

    def __init__(self) -> None:
        self._limits_of: dict[str, RateLimits] = {}
        self.limits = RateLimits()
        """The narrowest that any model under the key names."""
        self._minutes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Minute] = WeakKeyDictionary()

    def admit(self, model: str, limits: RateLimits) -> None:
        """Notes the limits of a model that goes through it."""
        self._limits_of[model] = limits
        requests: list[int] = []
        tokens: list[int] = []
        for limits in self._limits_of.values():
            if limits.requests is not None:
                requests.append(limits.requests)
            if limits.tokens is not None:
                tokens.append(limits.tokens)
        self.limits = RateLimits(
            requests=min(requests, default=None), tokens=min(tokens, default=None)
        )

    async def enter(self, tokens: int) -> float:
        """Waits until a call that reads about so many tokens may be made, and returns for how many seconds; 0.0
        where it was let through at once, however long a busy machine took for that.

        Raises RateLimited where that is too late.
        """
        loop = asyncio.get_running_loop()
        came_at = loop.time()
        minute = self._minute()
        had_to_wait = minute.lock.locked()
        async with minute.lock:
            while (pause := minute.pause(self.limits, tokens, loop.time())) > 0:
                had_to_wait = True
                if pause >= seconds_left():
                    raise RateLimited(
                        f"the limits of this key let no call through for another {pause:.0f} s"
                    )
                await asyncio.sleep(pause)
            minute.requests.append(loop.time())
            minute.tokens.append((loop.time(), tokens))
        return loop.time() - came_at if had_to_wait else 0.0

    async def opened(self) -> None:
        """Waits, however long it takes, until a small call would be let through: the time of no turn runs yet."""
        loop = asyncio.get_running_loop()
        minute = self._minute()
        while (pause := minute.pause(self.limits, 0, loop.time())) > 0:
            await asyncio.sleep(pause)

    def spent(self, tokens: int) -> None:
        """Books tokens of a call beyond those it was let through with."""
        now = asyncio.get_running_loop().time()
        self._minute().tokens.append((now, max(0, tokens)))

    def heed(self, error: BaseException) -> None:
        """Closes for everybody where the provider said that it is asked too much, for as long as it says."""
        if status_of(error) == 429 and not isinstance(error, RateLimited):
            loop = asyncio.get_running_loop()
            minute = self._minute()
            seconds = pause_asked(error) * random.uniform(1, 1 + JITTER)
            minute.open_at = max(minute.open_at, loop.time() + seconds)

    def _minute(self) -> _Minute:
        # Each loop has its own, as it has a clock of its own, and locks belong to one loop.
        return self._minutes.setdefault(asyncio.get_running_loop(), _Minute())


_gates: dict[tuple[str, str], Gate] = {}


def gate_of(spec: ModelSpec, access: ModelAccess) -> Gate | None:
    """The gate of a model's key, the same for all models under it; None for a model that no provider limits."""
    if spec.provider not in _REAL:
        return None
    # A key is known by the variable that holds it, else by the provider that reads its own.
    url = spec.base_url or access.base_url or ""
    owner = spec.api_key_env or spec.model.partition(":")[0]
    gate = _gates.setdefault((url, owner), Gate())
    gate.admit(spec.key, spec.limits)
    return gate
