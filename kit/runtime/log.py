"""The append-only log of one turn: stamps bodies into events, and lets anyone follow from any point."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Container

from kit.core.bodies.speech import Status
from kit.core.event import INTERNAL, Body, Event
from kit.core.secret import without_secrets
from kit.core.status import OWN, UNKNOWN
from kit.core.value import builder

_new_event = builder(Event)


class TurnLog:
    """Events of one turn in order. Emitting is synchronous; followers are woken, never waited for.

    `statuses` is the deck's vocabulary: a status outside of it may be prose, or worse, and is kept
    nowhere as it was sent. Nor is any of the `secrets`.
    """

    def __init__(
        self,
        turn_id: str,
        clock: Callable[[], float],
        statuses: Container[str] = OWN,
        secrets: Collection[str] = (),
    ):
        self.turn_id = turn_id
        self.events: list[Event] = []
        self.closed = self._sealed = False
        self._clock = clock
        self._statuses = statuses
        self.secrets = secrets
        self._began = clock()
        self._spans = 0
        self._next_seq = 0
        self._waiting: list[asyncio.Future[None]] = []
        self.at_close: list[asyncio.Future[None]] = []
        """Of those who wait for the end of the turn alone."""

    def now(self) -> float:
        """Seconds since the turn began, to the microsecond: what is finer only takes room."""
        return ((self._clock() - self._began) * 1e6 + 0.5) // 1 / 1e6

    def run_on(self, clock: Callable[[], float]) -> None:
        """Takes the time from `clock`, which says how many seconds the turn has taken."""
        self._clock = clock
        self._began = 0.0

    def new_span(self) -> str:
        """An id for a span to come; unique within the turn, and the same on every run of the same turn."""
        self._spans += 1
        return f"s{self._spans}"

    def emit(self, body: Body, span_id: str, parent_span_id: str | None = None) -> Event:
        """Stamps a body and appends it. Events after the log was closed are dropped."""
        # A tool may send anything as a status, the words of its user included.
        if body.kind == "status" and body.status not in self._statuses:
            body = Status(agent=body.agent, status=UNKNOWN)
        if self.secrets:
            body = without_secrets(body, self.secrets)
        event = _new_event(
            seq=self._next_seq,
            # as in now()
            at=((self._clock() - self._began) * 1e6 + 0.5) // 1 / 1e6,
            turn_id=self.turn_id,
            span_id=span_id,
            parent_span_id=parent_span_id,
            body=body,
        )
        if not self._sealed:
            self.events.append(event)
            self._next_seq += 1
            if self._waiting:
                self._wake()
        return event

    def seal(self, body: Body, span_id: str) -> Event:
        """Takes no more events and returns the one that `close()` may end with: followers wait
        until the turn is stored."""
        self._sealed = True
        return self.emit(body, span_id)

    def close(self, last: Event | None = None) -> None:
        """No event follows but the last one; followers run to their end."""
        self.closed = self._sealed = True
        if last is not None:
            self.events.append(last)
        self._waiting += self.at_close
        self.at_close = []
        self._wake()

    async def follow(self, from_seq: int = 0) -> AsyncIterator[Event]:
        """Every event from `from_seq` on, as it comes, until the log is closed; what is for history
        alone is left out."""
        seq = from_seq
        while True:
            while seq < len(self.events):
                event = self.events[seq]
                if event.body.kind not in INTERNAL:
                    yield event
                seq += 1
            if self.closed:
                return
            await self.wait_for(seq)

    async def wait_for(self, seq: int) -> None:
        """Waits until there is an event of that number, or the log is closed."""
        while seq >= len(self.events) and not self.closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def take(self, event: Event) -> None:
        """Appends an event as another process has stamped it."""
        self.events.append(event)
        self._next_seq = event.seq + 1
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiting:
            # those who do not wait any more are left out
            if not waiter.done():
                waiter.set_result(None)
        self._waiting = []
