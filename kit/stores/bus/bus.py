"""Streams of messages between the parts of a service. They wake readers up; what is true stands in the store."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kit.core.errors import KitError

LONGEST = 10_000
"""Entries that a stream has at most; of a longer one the oldest go."""
FIRST = "0"
"""Stands before the first entry of every stream."""


class BusError(KitError):
    """The bus could not be reached. What was to be said on it is said nowhere else."""


class Entry(NamedTuple):
    """A message and its place in the stream."""

    id: str
    body: Mapping[str, Any]


class Bus(Protocol):
    """Every reader gets every entry, and remembers itself how far it has read."""

    async def publish(self, stream: str, body: Mapping[str, Any]) -> str:
        """Adds an entry and returns its id. Raises BusError."""
        ...

    async def read(self, stream: str, after: str = FIRST, wait: float = 0.0) -> list[Entry]:
        """Returns the entries after the one of that id; waits so many seconds for the first of them.
        Raises BusError."""
        ...

    async def last(self, stream: str) -> str:
        """Returns the id of the newest entry, FIRST where there is none. Raises BusError."""
        ...


@dataclass
class _Stream:
    entries: list[Entry] = field(default_factory=list[Entry])
    last: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)


class LocalBus:
    """The Bus protocol within one event loop; its entries end with the process."""

    def __init__(self) -> None:
        self._streams = defaultdict[str, _Stream](_Stream)

    async def publish(self, stream: str, body: Mapping[str, Any]) -> str:
        """Adds an entry and wakes the readers that wait for one; returns its id."""
        state = self._streams[stream]
        state.last += 1
        state.entries.append(Entry(str(state.last), body))
        if len(state.entries) > LONGEST:
            del state.entries[0]
        news, state.news = state.news, asyncio.Event()
        news.set()
        return str(state.last)

    async def read(self, stream: str, after: str = FIRST, wait: float = 0.0) -> list[Entry]:
        """Returns the entries after the one of that id; waits so many seconds for the first of them."""
        state = self._streams[stream]
        number = int(after)
        if state.last <= number:
            try:
                async with asyncio.timeout(wait):
                    await state.news.wait()
            except TimeoutError:
                return []
        return [entry for entry in state.entries if int(entry.id) > number]

    async def last(self, stream: str) -> str:
        """Returns the id of the newest entry, FIRST where there is none."""
        return str(self._streams[stream].last)
