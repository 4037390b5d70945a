"""Memories in the database of a store: by key, by vector, by words; locks; expiry."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, or_, select, update

from kit.core.context import Principal
from kit.core.documents.check import document_of
from kit.core.documents.document import Memory, Scope
from kit.stores.documents.refusals import check_length, check_write
from kit.stores.documents.tables import MEMORY, Tables, row_of
from kit.stores.documents.vectors import Owner, Space, VectorSearch, as_blob, of_blob
from kit.stores.engines.connection import StoreConnection
from kit.stores.queries import BEST_WORDS, INSERT_WORDS

_column = MEMORY.c
_MEMORIES = select(_column.document, _column.embedding, _column.locked_by, _column.lock_expires)


@dataclass(frozen=True, slots=True)
class SqlMemory:
    """The MemoryStore protocol over a store's tables. A vector has as many numbers as `dimension` says."""

    tables: Tables
    dimension: int
    vectors: VectorSearch = field(default_factory=VectorSearch)

    async def write(self, memory: Memory) -> None:
        """Writes or replaces, lock included. Raises StorageSchemaError, and MemoryLockError where
        another task holds the key."""
        principal = Principal(tenant_id=memory.tenant_id, user_id=memory.user_id or "")
        owner = _owner(principal, memory.scope, memory.session_id or "")
        row = {
            **row_of(MEMORY, memory, self.dimension),
            **owner._asdict(),
            "embedding": as_blob(memory.embedding),
        }
        await self.tables.write(lambda db: self._replace(db, memory, row))

    def _replace(self, db: StoreConnection, memory: Memory, row: dict[str, Any]) -> None:
        is_it = (_column.tenant_id == memory.tenant_id) & (_column.key == memory.key)
        for stored in db.execute(_MEMORIES.where(is_it)):
            check_write(memory, _memory(stored), self.tables.clock())
        # A replaced row gets a new number.
        db.execute(delete(MEMORY).where(is_it))
        (seq,) = db.execute(insert(MEMORY), row).inserted_primary_key
        if memory.text:
            db.execute(INSERT_WORDS, {"seq": seq, "text": memory.text})

    async def read(self, principal: Principal, key: str) -> Memory | None:
        """The memory under a key, or None where there is none for this principal or it has expired."""
        query = _MEMORIES.where(_is_visible(principal, key), self._is_fresh())
        for row in self.tables.database.read(query):
            return _memory(row)
        return None

    def _is_fresh(self) -> ColumnElement[bool]:
        return or_(_column.ttl_at.is_(None), _column.ttl_at > self.tables.clock())

    async def unlock(self, principal: Principal, key: str, task_id: str) -> bool:
        """Gives a lock back; False where this task did not hold it."""
        is_held = _is_visible(principal, key) & (_column.locked_by == task_id)
        statement = update(MEMORY).where(is_held).values(locked_by=None, lock_expires=None)
        return await self.tables.write(lambda db: db.execute(statement).rowcount > 0)

    async def nearest(
        self,
        principal: Principal,
        scope: Scope,
        vector: Sequence[float],
        embedder: str,
        top_k: int = 5,
        session_id: str = "",
    ) -> list[Memory]:
        """The memories of that scope whose vectors are nearest by angle to this one of the same
        embedder, nearest first. Raises StorageSchemaError."""
        check_length(vector, self.dimension)
        space = Space(_owner(principal, scope, session_id), embedder)
        now = self.tables.clock()
        seqs = self.vectors.nearest(self.tables.database.read, space, vector, top_k, now)
        query = _MEMORIES.add_columns(_column.seq).where(_column.seq.in_(seqs))
        rows: dict[int, Sequence[Any]] = {}
        for *row, seq in self.tables.database.read(query):
            rows[seq] = row
        return [_memory(rows[seq]) for seq in seqs if seq in rows]

    async def search(
        self, principal: Principal, scope: Scope, text: str, top_k: int = 5, session_id: str = ""
    ) -> list[Memory]:
        """The memories of that scope whose text has one of these words, best first."""
        plain = text.replace("\0", " ").replace('"', " ").encode("utf-8", "ignore").decode()
        words = " OR ".join(f'"{word}"' for word in plain.split())
        if not words:
            return []
        values = _owner(principal, scope, session_id)._asdict()
        values |= {"words": words, "now": self.tables.clock(), "limit": top_k}
        query = BEST_WORDS[self.tables.database.dialect]
        return [_memory(row) for row in self.tables.database.read(query, values)]


def _is_visible(principal: Principal, key: str) -> ColumnElement[bool]:
    is_theirs = _column.user_id.in_(["", principal.user_id])
    return (_column.tenant_id == principal.tenant_id) & (_column.key == key) & is_theirs


def _memory(row: Sequence[Any]) -> Memory:
    """Returns a memory with its lock as it is now."""
    document, embedding, holder, expires = row
    memory = document_of(Memory, document)
    return memory.replace(locked_by=holder, lock_expires=expires, embedding=of_blob(embedding))


def _owner(principal: Principal, scope: Scope, session_id: str) -> Owner:
    return Owner(
        tenant_id=principal.tenant_id,
        scope=scope,
        user_id="" if scope == "tenant" else principal.user_id,
        session_id=session_id if scope == "session" else "",
    )
