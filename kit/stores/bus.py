"""Streams of messages between the parts of a service: groups of readers, acknowledgement,
redelivery of what a dead one held."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

LONGEST = 10_000
"""Entries that a stream keeps; of a longer one the oldest go, acknowledged or not."""


class Entry(NamedTuple):
    """A message and its number in the stream, from 1."""

    id: int
    body: Mapping[str, Any]


class Bus(Protocol):
    """Each group of a stream gets every entry, from the first on; each entry is one reader's until
    that acknowledges it."""

    async def publish(self, stream: str, body: Mapping[str, Any]) -> int:
        """Adds an entry and returns its number."""
        ...

    async def read(
        self, stream: str, group: str, reader: str, *, wait: float = 0.0, limit: int = 16
    ) -> list[Entry]:
        """The next entries that no reader of the group was given; waits so many seconds for the first of them."""
        ...

    async def acknowledge(self, stream: str, group: str, *ids: int) -> int:
        """Says that these are done with; returns how many were still open."""
        ...

    async def claim(self, stream: str, group: str, reader: str, idle: float) -> list[Entry]:
        """Gives this reader what others of the group have held for `idle` seconds without acknowledging it."""
        ...


class _Delivery(NamedTuple):
    reader: str
    at: float


@dataclass
class _Group:
    last: int = 0
    open: dict[int, _Delivery] = field(default_factory=dict[int, _Delivery])


@dataclass
class _Stream:
    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    groups: defaultdict[str, _Group] = field(
        default_factory=lambda: defaultdict[str, _Group](_Group)
    )
    last: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)


class LocalBus:
    """The Bus protocol within one event loop; its entries end with the process."""

    def __init__(self) -> None:
        self._streams = defaultdict[str, _Stream](_Stream)

    async def publish(self, stream: str, body: Mapping[str, Any]) -> int:
        """Adds an entry and wakes the readers that wait for one; returns its number."""
        state = self._streams[stream]
        state.last += 1
        state.entries[state.last] = Entry(state.last, body)
        if len(state.entries) > LONGEST:
            del state.entries[next(iter(state.entries))]
        news, state.news = state.news, asyncio.Event()
        news.set()
        return state.last

    async def read(
        self, stream: str, group: str, reader: str, *, wait: float = 0.0, limit: int = 16
    ) -> list[Entry]:
        """The next entries that no reader of the group was given; waits so many seconds for the first of them."""
        state = self._streams[stream]
        loop = asyncio.get_running_loop()
        readers = state.groups[group]
        until = loop.time() + wait
        while readers.last >= state.last and loop.time() < until:
            try:
                async with asyncio.timeout_at(until):
                    await state.news.wait()
            except TimeoutError:
                break
        first = max(readers.last + 1, next(iter(state.entries), 1))
        ids = range(first, min(state.last, first + limit - 1) + 1)
        return self._deliver(state, readers, reader, list(ids))

    async def acknowledge(self, stream: str, group: str, *ids: int) -> int:
        """Says that these are done with; returns how many were still open."""
        open = self._streams[stream].groups[group].open
        total = 0
        for id in ids:
            total += open.pop(id, None) is not None
        return total

    async def claim(self, stream: str, group: str, reader: str, idle: float) -> list[Entry]:
        """Gives this reader what others of the group have held for `idle` seconds without acknowledging it."""
        state = self._streams[stream]
        now = asyncio.get_running_loop().time()
        readers = state.groups[group]
        late: list[int] = []
        for id, delivery in readers.open.items():
            if delivery.reader != reader and now - delivery.at >= idle:
                late.append(id)
        return self._deliver(state, readers, reader, late)

    def _deliver(
        self, stream: _Stream, readers: _Group, reader: str, ids: list[int]
    ) -> list[Entry]:
        now = asyncio.get_running_loop().time()
        for id in ids:
            readers.open[id] = _Delivery(reader, now)
            readers.last = max(readers.last, id)
        entries: list[Entry] = []
        for id in ids:
            if id in stream.entries:
                entries.append(stream.entries[id])
        return entries
