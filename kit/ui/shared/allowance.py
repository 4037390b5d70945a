"""What one visitor of the app may have: turns at once, turns in a minute, dollars in a day."""

import datetime
import math
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from kit.core.context import Principal
from kit.core.display.count import many
from kit.core.errors import KitError
from kit.service.limits import ALL_RUN, Limits, TurnCounts
from kit.settings import Settings

if TYPE_CHECKING:
    from kit.stores.bus.shared_turns import SharedTurns
    from kit.stores.turn_store import TurnStore

USUAL = Limits(turns_at_once=8, turns_a_minute=60)
"""Outside the demo, where nothing else is set; the page Compare starts seven turns with one click."""
NO_LIMIT = Limits(turns_at_once=sys.maxsize, turns_a_minute=sys.maxsize)
"""In the demo, where all are one visitor."""
NEWEST = 200
"""Turns that are read at first for what they cost."""
DAY = datetime.timedelta(days=1)


class LimitReached(KitError):
    """A visitor who has had what one may have for now."""


class Allowance:
    """Counts the turns that visitors begin, in all processes that share a Redis, and adds up what their stored ones
    cost."""

    def __init__(self, settings: Settings, store: "TurnStore", shared: "SharedTurns | None"):
        usual = USUAL
        if settings.visitor == "demo":
            usual = NO_LIMIT
        self._limits = Limits(
            turns_at_once=settings.visitor_turns_at_once or usual.turns_at_once,
            turns_a_minute=settings.visitor_turns_a_minute or usual.turns_a_minute,
        )
        self._dollars = settings.visitor_dollars_a_day
        self._store = store
        self._counts = TurnCounts(self._limits, shared)

    def check_spending(self, principal: Principal) -> None:
        """Raises LimitReached for a visitor whose turns of today cost as much as a day may."""
        if self._dollars is None:
            return
        now = datetime.datetime.now(datetime.UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        cost = _cost_since(self._store, principal, midnight.timestamp())
        if cost < self._dollars:
            return
        hours = math.ceil((midnight + DAY - now).total_seconds() / 3600)
        raise LimitReached(
            f"Your questions of today have cost ${cost:,.2f}, and a day may cost ${self._dollars:,.2f}. "
            f"You can ask again after midnight (UTC), in at most {many(hours, 'hour')}."
        )

    @asynccontextmanager
    async def slot(self, principal: Principal) -> AsyncGenerator[Callable[[object], None]]:
        """Counts a turn that begins in the block, on the loop of the kit, and gives what is called when it has ended.

        Raises LimitReached for a visitor who may begin no turn now.
        """
        asker = f"visitor:{principal}"
        slot = uuid4().hex
        seconds = await self._counts.begin(asker, slot)
        at_once = self._limits.turns_at_once
        if seconds == ALL_RUN:
            raise LimitReached(
                f"{many(at_once, 'question')} of yours {'is' if at_once == 1 else 'are'} being answered, "
                "and no more are possible at once. Ask again when one has its answer."
            )
        if seconds:
            raise LimitReached(
                f"You have asked {many(self._limits.turns_a_minute, 'question')} within a minute, which is as "
                f"many as one may. You can ask again in {many(math.ceil(seconds), 'second')}."
            )

        def end(_: object) -> None:
            self._counts.end(asker, slot)

        try:
            yield end
        except BaseException:
            end(None)
            raise


def _cost_since(store: "TurnStore", principal: Principal, since: float) -> float:
    """Returns what the turns of a principal cost that began since a moment; those that still run, nothing yet."""
    newest = NEWEST
    while True:
        turns = store.turns(tenant_id=principal.tenant_id, user_id=principal.user_id, limit=newest)
        # An older one among them, or fewer than asked for: there are no more of today.
        if len(turns) < newest or turns[-1].started_at < since:
            return sum(turn.cost or 0.0 for turn in turns if turn.started_at >= since)
        newest *= 4
