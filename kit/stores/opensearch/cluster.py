"""Requests to one OpenSearch: what is asked of it, how often, and what is made of its answers.

A search is late: it sees what was written before the last refresh. What has to be seen at once is read by id, which is
never late, or searched after a refresh, which shows everything that was acknowledged before it. Every write of a
document that others may write as well names the version that it was made from.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, TypeVarTuple

from opensearchpy import OpenSearch, TransportError

from kit.core.context import OPERATOR, Operator
from kit.core.errors import StoreError
from kit.stores.opensearch.address import Address
from kit.stores.opensearch.faults import fault_of, red_index
from kit.stores.opensearch.templates import EVENTS, KINDS, MEMORY, mapping_of, template_of

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
# It would log each request that failed, with its traceback: the kit raises what is a fault, and says it once.
logging.getLogger("opensearch").setLevel(logging.CRITICAL)
NOT_THERE = 404
CONFLICT = 409
PAUSES = (0.1, 0.4)
"""Seconds before each further try of a request that may be made again."""
THREADS = 16
"""Requests at a time. Each waits in a thread, for the client of a store is used on every loop and on none."""
PAGE = 500
"""Documents that one answer brings."""
MOST = 10_000
"""Documents that a search without an order can bring."""
HEALTH_TIMEOUT = 2.0
"""Seconds to find out why a request failed."""
BY_QUERY = 600.0
"""Seconds that a deletion of many documents may take."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored, and the version that whoever replaces it has to name."""

    index: str
    fields: dict[str, Any]
    number: int
    """Its address among all writes to its shard."""
    term: int


