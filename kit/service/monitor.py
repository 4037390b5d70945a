"""The monitor: counts how plans do, writes down which alerts fire and which have ended, and tells a webhook.

Any number of monitors may look at one store: each alert is written once an hour, by whoever is first,
and told by the same one.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kit.core.context import OPERATOR
from kit.core.documents.document import AgentEvent
from kit.core.errors import StoreError
from kit.core.value import Value
from kit.metrics.plan_alerts import WINDOW, Firing, firing
from kit.metrics.plan_health import HealthCounts, PlanHealth, count_health, plan_health
from kit.stores.documents.protocol import Documents, EventFilter

log = logging.getLogger("kit.monitor")
ALERT_FIRED = "alert.fired"
ALERT_ENDED = "alert.ended"
EVERY = 60.0
"""Seconds between two looks."""
MEMORY = 86_400.0
"""Seconds after which an alert that nobody has looked at since counts as ended."""
MOST_EVENTS = 10_000
Notify = Callable[[AgentEvent], Awaitable[None]]


class ActiveAlert(Value):
    """An alert that fires now."""

    firing: Firing
    since: float | None
    """When a monitor first saw it, in seconds since the epoch; None where none has yet."""


class TenantWatch(Value):
    """How the plans of a tenant did in the last hour."""

    tenant_id: str
    at: float
    health: PlanHealth
    alerts: tuple[ActiveAlert, ...]


@dataclass(frozen=True, slots=True)
class Monitor:
    """Looks at one tenant, or at all."""

    documents: Documents
    tenant_id: str | None = None
    notify: Notify | None = None
    """Is told of each event that this monitor was the first to write."""
    clock: Callable[[], float] = time.time
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    async def look(self) -> list[TenantWatch]:
        """Returns how each tenant does, and writes down which alerts began and ended. Raises StoreError."""
        now = self.clock()
        open_alerts = await open_alerts_of(self.documents, self.tenant_id, now)
        watches, _ = await self._watch(open_alerts, now, now)
        new_events: list[AgentEvent] = []
        for watch in watches:
            new_events += await self._write(watch, open_alerts)
        if self.notify is not None:
            await asyncio.gather(*(self.notify(event) for event in new_events))
        return watches

    async def only_look(self) -> tuple[list[TenantWatch], PlanHealth]:
        """Returns how each tenant does of whom anything happened in the last hour, or of whom an alert was open, and
        how all do together. It writes nothing. Raises StoreError."""
        now = self.clock()
        open_alerts = await open_alerts_of(self.documents, self.tenant_id, now)
        return await self._watch(open_alerts, now, None)

    async def _watch(
        self, open_alerts: Mapping[tuple[str, str], AgentEvent], now: float, begin: float | None
    ) -> tuple[list[TenantWatch], PlanHealth]:
        counts = await count_health(self.documents, self.tenant_id, now - WINDOW)
        tenants = {tenant_id for tenant_id, _ in open_alerts} | set(counts.tenants)
        watches = [
            _tenant_watch(tenant_id, counts, open_alerts, now, begin)
            for tenant_id in sorted(tenants)
        ]
        return watches, plan_health(counts)

    async def run(self, on_look: Callable[[Sequence[TenantWatch]], None]) -> None:
        """Looks every minute, until it is cancelled; a store that cannot be read is asked again."""
        while True:
            try:
                on_look(await self.look())
            except StoreError as error:
                log.warning("nobody knows how plans do: %s", error)
            await asyncio.sleep(EVERY)

    async def _write(
        self, watch: TenantWatch, open_alerts: Mapping[tuple[str, str], AgentEvent]
    ) -> list[AgentEvent]:
        """Writes what has begun and what has ended, and returns what nobody else had written."""
        hour = watch.at // WINDOW
        events: list[AgentEvent] = []
        names: set[str] = set()
        for alert in watch.alerts:
            names.add(alert.firing.name)
            last = open_alerts.get((watch.tenant_id, alert.firing.name))
            # One that goes on is said again each hour: whoever missed the first word hears the next.
            if last is None or last.ts // WINDOW < hour:
                fields = {**alert.firing.model_dump(exclude={"name"}), "since": alert.since}
                events.append(self._event(ALERT_FIRED, watch, alert.firing.name, fields))
        for (tenant_id, name), last in open_alerts.items():
            # It lasts for the hour in which it fired, so that a figure at its threshold makes no noise.
            is_over = tenant_id == watch.tenant_id and name not in names
            if is_over and last.ts // WINDOW < hour:
                events.append(self._event(ALERT_ENDED, watch, name, {"since": since_of(last)}))
        own: list[AgentEvent] = []
        for event in events:
            stored_event = await self.documents.events.append(event)
            if stored_event.payload == event.payload:
                own.append(stored_event)
        return own

    def _event(
        self, event_type: str, watch: TenantWatch, name: str, fields: Mapping[str, Any]
    ) -> AgentEvent:
        # The same id in every monitor: the log keeps an event once.
        hour = int(watch.at // WINDOW)
        return AgentEvent(
            event_id=f"{event_type}:{name}:{hour}",
            tenant_id=watch.tenant_id,
            event_type=event_type,
            ts=watch.at,
            status=name,
            payload={**fields, "monitor": self.id},
        )


def _tenant_watch(
    tenant_id: str,
    counts: HealthCounts,
    open_alerts: Mapping[tuple[str, str], AgentEvent],
    now: float,
    begin: float | None,
) -> TenantWatch:
    """`begin` is when an alert began that nobody has written yet."""
    health = plan_health(counts.of(tenant_id))
    alerts: list[ActiveAlert] = []
    for alert in firing(health):
        last = open_alerts.get((tenant_id, alert.name))
        since = begin if last is None else since_of(last)
        alerts.append(ActiveAlert(firing=alert, since=since))
    return TenantWatch(tenant_id=tenant_id, at=now, health=health, alerts=tuple(alerts))


async def open_alerts_of(
    documents: Documents, tenant_id: str | None, now: float
) -> dict[tuple[str, str], AgentEvent]:
    """Returns tenant and name -> the newest `alert.fired` of each alert that has not ended since. Raises StoreError."""
    newest: dict[tuple[str, str], AgentEvent] = {}
    for event_type in (ALERT_FIRED, ALERT_ENDED):
        by = EventFilter(tenant_id=tenant_id or OPERATOR, event_type=event_type, since=now - MEMORY)
        for event in await documents.events.query(by, MOST_EVENTS, newest_first=True):
            key = event.tenant_id, event.status or ""
            if key not in newest or newest[key].seq < event.seq:
                newest[key] = event
    return {key: event for key, event in newest.items() if event.event_type == ALERT_FIRED}


def since_of(event: AgentEvent) -> float:
    """Returns when an alert began, of any event that is about it."""
    return float(cast("dict[str, Any]", event.payload)["since"])
