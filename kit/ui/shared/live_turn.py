"""A turn that this process runs or follows: its events, carried from the event loop to the threads that follow it."""

import threading
from dataclasses import dataclass, field

from kit.core.context import Session
from kit.core.event import Event
from kit.runtime.handle import Turn
from kit.service.remote_turn import RemoteTurn
from kit.ui.shared.turn_fold import advance, interrupt
from kit.ui.shared.turn_view import TurnView

GATHER = 0.02
"""Seconds a follower waits for more events after the first: a page is drawn once for a burst."""


@dataclass(frozen=True)
class Batch:
    """The next events of a turn, in order, and whether the turn is over."""

    events: tuple[Event, ...]
    done: bool


@dataclass(frozen=True)
class LiveTurn:
    """A turn that this process runs or follows, with its events where any thread may read them."""

    turn: Turn | RemoteTurn
    session: Session
    message: str
    asked_at: float
    elsewhere: bool = False
    """Whether another process runs it."""
    events: list[Event] = field(default_factory=list[Event])
    done: threading.Event = field(default_factory=threading.Event)
    change: threading.Condition = field(default_factory=threading.Condition)

    def view(self) -> TurnView:
        """Returns the turn as far as it has come."""
        over = self.done.is_set()
        view = TurnView(
            turn_id=self.turn.id,
            session_id=self.session.id,
            question=self.message,
            started_at=self.asked_at,
            elsewhere=self.elsewhere,
        )
        view = advance(view, tuple(self.events))
        if over and view.running:
            return interrupt(view)
        return view

    def batch(self, from_seq: int, timeout: float) -> Batch:
        """Waits up to `timeout` seconds for events from `from_seq` on, and returns them; none when there were none."""
        with self.change:
            # One draw for a burst of events; at the end of the turn nobody waits for more.
            if self.change.wait_for(
                lambda: self.done.is_set() or len(self.events) > from_seq, timeout
            ):
                self.change.wait_for(self.done.is_set, GATHER)
            return Batch(tuple(self.events[from_seq:]), self.done.is_set())

    async def pump(self) -> None:
        """Carries events to the threads that follow, until the turn is stored."""
        try:
            async for event in self.turn:
                with self.change:
                    self.events.append(event)
                    self.change.notify_all()
            await self.turn
        finally:
            with self.change:
                self.done.set()
                self.change.notify_all()
