"""Souls, plans and events in the database of a store, and all five stores over it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Integer,
    Table,
    delete,
    func,
    literal_column,
    select,
    update,
)

from kit.core.context import Principal
from kit.core.documents.check import check, document_of
from kit.core.documents.document import DIMENSION, WAITING, AgentEvent, Plan, Soul
from kit.stores.documents.memory import SqlMemory
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
from kit.stores.documents.souls import read_souls
from kit.stores.documents.tables import (
    EVENTS,
    IS_OPEN,
    PLANS,
    SOULS,
    Tables,
    lay_out_documents,
    row_of,
)
from kit.stores.engines.connection import StoreConnection
from kit.stores.engines.database import Database
from kit.stores.queries import SWEEP_MEMORIES
from kit.stores.statements import insert_new, insert_or_replace

_plan = PLANS.c
_PLANS = select(_plan.document)
# The database numbers the events.
_INSERT_EVENT = insert_new(EVENTS, [column.name for column in EVENTS.c if column.name != "seq"])


def open_documents(
    database: Database, *, dimension: int = DIMENSION, clock: Callable[[], float] = time.time
) -> Documents:
    """Opens the five stores in a store's database; of what is in it only expired memories go. Raises StoreError.

    `clock` gives seconds since the epoch: by it locks and memories end.
    """
    sessions = open_sessions(database, clock)
    tables = sessions.tables
    with database.commit() as db:
        db.execute(SWEEP_MEMORIES, {"now": clock()})
    return Documents(
        SqlMemory(tables, dimension),
        SqlSouls(tables),
        sessions,
        SqlPlans(tables),
        SqlEvents(tables),
    )


def open_sessions(database: Database, clock: Callable[[], float] = time.time) -> SqlSessions:
    """Opens the sessions alone, for documents that are elsewhere. Raises StoreError."""
    lay_out_documents(database)
    return SqlSessions(Tables(database, clock))


@dataclass(frozen=True, slots=True)
class SqlSouls:
    """The SoulStore protocol."""

    tables: Tables

    async def put(self, soul: Soul) -> None:
        statement = insert_or_replace(SOULS)
        row = {**row_of(SOULS, soul), "user_id": soul.user_id or ""}
        await self.tables.write(lambda db: db.execute(statement, row))
        self.tables.database.has_souls = True

    async def remove(self, tenant_id: str, user_id: str | None = None) -> bool:
        statement = delete(SOULS).where(
            SOULS.c.tenant_id == tenant_id, SOULS.c.user_id == (user_id or "")
        )
        return await self.tables.write(lambda db: bool(db.execute(statement).rowcount))

    async def of(self, principal: Principal) -> Souls:
        return read_souls(self.tables.database, principal)


@dataclass(frozen=True, slots=True)
class SqlPlans:
    """The PlanStore protocol."""

    tables: Tables

    async def create(self, plan: Plan) -> None:
        row = row_of(PLANS, plan)
        statement = insert_new(PLANS)

        def work(db: StoreConnection) -> None:
            if not db.execute(statement, row).rowcount:
                raise plan_is_there(plan)

        await self.tables.write(work)

    async def read(self, principal: Principal, plan_id: str) -> Plan | None:
        query = _PLANS.where(_is_of(principal), _plan.plan_id == plan_id)
        for (text,) in self.tables.database.read(query):
            return document_of(Plan, text)
        return None

    async def of(self, principal: Principal, limit: int = 50) -> list[Plan]:
        newest = (
            _PLANS.where(_is_of(principal))
            .order_by(literal_column("rowid", Integer()).desc())
            .limit(limit)
        )
        return [document_of(Plan, text) for (text,) in self.tables.database.read(newest)]

    async def query(self, by: PlanFilter, limit: int = 1000) -> list[Plan]:
        query = _PLANS.where(*_conditions(PLANS, by)).order_by(_plan.created_at.desc()).limit(limit)
        return [document_of(Plan, text) for (text,) in self.tables.database.read(query)]

    async def count(self, by: PlanFilter, fields: Sequence[PlanField]) -> Counts:
        return await _count(self.tables.database, PLANS, by, fields)

    async def replace(self, plan: Plan) -> Plan:
        check(plan)
        newer = plan.replace(version=plan.version + 1)
        is_it = _is_of(plan) & (_plan.plan_id == plan.plan_id) & (_plan.version == plan.version)
        statement = update(PLANS).where(is_it).values(row_of(PLANS, newer))
        rows = await self.tables.write(lambda db: db.execute(statement).rowcount)
        if not rows:
            raise plan_has_changed(plan)
        return newer

    async def unfinished(self, limit: int = 500) -> list[Plan]:
        query = (
            select(_plan.plan_id, _plan.document)
            .where(IS_OPEN, _plan.status.not_in(WAITING))
            .order_by(_plan.plan_id)
            .limit(limit)
        )
        return readable_plans(self.tables.database.read(query))


def _is_of(owner: Principal | Plan) -> ColumnElement[bool]:
    return (_plan.tenant_id == owner.tenant_id) & (_plan.user_id == owner.user_id)


@dataclass(frozen=True, slots=True)
class SqlEvents:
    """The EventStore protocol. A trigger of the database refuses to change an event."""

    tables: Tables

    async def append(self, event: AgentEvent) -> AgentEvent:
        row = row_of(EVENTS, event)
        query = select(EVENTS.c.seq, EVENTS.c.document).where(
            EVENTS.c.tenant_id == event.tenant_id, EVENTS.c.event_id == event.event_id
        )

        def work(db: StoreConnection) -> AgentEvent:
            db.execute(_INSERT_EVENT, row)
            return _event(*db.execute(query).one())

        return await self.tables.write(work)

    async def query(
        self, by: EventFilter, limit: int = 1000, *, newest_first: bool = False
    ) -> list[AgentEvent]:
        query = select(EVENTS.c.seq, EVENTS.c.document).where(*_conditions(EVENTS, by))
        order = EVENTS.c.seq.desc() if newest_first else EVENTS.c.seq
        rows = self.tables.database.read(query.order_by(order).limit(limit))
        return [_event(seq, text) for seq, text in rows]

    async def count(self, by: EventFilter, fields: Sequence[EventField]) -> Counts:
        return await _count(self.tables.database, EVENTS, by, fields)


def _conditions(table: Table, by: EventFilter | PlanFilter) -> list[ColumnElement[bool]]:
    conditions = [table.c[name] == value for name, value in by.terms.items()]
    # Of a plan that has not ended the moment is NULL, which is neither before nor after another.
    for name, (since, until) in by.periods.items():
        if since is not None:
            conditions.append(table.c[name] >= since)
        if until is not None:
            conditions.append(table.c[name] < until)
    return conditions


async def _count(
    database: Database, table: Table, by: EventFilter | PlanFilter, fields: Sequence[str]
) -> Counts:
    columns = [table.c[name] for name in fields]
    query = select(*columns, func.count()).where(*_conditions(table, by)).group_by(*columns)
    # On a thread and a connection of its own: over a year of events it takes longer than a loop may be silent.
    rows = await asyncio.to_thread(database.read_apart, lambda db: db.execute(query).fetchall())
    return {tuple(values): count for *values, count in rows}


def _event(seq: int, text: str) -> AgentEvent:
    return document_of(AgentEvent, text).replace(seq=seq)
