"""What is asked of a backend of documents: five stores, all of them asynchronous.

Every write raises StorageSchemaError for a document that its schema refuses, and StoreError where
the backend fails; what was acknowledged by a return is kept. Whoever reads says for whom: nobody is
given what belongs to another tenant or user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kit.core.context import OPERATOR, Operator, Principal
from kit.core.documents.document import (
    AgentEvent,
    Memory,
    Plan,
    PlanStatus,
    Scope,
    Soul,
)
from kit.core.value import Value

if TYPE_CHECKING:
    from kit.stores.documents.sessions import SqlSessions


class Filter(Value):
    """Which documents: those of one tenant, or for an operator of all, that have all of these."""

    tenant_id: str | Operator

    @property
    def terms(self) -> dict[str, Any]:
        """What a field has to be, by its name: the moments aside."""
        terms = self.model_dump(exclude=_MOMENTS, exclude_none=True)
        if self.tenant_id is OPERATOR:
            del terms["tenant_id"]
        return terms


_MOMENTS = {"since", "until", "ended_since", "ended_until"}
Periods = Mapping[str, tuple[float | None, float | None]]
"""Since when and until when a moment may be, by the name of its field."""


class EventFilter(Filter):
    """Which events."""

    user_id: str | None = None
    session_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None
    event_type: str | None = None
    skill_id: str | None = None
    large_response_triggered: bool | None = None
    since: float = 0.0
    until: float | None = None
    """The first moment that is too late."""

    @property
    def periods(self) -> Periods:
        # A condition that all events meet would have SQLite read them in the order of time.
        return {"ts": (self.since or None, self.until)}


class PlanFilter(Filter):
    """Which plans."""

    user_id: str | None = None
    session_id: str | None = None
    status: PlanStatus | None = None
    task_type: str | None = None
    since: float | None = None
    until: float | None = None
    """When they were created; `until` is the first moment that is too late."""
    ended_since: float | None = None
    ended_until: float | None = None
    """When they ended; plans that have not are left out where one of the two is given."""

    @property
    def periods(self) -> Periods:
        return {
            "created_at": (self.since, self.until),
            "completed_at": (self.ended_since, self.ended_until),
        }


EventField = Literal[
    "tenant_id",
    "session_id",
    "event_type",
    "skill_id",
    "agent",
    "status",
    "large_response_triggered",
    "duration_ms",
    "lock_wait_ms",
]
PlanField = Literal[
    "tenant_id",
    "session_id",
    "status",
    "replan_count",
    "task_type",
    "failure_kind",
    "completed_at",
]
Souls = tuple[Soul | None, Soul | None]
"""The soul of a principal's tenant, and that of the user."""
Counts = Mapping[tuple[Any, ...], int]
"""The values of the fields that were asked for, in that order -> how many have them; None is a field that is unset."""


class MemoryStore(Protocol):
    """Values by key, by meaning and by words; a key can be locked by the task that wrote it."""

    async def write(self, memory: Memory) -> None:
        """Writes or replaces. One with `locked_by` takes the lock along, in the same commit.

        Raises MemoryLockError at once where another task holds the key.
        """
        ...

    async def read(self, principal: Principal, key: str) -> Memory | None: ...

    async def unlock(self, principal: Principal, key: str, task_id: str) -> bool:
        """Gives a lock back; False where this task did not hold it."""
        ...

    async def nearest(
        self,
        principal: Principal,
        scope: Scope,
        vector: Sequence[float],
        embedder: str,
        top_k: int = 5,
        session_id: str = "",
    ) -> list[Memory]:
        """The memories of that scope, and for a session of that session, whose vectors are nearest
        by angle to this one of the same embedder, nearest first."""
        ...

    async def search(
        self, principal: Principal, scope: Scope, text: str, top_k: int = 5, session_id: str = ""
    ) -> list[Memory]:
        """The memories of that scope whose text has one of these words, best first."""
        ...


class SoulStore(Protocol):
    """Personas: one a tenant, one a user."""

    async def put(self, soul: Soul) -> None: ...

    async def remove(self, tenant_id: str, user_id: str | None = None) -> bool:
        """Removes the soul of a tenant, or of one of its users; False where there is none."""
        ...

    async def of(self, principal: Principal) -> Souls:
        """The soul of the tenant, and that of the user."""
        ...


class PlanStore(Protocol):
    """Plans, each written by whoever has read its newest version."""

    async def create(self, plan: Plan) -> None:
        """Raises VersionConflict where the plan exists."""
        ...

    async def read(self, principal: Principal, plan_id: str) -> Plan | None: ...

    async def of(self, principal: Principal, limit: int = 50) -> list[Plan]:
        """The plans of a principal, the newest first."""
        ...

    async def query(self, by: PlanFilter, limit: int = 1000) -> list[Plan]:
        """The plans that match, by their creation, the newest first."""
        ...

    async def count(self, by: PlanFilter, fields: Sequence[PlanField]) -> Counts:
        """How many of the plans that match have the same values in these fields; whoever else reads
        does not wait for it."""
        ...

    async def replace(self, plan: Plan) -> Plan:
        """Writes a plan and returns it with its new version. Raises VersionConflict when it is not
        made from the newest one."""
        ...

    async def unfinished(self, limit: int = 500) -> list[Plan]:
        """Plans of every tenant that have not ended and wait for no user, for workers alone. Some of
        them are at work: whose version stays the same for long, nobody works on."""
        ...


class EventStore(Protocol):
    """What happened, in order: events are added, never changed."""

    async def append(self, event: AgentEvent) -> AgentEvent:
        """Returns the event with its place; one that is there already is left as it is."""
        ...

    async def query(
        self, by: EventFilter, limit: int = 1000, *, newest_first: bool = False
    ) -> list[AgentEvent]:
        """The first `limit` of the events that match, in order, or the last ones, the newest first."""
        ...

    async def count(self, by: EventFilter, fields: Sequence[EventField]) -> Counts:
        """How many of the events that match have the same values in these fields; whoever else
        reads does not wait for it."""
        ...


@dataclass(frozen=True, slots=True)
class Documents:
    """The five stores of one backend."""

    memory: MemoryStore
    souls: SoulStore
    sessions: "SqlSessions"
    """They stay where the turns are, whose commits write them."""
    plans: PlanStore
    events: EventStore
