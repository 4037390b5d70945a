"""Souls, plans and events in OpenSearch, and what a store of turns asks of all of it."""

import datetime
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.core.context import OPERATOR, Operator, Principal
from kit.core.documents.check import D, check, document_of
from kit.core.documents.document import WAITING, AgentEvent, Plan, Soul
from kit.core.errors import StorageSchemaError, StoreError
from kit.stores.documents.protocol import (
    Counts,
    Documents,
    EventField,
    EventFilter,
    PlanField,
    PlanFilter,
    Souls,
)
from kit.stores.documents.refusals import plan_has_changed, plan_is_there, readable_plans
from kit.stores.documents.sessions import SqlSessions
from kit.stores.opensearch.address import Address, address_of, id_of
from kit.stores.opensearch.cluster import Cluster, StoredDocument
from kit.stores.opensearch.memory import OpenSearchMemory, as_date, drop_expired
from kit.stores.opensearch.templates import EVENTS, KINDS, MEMORY, PLANS, SOULS

SOUL_TIMEOUT = 2.0
"""Seconds that a turn waits for its souls, and the loop with it."""
DAY = 86_400
EVERYTHING = 1 << 62
LARGEST = 10**11
"""More than the events of one day."""
_UNIQUE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class OpenSearchSouls:
    """The SoulStore protocol."""

    cluster: Cluster

    async def put(self, soul: Soul) -> None:
        text = check(soul)
        index = self.cluster.address.index(SOULS, soul.tenant_id)
        name = id_of(soul.tenant_id, soul.user_id or "")
        await self.cluster.run(self.cluster.overwrite, index, name, text)

    async def remove(self, tenant_id: str, user_id: str | None = None) -> bool:
        index = self.cluster.address.index(SOULS, tenant_id)
        name = id_of(tenant_id, user_id or "")
        return await self.cluster.run(self.cluster.delete, index, name)

    async def of(self, principal: Principal) -> Souls:
        return await self.cluster.run(self.read, principal, self.cluster.address.timeout)

    def read(self, principal: Principal, timeout: float) -> Souls:
        """Does the same without a loop, within a time."""
        tenant_id = principal.tenant_id
        names = [id_of(tenant_id, "")]
        if principal.user_id:
            names.append(id_of(tenant_id, principal.user_id))
        index = self.cluster.address.index(SOULS, tenant_id)
        souls: list[Soul | None] = [None, None]
        for number, document in enumerate(self.cluster.get_all(index, names, tenant_id, timeout)):
            if document is not None:
                souls[number] = _value_of(Soul, document)
        return souls[0], souls[1]


@dataclass(frozen=True, slots=True)
class OpenSearchPlans:
    """The PlanStore protocol. A plan is read by its id, which is never late."""

    cluster: Cluster

    async def create(self, plan: Plan) -> None:
        text = check(plan)
        index = self.cluster.address.index(PLANS, plan.tenant_id)
        name = id_of(plan.tenant_id, plan.plan_id)
        # Not made again by itself: it would find what it has written, and take that for another's.
        if not await self.cluster.run(self.cluster.put, index, name, text, None):
            raise plan_is_there(plan)

    async def read(self, principal: Principal, plan_id: str) -> Plan | None:
        document = await self.cluster.run(self._find, principal, plan_id)
        return _value_of(Plan, document) if document else None

    def _find(self, owner: Principal, plan_id: str) -> StoredDocument | None:
        index = self.cluster.address.index(PLANS, owner.tenant_id)
        document = self.cluster.get(index, id_of(owner.tenant_id, plan_id), owner.tenant_id)
        if document is None:
            return None
        is_it = document.fields["plan_id"] == plan_id
        is_theirs = document.fields["user_id"] == owner.user_id
        return document if is_it and is_theirs else None

    async def of(self, principal: Principal, limit: int = 50) -> list[Plan]:
        return await self.query(PlanFilter(**vars(principal)), limit)

    async def query(self, by: PlanFilter, limit: int = 1000) -> list[Plan]:
        # Ids of one moment are in the order in which they were made.
        newest = ({"created_at": "desc"}, {"plan_id": "desc"}, {"_index": "asc"})
        index = _indices_of(self.cluster.address, PLANS, by.tenant_id)
        documents = await self.cluster.run(
            self.cluster.search, index, _matching(by), by.tenant_id, limit, newest
        )
        return [_value_of(Plan, document) for document in documents]

    async def count(self, by: PlanFilter, fields: Sequence[PlanField]) -> Counts:
        index = _indices_of(self.cluster.address, PLANS, by.tenant_id)
        return await self.cluster.run(self.cluster.count, index, _matching(by), fields)

    async def replace(self, plan: Plan) -> Plan:
        check(plan)
        newer = plan.replace(version=plan.version + 1)
        if not await self.cluster.run(self._replace, plan, check(newer)):
            raise plan_has_changed(plan)
        return newer

    def _replace(self, plan: Plan, text: str) -> bool:
        document = self._find(plan.owner, plan.plan_id)
        if document is None or document.fields["version"] != plan.version:
            return False
        return self.cluster.put(document.index, id_of(plan.tenant_id, plan.plan_id), text, document)

    async def unfinished(self, limit: int = 500) -> list[Plan]:
        final = {"terms": {"status": ["complete", "failed", *WAITING]}}
        documents = await self.cluster.run(
            self.cluster.search,
            self.cluster.address.every_index(PLANS),
            {"bool": {"must_not": [final]}},
            OPERATOR,
            limit,
            ({"plan_id": "asc"}, {"_index": "asc"}, {"_seq_no": "asc"}),
        )
        return readable_plans(
            (document.fields.get("plan_id"), json.dumps(document.fields)) for document in documents
        )


