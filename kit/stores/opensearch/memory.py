"""Memories in OpenSearch: by key, by vector, by words; locks; expiry."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.core.context import Principal
from kit.core.documents.check import check, document_of
from kit.core.documents.document import OWNER, Memory, Scope
from kit.core.errors import StoreBusy, StoreError
from kit.stores.documents.refusals import check_length, check_write
from kit.stores.opensearch.address import id_of
from kit.stores.opensearch.cluster import MOST, Cluster, StoredDocument
from kit.stores.opensearch.templates import MEMORY, mapping_of

log = logging.getLogger("kit.store")
TRIES = 50
"""Writes of one key that may be overtaken by others before this one gives up."""
DATES = tuple(
    name for name, field in mapping_of(Memory, 0)["properties"].items() if field["type"] == "date"
)
LONGEST_QUESTION = 1_000
"""Characters of a question whose words are looked for: OpenSearch takes 1,024 words."""


@dataclass(frozen=True, slots=True)
class OpenSearchMemory:
    """The MemoryStore protocol."""

    cluster: Cluster
    clock: Callable[[], float]

    async def write(self, memory: Memory) -> None:
        fields = json.loads(check(memory, self.cluster.address.dimension))
        if memory.embedding is not None:
            fields["embedding"] = memory.embedding
        await self.cluster.run(self._write, memory, _text(fields))

    def _write(self, memory: Memory, text: str) -> None:
        index = self.cluster.address.index(MEMORY, memory.tenant_id)
        name = id_of(memory.tenant_id, memory.key)
        for _ in range(TRIES):
            document = self.cluster.get(index, name, memory.tenant_id)
            if document is not None:
                check_write(memory, _memory(document), self.clock())
            if self.cluster.put(index, name, text, over=document):
                return
        raise StoreBusy(f"memory {memory.key!r} is written by many at once; try again")

    async def read(self, principal: Principal, key: str) -> Memory | None:
        return await self.cluster.run(self._read, principal, key)

    def _read(self, principal: Principal, key: str) -> Memory | None:
        document = self._visible(principal, key)
        if document is None:
            return None
        memory = _memory(document)
        if memory.ttl_at is not None and memory.ttl_at <= self.clock():
            return None
        return memory

    def _visible(self, principal: Principal, key: str) -> StoredDocument | None:
        """Returns what stands under a key, where this principal may see it."""
        index = self.cluster.address.index(MEMORY, principal.tenant_id)
        document = self.cluster.get(index, id_of(principal.tenant_id, key), principal.tenant_id)
        if document is None or document.fields["key"] != key:
            return None
        is_theirs = document.fields["scope"] == "tenant" or (
            document.fields["user_id"] == principal.user_id
        )
        return document if is_theirs else None

    async def unlock(self, principal: Principal, key: str, task_id: str) -> bool:
        return await self.cluster.run(self._unlock, principal, key, task_id)

    def _unlock(self, principal: Principal, key: str, task_id: str) -> bool:
        for _ in range(TRIES):
            document = self._visible(principal, key)
            if document is None or document.fields["locked_by"] != task_id:
                return False
            fields = {**document.fields, "locked_by": None, "lock_expires": None}
            name = id_of(principal.tenant_id, key)
            if self.cluster.put(document.index, name, _text(fields), over=document):
                return True
        raise StoreBusy(f"memory {key!r} is written by many at once; try again")

    async def nearest(
        self,
        principal: Principal,
        scope: Scope,
        vector: Sequence[float],
        embedder: str,
        top_k: int = 5,
        session_id: str = "",
    ) -> list[Memory]:
        check_length(vector, self.cluster.address.dimension)
        condition = self._condition(principal, scope, session_id)
        condition["bool"]["filter"].append({"term": {"embedder": embedder}})
        # The condition stands within the clause: one that is laid over the nearest of all tenants may leave none.
        knn: dict[str, Any] = {
            "vector": [*vector],
            "k": min(top_k, MOST),
            "filter": condition,
        }
        return await self._search(principal, {"knn": {"embedding": knn}}, top_k)

    async def search(
        self, principal: Principal, scope: Scope, text: str, top_k: int = 5, session_id: str = ""
    ) -> list[Memory]:
        words = text[:LONGEST_QUESTION].encode("utf-8", "ignore").decode()
        condition = self._condition(principal, scope, session_id)
        condition["bool"]["must"] = {"match": {"text": words}}
        return await self._search(principal, condition, top_k)

    async def _search(
        self, principal: Principal, query: Mapping[str, Any], top_k: int
    ) -> list[Memory]:
        index = self.cluster.address.index(MEMORY, principal.tenant_id)
        documents = await self.cluster.run(
            self.cluster.search, index, query, principal.tenant_id, top_k
        )
        return [_memory(document) for document in documents]

    def _condition(
        self, principal: Principal, scope: Scope, session_id: str
    ) -> dict[str, dict[str, Any]]:
        """Returns a query for all memories of a scope that have not expired."""
        owner = {**vars(principal), "session_id": session_id}
        terms: list[Mapping[str, Any]] = [{"term": {"scope": scope}}]
        for name in OWNER[scope]:
            terms.append({"term": {name: owner[name]}})
        return {"bool": {"filter": terms, "must_not": [_expired(self.clock())]}}


def drop_expired(cluster: Cluster, now: float) -> None:
    """Deletes the memories of all tenants that have expired; those that it cannot delete nobody is given either."""
    index = cluster.address.every_index(MEMORY)
    try:
        # A server whose disk is full tries for a minute, and whoever opens a kit waits for it.
        cluster.delete_by(index, _expired(now), cluster.address.timeout)
    except StoreError as error:
        log.warning("memories that have expired are not deleted: %s", error)


def _expired(now: float) -> dict[str, Any]:
    return {"range": {"ttl_at": {"lte": as_date(now)}}}


def as_date(seconds: float) -> str:
    """Returns a moment as OpenSearch takes it, which knows no exponents."""
    return f"{seconds:.9f}"


def _text(fields: Mapping[str, Any]) -> str:
    """Returns what is written of a memory. Its moments are text: as numbers they would get an exponent from k-NN, which
    writes the document anew for the recovery, and a server that crashed would leave the memory out."""
    moments: dict[str, str] = {}
    for name in DATES:
        if fields[name] is not None:
            moments[name] = as_date(float(fields[name]))
    return json.dumps({**fields, **moments})


def _memory(document: StoredDocument) -> Memory:
    return document_of(Memory, json.dumps(document.fields))
