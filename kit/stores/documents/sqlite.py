"""Souls, plans and events in SQLite, and all five stores over one file."""

import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

from kit.core.context import Principal
from kit.core.errors import StoreError, VersionConflict
from kit.stores.database import Database
from kit.stores.documents.document import AgentEvent, Plan, Soul, check, document_of
from kit.stores.documents.memory import SqliteMemory
from kit.stores.documents.protocol import Documents, EventFilter
from kit.stores.documents.sessions import SqliteSessions
from kit.stores.documents.souls import read_souls
from kit.stores.documents.tables import Tables, lay_out_documents

log = logging.getLogger("kit.store")
DIMENSION = 256
"""Numbers in a vector of the embedder that comes with the kit."""


def open_documents(
    database: Database, *, dimension: int = DIMENSION, clock: Callable[[], float] = time.time
) -> Documents:
    """Opens the five stores in the file of a store; of what is in it only expired memories go. Raises StoreError.

    `clock` gives seconds since the epoch: by it leases, locks and memories end.
    """
    lay_out_documents(database)
    tables = Tables(database, clock)
    memory = SqliteMemory(tables, dimension)
    with database.commit() as db:
        memory.drop_expired(db)
    return Documents(
        memory,
        SqliteSouls(tables),
        SqliteSessions(tables),
        SqlitePlans(tables),
        SqliteEvents(tables),
    )


@dataclass(frozen=True, slots=True)
class SqliteSouls:
    """The SoulStore protocol."""

    tables: Tables

    async def put(self, soul: Soul) -> None:
        row = (soul.tenant_id, soul.user_id or "", check(soul))
        await self.tables.write(
            lambda db: db.execute("INSERT OR REPLACE INTO agent_souls VALUES (?, ?, ?)", row)
        )
        self.tables.database.has_souls = True

    async def remove(self, tenant_id: str, user_id: str | None = None) -> bool:
        sql = "DELETE FROM agent_souls WHERE tenant_id = ? AND user_id = ?"
        row = (tenant_id, user_id or "")
        return await self.tables.write(lambda db: bool(db.execute(sql, row).rowcount))

    async def of(self, principal: Principal) -> tuple[Soul | None, Soul | None]:
        return read_souls(self.tables.database, principal)