class Cluster:
    """One OpenSearch; safe to use from several threads, loops and processes. One that is gone for a
    while is reached again by itself."""

    def __init__(self, address: Address):
        self.address = address
        options: dict[str, Any] = {}
        if address.user:
            options["http_auth"] = (address.user, address.password)
        if address.ca is not None:
            options["ca_certs"] = address.ca
        self._client = OpenSearch(
            address.url,
            timeout=address.timeout,
            pool_maxsize=THREADS,
            # What may be made again is decided here: its own rule repeats writes.
            max_retries=0,
            **options,
        )

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS, thread_name_prefix="kit opensearch")

    async def run(self, work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """Does work in a thread, so that the loop goes on."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def lay_out(self) -> None:
        """Gives it the templates and the indices that it lacks. Raises StoreError."""
        for kind in KINDS:
            name = self.address.prefix + kind
            template = template_of(kind, self.address)
            if self._template_digest(name) != template["_meta"]["digest"]:
                self._ask(self._client.indices.put_index_template, name=name, body=template)
            if kind != EVENTS and self.address.tenants == "together":
                self._create(name)
        self._check_mappings()

    def _template_digest(self, name: str) -> str:
        answer = self._ask(
            self._client.indices.get_index_template, True, name=name, params={"ignore": NOT_THERE}
        )
        if "index_templates" not in answer:
            return ""
        template = answer["index_templates"][0]["index_template"]
        return template.get("_meta", {}).get("digest", "")

    def _create(self, name: str) -> None:
        if self._ask(self._client.indices.exists, True, index=name):
            return
        try:
            self._client.indices.create(index=name)
        except TransportError as error:
            # Another process was quicker.
            if error.error != "resource_already_exists_exception":
                raise fault_of(error, self.address).error from error

    def _check_mappings(self) -> None:
        """Holds the indices that are there to what the kit relies on, and gives those of an earlier kit the
        fields that have come since. Raises StoreError."""
        for kind, document in KINDS.items():
            newest = mapping_of(document, self.address.dimension)
            answer = self._ask(
                self._client.indices.get_mapping,
                True,
                index=self.address.every_index(kind),
                params={"ignore_unavailable": "true"},
            )
            for name, index in answer.items():
                mapping = index["mappings"]
                if mapping.get("dynamic") != "strict":
                    raise StoreError(
                        f"the index {name} takes any field: it was made without its template; delete it, or set "
                        "another prefix in KIT_DOCUMENTS"
                    )
                vector = mapping["properties"].get("embedding", {})
                if kind == MEMORY and vector.get("dimension") != self.address.dimension:
                    raise StoreError(
                        f"vectors of the index {name} have {vector.get('dimension')} numbers, those of the embedder "
                        f"{self.address.dimension}: set dimension= or another prefix in KIT_DOCUMENTS"
                    )
                if newest["properties"].keys() - mapping["properties"].keys():
                    self._ask(self._client.indices.put_mapping, index=name, body=newest)

    def get(self, index: str, name: str, tenant_id: str) -> StoredDocument | None:
        """Returns a document by its id, as it is at this moment; None where there is none. Raises StoreError."""
        answer = self._ask(
            self._client.get, True, index=index, id=name, params={"ignore": NOT_THERE}
        )
        if not answer.get("found"):
            return None
        return self._as_document(answer, tenant_id)

    def get_all(
        self, index: str, names: Sequence[str], tenant_id: str, timeout: float
    ) -> list[StoredDocument | None]:
        """Returns several documents by their ids within a time, None for each that there is not. Raises StoreError."""
        answer = self._ask(
            self._client.mget,
            index=index,
            body={"ids": names},
            params={"request_timeout": timeout},
        )
        documents: list[StoredDocument | None] = []
        for document in answer["docs"]:
            if "error" in document and document["error"]["type"] != "index_not_found_exception":
                raise StoreError(
                    f"OpenSearch at {self.address.url} could not read from {index}: {document['error']['reason']}"
                )
            documents.append(
                self._as_document(document, tenant_id) if document.get("found") else None
            )
        return documents

    def create(self, index: str, name: str, text: str) -> int | None:
        """Writes a new document and returns its number; None where there is one of that id already. Raises StoreError.

        It may be made again: of the same id there is one.
        """
        return self._write(index, name, text, {"op_type": "create"}, may_repeat=True)

    def put(self, index: str, name: str, text: str, over: StoredDocument | None) -> bool:
        """Replaces one version of a document, or writes a new one; False where somebody else was quicker.
        Raises StoreError."""
        version: dict[str, Any] = {"op_type": "create"}
        if over is not None:
            version = {"if_seq_no": over.number, "if_primary_term": over.term}
        return self._write(index, name, text, version, may_repeat=False) is not None

    def overwrite(self, index: str, name: str, text: str) -> None:
        """Writes a document whatever was there. Raises StoreError."""
        self._write(index, name, text, {}, may_repeat=True)

    def _write(
        self, index: str, name: str, text: str, params: Mapping[str, Any], *, may_repeat: bool
    ) -> int | None:
        answer = self._ask(
            self._client.index,
            may_repeat,
            index=index,
            id=name,
            body=text,
            params={
                **params,
                "ignore": CONFLICT,
                # Otherwise a write to an index that is red waits for a minute.
                "timeout": f"{round(500 * self.address.timeout)}ms",
                "request_timeout": self.address.timeout,
            },
        )
        # None of a conflict.
        return answer.get("_seq_no")

    def delete(self, index: str, name: str) -> bool:
        """Deletes a document; False where there is none. Raises StoreError."""
        answer = self._ask(self._client.delete, index=index, id=name, params={"ignore": NOT_THERE})
        return answer.get("result") == "deleted"

    def search(
        self,
        index: str,
        query: Mapping[str, Any],
        tenant_id: str | Operator,
        limit: int,
        sort: Sequence[Mapping[str, str]] = (),
    ) -> list[StoredDocument]:
        """Returns what `scan` gives. Raises StoreError."""
        return list(self.scan(index, query, tenant_id, limit, sort))

    def scan(
        self,
        index: str,
        query: Mapping[str, Any],
        tenant_id: str | Operator,
        limit: int,
        sort: Sequence[Mapping[str, str]] = (),
    ) -> Iterator[StoredDocument]:
        """Gives the first documents of a query, whatever was acknowledged before included.

        None for a tenant is for workers alone. Without a sort the best come first. Raises StoreError, also where a
        part of the index could not be searched.
        """
        self.refresh(index)
        count = 0
        body: dict[str, Any] = {"query": query, "seq_no_primary_term": True}
        if sort:
            body["sort"] = sort
        most = PAGE if sort else MOST
        while count < limit:
            body["size"] = min(limit - count, most)
            answer = self._search(index, body)
            page = answer["hits"]["hits"]
            for document in page:
                yield self._as_document(document, tenant_id)
            count += len(page)
            if not sort or len(page) < body["size"]:
                return
            body["search_after"] = page[-1]["sort"]

    def count(
        self, index: str, query: Mapping[str, Any], fields: Sequence[str]
    ) -> dict[tuple[Any, ...], int]:
        """Returns how many of what a query finds have the same values in these fields. Raises StoreError."""
        self.refresh(index)
        sources = [{name: {"terms": {"field": name, "missing_bucket": True}}} for name in fields]
        groups: dict[str, Any] = {"size": PAGE, "sources": sources}
        body = {"query": query, "size": 0, "aggs": {"groups": {"composite": groups}}}
        counts: dict[tuple[Any, ...], int] = {}
        while True:
            answer = self._search(index, body).get("aggregations", {}).get("groups", {})
            for bucket in answer.get("buckets", ()):
                values = bucket["key"]
                # A group by a date is named by milliseconds, whatever the format of the field.
                if values.get("completed_at") is not None:
                    values["completed_at"] /= 1000
                counts[tuple(values[name] for name in fields)] = bucket["doc_count"]
            if "after_key" not in answer:
                return counts
            groups["after"] = answer["after_key"]

    def _search(self, index: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask(
            self._client.search,
            True,
            index=index,
            body=json.dumps(body),
            params={
                "allow_partial_search_results": "false",
                "ignore_unavailable": "true",
                # A replica of segments may be behind the refresh.
                "preference": "_primary",
            },
        )

    def refresh(self, index: str) -> None:
        """Shows every write that was acknowledged to the searches that follow. Raises StoreError."""
        try:
            answer = self._ask(
                self._client.indices.refresh,
                True,
                index=index,
                params={"ignore_unavailable": "true"},
            )
        except StoreError as error:
            # It would wait for the missing part for a minute.
            if self._is_red(index):
                raise red_index(self.address, index) from error
            raise
        if answer["_shards"]["failed"]:
            raise StoreError(
                f"OpenSearch at {self.address.url} could not show what was written to {index}: "
                "ask it for _cluster/health, and try again"
            )

    def _is_red(self, index: str) -> bool:
        try:
            params = {"request_timeout": HEALTH_TIMEOUT}
            return self._client.cluster.health(index=index, params=params)["status"] == "red"
        except TransportError:
            return False

    def delete_by(self, index: str, query: Mapping[str, Any], seconds: float = BY_QUERY) -> int:
        """Deletes what a query finds, whatever was acknowledged before included; returns how many. Raises StoreError.

        What somebody writes meanwhile stays.
        """
        self.refresh(index)
        answer = self._ask(
            self._client.delete_by_query,
            index=index,
            body=json.dumps({"query": query}),
            params={
                "conflicts": "proceed",
                "refresh": "true",
                "ignore_unavailable": "true",
                "request_timeout": seconds,
            },
        )
        if answer["failures"]:
            raise StoreError(
                f"OpenSearch at {self.address.url} could not delete all it should from {index}: try again"
            )
        return answer["deleted"]

    def names(self, pattern: str) -> list[str]:
        """Returns the names of the indices that fit a pattern. Raises StoreError."""
        answer = self._ask(
            self._client.indices.get_alias,
            True,
            index=pattern,
            params={"ignore_unavailable": "true"},
        )
        return sorted(answer)

    def drop(self, index: str) -> None:
        """Deletes an index. Raises StoreError."""
        self._ask(self._client.indices.delete, index=index, params={"ignore_unavailable": "true"})

    def _as_document(
        self, document: Mapping[str, Any], tenant_id: str | Operator
    ) -> StoredDocument:
        fields = document["_source"]
        if tenant_id not in (OPERATOR, fields["tenant_id"]):
            raise StoreError(
                f"the index {document['_index']} gave a document of another tenant, which nobody is given: "
                f"delete {document['_id']!r}, it was not written by the kit"
            )
        return StoredDocument(
            document["_index"], fields, document["_seq_no"], document["_primary_term"]
        )

    def _ask(self, call: Callable[..., Any], may_repeat: bool = False, **arguments: Any) -> Any:
        """Makes a request, and again where it was refused, or changes nothing and may go well in a moment.

        Raises StoreError. A status that the request ignores is an answer.
        """
        for pause in (*PAUSES, None):
            try:
                return call(**arguments)
            except TransportError as error:
                fault = fault_of(error, self.address)
                is_worth_it = fault.was_refused or (may_repeat and fault.passes)
                if pause is None or not is_worth_it:
                    raise fault.error from error
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")