@dataclass(frozen=True, slots=True)
class OpenSearchEvents:
    """The EventStore protocol, an index a day. Nothing here writes over an event."""

    cluster: Cluster

    async def append(self, event: AgentEvent) -> AgentEvent:
        fields = json.loads(check(event))
        # Its place is the number that OpenSearch gives it.
        del fields["seq"]
        return await self.cluster.run(self._append, event, json.dumps(fields))

    def _append(self, event: AgentEvent, text: str) -> AgentEvent:
        index = self._index(event, 0)
        name = id_of(event.tenant_id, event.event_id)
        # An id that was made at random is nobody else's; any other may have been reported on another day.
        is_unique = _UNIQUE.fullmatch(event.event_id) is not None
        if not is_unique:
            for document in self.cluster.search(
                _indices_of(self.cluster.address, EVENTS, event.tenant_id),
                {"ids": {"values": [name]}},
                event.tenant_id,
                1,
            ):
                return _event(document)
        number = self.cluster.create(index, name, text)
        if number is None:
            document = self.cluster.get(index, name, event.tenant_id)
            if document is None:
                raise StoreError(f"event {event.event_id!r} was deleted while it was written")
            return _event(document)
        if not is_unique:
            # Two processes that report it about midnight meet in two indices; who sees the other yields.
            for days in (-1, 1):
                document = self.cluster.get(self._index(event, days), name, event.tenant_id)
                if document is not None:
                    self.cluster.delete(index, name)
                    return _event(document)
        return event.replace(seq=_log_number(index, number))

    def _index(self, event: AgentEvent, days: int) -> str:
        """Returns the index of the day of an event, or of so many days later."""
        try:
            moment = datetime.datetime.fromtimestamp(event.ts + days * DAY, datetime.UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise StorageSchemaError(f"AgentEvent was not written, ts: {error}") from error
        return f"{self.cluster.address.index(EVENTS, event.tenant_id)}-{moment:%Y.%m.%d}"

    async def query(
        self, by: EventFilter, limit: int = 1000, *, newest_first: bool = False
    ) -> list[AgentEvent]:
        order = "desc" if newest_first else "asc"
        index = _indices_of(self.cluster.address, EVENTS, by.tenant_id)
        in_order = ({"_index": order}, {"_seq_no": order})
        documents = await self.cluster.run(
            self.cluster.search, index, _matching(by), by.tenant_id, limit, in_order
        )
        return [_event(document) for document in documents]

    async def count(self, by: EventFilter, fields: Sequence[EventField]) -> Counts:
        index = _indices_of(self.cluster.address, EVENTS, by.tenant_id)
        return await self.cluster.run(self.cluster.count, index, _matching(by), fields)

    def drop_before(self, before: float) -> None:
        """Deletes the events of before a moment: whole days go with their index, of the last one what is older."""
        for name in self.cluster.names(self.cluster.address.every_index(EVENTS)):
            begin = _day_of(name).timestamp()
            if begin + DAY <= before:
                self.cluster.drop(name)
            elif begin < before:
                self.cluster.delete_by(name, {"range": {"ts": {"lt": as_date(before)}}})


class OpenSearchDocuments:
    """The documents of a store of turns, in one OpenSearch."""

    def __init__(self, address: str):
        self.cluster = Cluster(address_of(address))
        self._souls = OpenSearchSouls(self.cluster)
        self._events = OpenSearchEvents(self.cluster)

    def open(self, sessions: SqlSessions, clock: Callable[[], float] = time.time) -> Documents:
        """Returns the stores; sessions stay where the turns are. Raises StoreError."""
        self.cluster.lay_out()
        drop_expired(self.cluster, clock())
        memory = OpenSearchMemory(self.cluster, clock)
        return Documents(memory, self._souls, sessions, OpenSearchPlans(self.cluster), self._events)

    def souls(self, principal: Principal) -> Souls:
        """Returns the soul of a principal's tenant, and that of the user. Raises StoreError."""
        return self._souls.read(principal, min(SOUL_TIMEOUT, self.cluster.address.timeout))

    def sweep(self, now: float, retention: float) -> None:
        """Deletes expired memories, and events of more than so many seconds ago. Raises StoreError."""
        drop_expired(self.cluster, now)
        self._events.drop_before(now - retention)

    def forget(self, principal: Principal) -> dict[str, int]:
        """Deletes the documents of a user; returns how many of each kind. Raises StoreError."""
        query = _all_of({"tenant_id": principal.tenant_id, "user_id": principal.user_id})
        counts: dict[str, int] = {}
        for kind in (MEMORY, SOULS, PLANS, EVENTS):
            counts[kind] = self.cluster.delete_by(self.cluster.address.every_index(kind), query)
        return counts

    def everything(self, kind: type[D]) -> Iterator[D]:
        """Gives every document of a kind, of whatever tenant: plans and events as they were made. Raises StoreError."""
        name = {document: index for index, document in KINDS.items()}[kind]
        order = [{"_index": "asc"}, {"_seq_no": "asc"}]
        if name == PLANS:
            order = [{"created_at": "asc"}, {"plan_id": "asc"}, *order]
        index = self.cluster.address.every_index(name)
        for document in self.cluster.scan(index, {"match_all": {}}, OPERATOR, EVERYTHING, order):
            yield _value_of(kind, document)

    def close(self) -> None:
        self.cluster.close()


def _indices_of(address: Address, kind: str, tenant_id: str | Operator) -> str:
    if isinstance(tenant_id, Operator):
        return address.every_index(kind)
    index = address.index(kind, tenant_id)
    return f"{index}-*" if kind == EVENTS else index


def _matching(by: PlanFilter | EventFilter) -> Mapping[str, Any]:
    """Returns a query for what a filter names."""
    query = _all_of(by.terms)
    for name, (since, until) in by.periods.items():
        limits: dict[str, str] = {}
        if since is not None:
            limits["gte"] = as_date(since)
        if until is not None:
            limits["lt"] = as_date(until)
        if limits:
            query["bool"]["filter"].append({"range": {name: limits}})
    return query


def _all_of(terms: Mapping[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Returns a query for what has all of these."""
    return {"bool": {"filter": [{"term": {name: value}} for name, value in terms.items()]}}


def _value_of(kind: Any, document: StoredDocument) -> Any:
    return document_of(kind, json.dumps(document.fields))


def _event(document: StoredDocument) -> AgentEvent:
    return _value_of(AgentEvent, document).replace(seq=_log_number(document.index, document.number))


def _day_of(index: str) -> datetime.datetime:
    day = datetime.datetime.strptime(index[-10:], "%Y.%m.%d")
    return day.replace(tzinfo=datetime.UTC)


def _log_number(index: str, number: int) -> int:
    """Returns the place of an event in the log: after all of earlier days, then as it was written."""
    return _day_of(index).toordinal() * LARGEST + number
