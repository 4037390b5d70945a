"""A turn of another process over the same store: followed over the bus, and where that says nothing, over
the store; stopped over the bus."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from kit.core.context import Principal
from kit.core.documents.document import WAITING, Plan
from kit.core.errors import ResumeError, StoreError
from kit.core.event import Event
from kit.core.fault_injection import Injection
from kit.patterns.plan_execute import PLAN
from kit.planning.plan import OVER
from kit.planning.record import cancel
from kit.runtime.elsewhere.broadcast import STOPS, turn_stream
from kit.runtime.elsewhere.told_turn import reply_of
from kit.runtime.handle import Reply, Status, Turn
from kit.runtime.log import TurnLog
from kit.stores.bus.bus import FIRST, Bus, BusError
from kit.stores.rows import events_of

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

LOOK = 2.0
"""Seconds between two looks of this process for processes that died, however many turns it follows."""
SILENCE = 1.0
"""Seconds without a word over the bus, after which the store is asked."""


class SharedKit(Protocol):
    """What of a kit it needs: the store and the bus that processes share."""

    @property
    def store(self) -> "TurnStore": ...
    @property
    def bus(self) -> Bus: ...


def join_turn(kit: SharedKit, turn_id: str, principal: Principal) -> Turn:
    """Returns a handle of a turn of a principal that another process runs, or is about to run.

    Its reply raises ResumeError where that process died in the middle of it.
    """
    return Turn(_Follower(kit, turn_id, principal))


class _Follower:
    """Does for the handle of a turn what its process cannot: gathers its events, and passes its stop on."""

    begun = True
    stop_requested = False
    injection: Injection | None = None

    def __init__(self, kit: SharedKit, turn_id: str, principal: Principal):
        loop = asyncio.get_running_loop()
        self.log = TurnLog(turn_id, loop.time)
        self.reply: asyncio.Future[Reply] = loop.create_future()
        self._kit = kit
        self._principal = principal
        self._has_news = False
        self._stopping: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Follows the turn to its end."""
        try:
            await self._follow()
            reply = reply_of(self.log.events)
            if reply is None:
                problem = ResumeError(f"turn {self.log.turn_id!r} ended before it had answered")
                self.reply.set_exception(problem)
                # Who does not wait for the reply is told by the log, which ends.
                self.reply.exception()
            else:
                self.reply.set_result(reply)
        except StoreError as error:
            self.reply.set_exception(error)
            self.reply.exception()
        finally:
            self.log.close()
            self.reply.cancel()

    async def _follow(self) -> None:
        after = FIRST
        if not await self._is_theirs():
            return
        self._take_stored()
        while not self._has_ended:
            try:
                stream = turn_stream(self.log.turn_id)
                entries = await self._kit.bus.read(stream, after, SILENCE)
            except BusError:
                entries = []
                await asyncio.sleep(SILENCE)
            for entry in entries:
                after = entry.id
                self._take(events_of(entry.body["events"]))
            if not entries:
                is_over = await self._is_over()
                if is_over or not self._has_news:
                    self._take_stored()
                if is_over:
                    return

    def _take(self, events: Sequence[Event]) -> None:
        """Takes events in their order; of what is told twice, or after a gap, nothing is taken."""
        for event in events:
            if event.seq == len(self.log.events):
                self.log.take(event)
                self._has_news = True
            elif event.seq > len(self.log.events):
                # A part was not told: from now on the store says it.
                self._has_news = False

    def _take_stored(self) -> None:
        with suppress(StoreError):
            has_news = self._has_news
            self._take(self._kit.store.events(self.log.turn_id, self._principal))
            self._has_news = has_news

    @property
    def _has_ended(self) -> bool:
        events = self.log.events
        return bool(events) and events[-1].kind == "completed"

    async def _is_theirs(self) -> bool:
        """Whether the principal has such a turn, or a plan that will begin it: the bus asks nobody who listens."""
        if self._kit.store.turn(self.log.turn_id, self._principal) is not None:
            return True
        return await self._plan() is not None

    async def _plan(self) -> Plan | None:
        plans = self._kit.store.open_documents().plans
        return await plans.read(self._principal, f"{PLAN}{self.log.turn_id}")

    async def _is_over(self) -> bool:
        """Asks the store whether the turn has ended, in order or with its process."""
        try:
            self._kit.store.mark_interrupted(LOOK)
            record = self._kit.store.turn(self.log.turn_id, self._principal)
            if record is not None:
                return record.status != "running"
            # A plan that waits for a worker; its user may stop it before one comes.
            plan = await self._plan()
            return plan is None or plan.status in (*OVER, *WAITING)
        except StoreError:
            return False

    def stop(self) -> bool:
        """Has its process stop the turn."""
        self._stopping = asyncio.ensure_future(self._tell_to_stop())
        return False

    async def _tell_to_stop(self) -> None:
        with suppress(BusError):
            await self._kit.bus.publish(STOPS, {"turn_id": self.log.turn_id})
            await asyncio.sleep(SILENCE)
        if not self._has_ended:
            # Its process has not heard it; of a plan it notices that with its next write.
            plans = self._kit.store.open_documents().plans
            await cancel(plans, f"{PLAN}{self.log.turn_id}", self._principal)

    def leave(self, status: Status) -> Any:
        """Leaves the turn to its process."""
