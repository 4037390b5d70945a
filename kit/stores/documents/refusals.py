"""What every database of documents refuses, in the same words."""

import logging
from collections.abc import Iterable, Sequence

from kit.core.documents.check import document_of
from kit.core.documents.document import Memory, Plan
from kit.core.errors import MemoryLockError, StorageSchemaError, StoreError, VersionConflict

log = logging.getLogger("kit.store")


def check_write(memory: Memory, stored: Memory, now: float) -> None:
    """Raises StorageSchemaError for a key that is another scope's or user's, MemoryLockError for one that another
    task holds."""
    if _owner_of(stored) != _owner_of(memory):
        raise StorageSchemaError(
            f"memory {memory.key!r} belongs to another scope or user; write it under another key"
        )
    holder = stored.locked_by
    is_locked = stored.lock_expires is None or stored.lock_expires > now
    if holder and holder != memory.locked_by and is_locked:
        raise MemoryLockError(
            f"memory {memory.key!r} is held by task {holder!r}; try again when it was read"
        )


def _owner_of(memory: Memory) -> tuple[str, str | None]:
    """Returns the scope of a memory and the user whose it is; a tenant's is no user's."""
    if memory.scope == "tenant":
        return "tenant", None
    return memory.scope, memory.user_id


def check_length(vector: Sequence[float], dimension: int) -> None:
    """Raises StorageSchemaError for a vector that no memory's can be compared with."""
    if len(vector) != dimension:
        raise StorageSchemaError(
            f"the vector has {len(vector)} numbers, the embedder gives {dimension}"
        )


def plan_is_there(plan: Plan) -> VersionConflict:
    """Returns what to raise where a new plan has the id of another one."""
    return VersionConflict(f"plan {plan.plan_id!r} is there already; read it")


def plan_has_changed(plan: Plan) -> VersionConflict:
    """Returns what to raise where a plan is not made from its newest version."""
    return VersionConflict(
        f"plan {plan.plan_id!r} has changed since its version {plan.version} was read; read it again"
    )


def readable_plans(texts: Iterable[tuple[object, str]]) -> list[Plan]:
    """Returns the plans of these texts, each of which stands behind its id. One tenant's damage keeps no other
    tenant's plan from going on."""
    plans: list[Plan] = []
    for plan_id, text in texts:
        try:
            plans.append(document_of(Plan, text))
        except StoreError as error:
            log.error("plan %s is left alone: %s", plan_id, error)
    return plans