@dataclass(frozen=True, slots=True)
class SqlitePlans:
    """The PlanStore protocol. Whoever takes a lease raises the version, which fences off who had it before."""

    tables: Tables

    async def create(self, plan: Plan) -> None:
        text = check(plan)

        def work(db: sqlite3.Connection) -> None:
            row = (
                plan.tenant_id,
                plan.plan_id,
                plan.user_id,
                plan.status,
                plan.version,
                plan.lease_expires,
                text,
            )
            if not db.execute(
                "INSERT OR IGNORE INTO agent_plans VALUES (?, ?, ?, ?, ?, ?, ?)", row
            ).rowcount:
                raise VersionConflict(f"plan {plan.plan_id!r} is there already; read it")

        await self.tables.write(work)

    async def read(self, principal: Principal, plan_id: str) -> Plan | None:
        return self._read(principal, plan_id)

    def _read(self, principal: Principal, plan_id: str) -> Plan | None:
        sql = "SELECT document FROM agent_plans WHERE tenant_id = ? AND plan_id = ? AND user_id = ?"
        rows = self.tables.database.read(sql, principal.tenant_id, plan_id, principal.user_id)
        if rows:
            return document_of(Plan, rows[0][0])
        return None

    async def of(self, principal: Principal, limit: int = 50) -> list[Plan]:
        sql = "SELECT document FROM agent_plans WHERE tenant_id = ? AND user_id = ? ORDER BY rowid DESC LIMIT ?"
        plans: list[Plan] = []
        for (text,) in self.tables.database.read(
            sql, principal.tenant_id, principal.user_id, limit
        ):
            plans.append(document_of(Plan, text))
        return plans

    async def replace(self, plan: Plan) -> Plan:
        return await self.tables.write(lambda db: self._replace(db, plan))

    def _replace(self, db: sqlite3.Connection, plan: Plan) -> Plan:
        check(plan)
        newer = plan.replace(version=plan.version + 1)
        sql = """UPDATE agent_plans SET status = ?, version = ?, lease_expires = ?, document = ?
            WHERE tenant_id = ? AND plan_id = ? AND user_id = ? AND version = ?"""
        where = (plan.tenant_id, plan.plan_id, plan.user_id, plan.version)
        if not db.execute(
            sql, (newer.status, newer.version, newer.lease_expires, check(newer), *where)
        ).rowcount:
            raise VersionConflict(
                f"plan {plan.plan_id!r} has changed since its version {plan.version} was read; read it again"
            )
        return newer

    async def lease(
        self, principal: Principal, plan_id: str, owner: str, seconds: float
    ) -> Plan | None:
        def work(db: sqlite3.Connection) -> Plan | None:
            plan = self._read(principal, plan_id)
            now = self.tables.clock()
            if plan is None or (
                plan.lease_owner not in (None, owner) and (plan.lease_expires or 0) > now
            ):
                return None
            return self._replace(db, plan.replace(lease_owner=owner, lease_expires=now + seconds))

        return await self.tables.write(work)

    async def unfinished(self, limit: int = 50) -> list[Plan]:
        sql = """SELECT plan_id, document FROM agent_plans WHERE status NOT IN ('complete', 'failed')
            AND (lease_expires IS NULL OR lease_expires <= ?) ORDER BY lease_expires LIMIT ?"""
        plans: list[Plan] = []
        for plan_id, text in self.tables.database.read(sql, self.tables.clock(), limit):
            try:
                plans.append(document_of(Plan, text))
            except (
                StoreError
            ) as error:  # one tenant's damage keeps no other tenant's plan from going on
                log.error("plan %s is left alone: %s", plan_id, error)
        return plans


@dataclass(frozen=True, slots=True)
class SqliteEvents:
    """The EventStore protocol. A trigger of the file refuses to change an event."""

    tables: Tables

    async def append(self, event: AgentEvent) -> AgentEvent:
        columns = (
            "tenant_id",
            "event_id",
            "session_id",
            "plan_id",
            "task_id",
            "event_type",
            "skill_id",
        )
        columns += ("large_response_triggered", "ts")
        row = [*(getattr(event, name) for name in columns), check(event)]
        sql = f"""INSERT INTO agent_events ({", ".join(columns)}, document) VALUES ({", ".join("?" * len(row))})
            ON CONFLICT (tenant_id, event_id) DO NOTHING"""

        def work(db: sqlite3.Connection) -> AgentEvent:
            db.execute(sql, row)
            query = "SELECT seq, document FROM agent_events WHERE tenant_id = ? AND event_id = ?"
            return _event(*db.execute(query, row[:2]).fetchone())

        return await self.tables.write(work)

    async def query(self, by: EventFilter, limit: int = 1000) -> list[AgentEvent]:
        values = {
            name: value
            for name, value in by.model_dump(exclude={"since"}).items()
            if value is not None
        }
        where = " AND ".join(f"{name} = ?" for name in values)
        sql = (
            f"SELECT seq, document FROM agent_events WHERE {where} AND ts >= ? ORDER BY seq LIMIT ?"
        )
        events: list[AgentEvent] = []
        for row in self.tables.database.read(sql, *values.values(), by.since, limit):
            events.append(_event(*row))
        return events

    async def sweep(self, before: float) -> int:
        return await self.tables.write(
            lambda db: db.execute("DELETE FROM agent_events WHERE ts < ?", (before,)).rowcount
        )


def _event(seq: int, text: str) -> AgentEvent:
    return document_of(AgentEvent, text).replace(seq=seq)
