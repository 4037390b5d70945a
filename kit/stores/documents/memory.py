"""Memories in SQLite: by key, by vector, by words; locks; expiry."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.core.context import Principal
from kit.core.errors import MemoryLockError, StorageSchemaError
from kit.stores.documents.document import Memory, Scope, check, document_of
from kit.stores.documents.tables import Tables
from kit.stores.documents.vectors import OWN, Owner, VectorSearch, as_blob, of_blob

_VISIBLE = "tenant_id = ? AND user_id IN ('', ?) AND (ttl_at IS NULL OR ttl_at > ?)"
_INSERT = """INSERT INTO agent_memory
  (tenant_id, scope, user_id, session_id, key, ttl_at, locked_by, lock_expires, embedding, document)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


@dataclass(frozen=True, slots=True)
class SqliteMemory:
    """The MemoryStore protocol over a file's tables. A vector has as many numbers as `dimension` says."""

    tables: Tables
    dimension: int
    vectors: VectorSearch = field(default_factory=VectorSearch)

    async def write(self, memory: Memory) -> None:
        """Writes or replaces, lock included. Raises StorageSchemaError, and MemoryLockError where
        another task holds the key."""
        text = check(memory, self.dimension)
        row = (
            *_owner(memory),
            memory.key,
            memory.ttl_at,
            memory.locked_by,
            memory.lock_expires,
            as_blob(memory.embedding),
            text,
        )
        await self.tables.write(lambda db: self._replace(db, memory, row))

    def _replace(self, db: sqlite3.Connection, memory: Memory, row: Sequence[Any]) -> None:
        identity = (memory.tenant_id, memory.key)
        sql = "SELECT scope, user_id, locked_by, lock_expires FROM agent_memory WHERE tenant_id = ? AND key = ?"
        for scope, user_id, holder, expires in db.execute(sql, identity):
            if (scope, user_id) != (row[1], row[2]):
                raise StorageSchemaError(
                    f"memory {memory.key!r} belongs to another scope or user; write it under another key"
                )
            if (
                holder
                and holder != memory.locked_by
                and (expires is None or expires > self.tables.clock())
            ):
                raise MemoryLockError(
                    f"memory {memory.key!r} is held by task {holder!r}; try again when it was read"
                )
        db.execute(
            "DELETE FROM agent_memory WHERE tenant_id = ? AND key = ?", identity
        )  # a replaced row gets a new number
        seq = db.execute(_INSERT, row).lastrowid
        if memory.text:
            db.execute(
                "INSERT INTO agent_memory_words (rowid, text) VALUES (?, ?)", (seq, memory.text)
            )

    async def read(self, principal: Principal, key: str) -> Memory | None:
        """The memory under a key, or None where there is none for this principal or it has expired."""
        sql = f"SELECT {_COLUMNS} FROM agent_memory WHERE key = ? AND {_VISIBLE}"
        rows = self.tables.database.read(
            sql, key, principal.tenant_id, principal.user_id, self.tables.clock()
        )
        if rows:
            return _memory(rows[0])
        return None

    async def unlock(self, principal: Principal, key: str, task_id: str) -> bool:
        """Gives a lock back; False where this task did not hold it."""
        sql = (
            "UPDATE agent_memory SET locked_by = NULL, lock_expires = NULL WHERE key = ? AND "
            "locked_by = ? AND tenant_id = ?"
        )
        sql += " AND user_id IN ('', ?)"
        values = (key, task_id, principal.tenant_id, principal.user_id)
        return await self.tables.write(lambda db: db.execute(sql, values).rowcount > 0)

    async def nearest(
        self,
        principal: Principal,
        scope: Scope,
        vector: Sequence[float],
        top_k: int = 5,
        session_id: str = "",
    ) -> list[Memory]:
        """The memories of that scope whose vectors are nearest by angle, nearest first. Raises StorageSchemaError."""
        if len(vector) != self.dimension:
            raise StorageSchemaError(
                f"the vector has {len(vector)} numbers, the embedder gives {self.dimension}"
            )
        owner = _owned(principal, scope, session_id)
        now = self.tables.clock()
        seqs = self.vectors.nearest(self.tables.database.read, owner, vector, top_k, now)
        sql = f"SELECT seq, {_COLUMNS} FROM agent_memory WHERE seq IN (SELECT value FROM json_each(?))"
        rows = {seq: row for seq, *row in self.tables.database.read(sql, json.dumps(seqs))}
        results: list[Memory] = []
        for seq in seqs:
            if seq in rows:
                results.append(_memory(rows[seq]))
        return results

    async def search(
        self, principal: Principal, scope: Scope, text: str, top_k: int = 5, session_id: str = ""
    ) -> list[Memory]:
        """The memories of that scope whose text has one of these words, best first."""
        plain = text.replace("\0", " ").replace('"', " ").encode("utf-8", "ignore").decode()
        words = " OR ".join(f'"{word}"' for word in plain.split())
        if not words:
            return []
        sql = f"""SELECT {_COLUMNS} FROM agent_memory_words JOIN agent_memory ON seq = agent_memory_words.rowid
            WHERE agent_memory_words MATCH ? AND {OWN} AND (ttl_at IS NULL OR ttl_at > ?)
            ORDER BY bm25(agent_memory_words), seq LIMIT ?"""
        rows = self.tables.database.read(
            sql, words, *_owned(principal, scope, session_id), self.tables.clock(), top_k
        )
        return [_memory(row) for row in rows]

    async def sweep(self) -> int:
        """Deletes what has expired; returns how many."""
        return await self.tables.write(self.drop_expired)

    def drop_expired(self, db: sqlite3.Connection) -> int:
        """Does the same within a transaction."""
        return db.execute(
            "DELETE FROM agent_memory WHERE ttl_at <= ?", (self.tables.clock(),)
        ).rowcount


_COLUMNS = "document, embedding, locked_by, lock_expires"


def _memory(row: Sequence[Any]) -> Memory:
    """Returns a memory with its lock as it is now."""
    document, embedding, holder, expires = row
    memory = document_of(Memory, document)
    return memory.replace(locked_by=holder, lock_expires=expires, embedding=of_blob(embedding))


def _owner(memory: Memory) -> Owner:
    principal = Principal(tenant_id=memory.tenant_id, user_id=memory.user_id or "")
    return _owned(principal, memory.scope, memory.session_id or "")


def _owned(principal: Principal, scope: Scope, session_id: str) -> Owner:
    if scope == "tenant":
        user_id = ""
    else:
        user_id = principal.user_id
    return (principal.tenant_id, scope, user_id, session_id if scope == "session" else "")
