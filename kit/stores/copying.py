"""Copies a store into an empty one, of the same database or another, and compares the two row by row; documents
alone where one of the two is an OpenSearch."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import (
    Integer,
    Select,
    Table,
    TableClause,
    column,
    insert,
    literal_column,
    select,
    table,
)

from kit.core.documents.check import D, document_of
from kit.core.documents.document import AgentEvent, Memory, Plan, Soul
from kit.core.errors import StoreError
from kit.core.value import Value
from kit.stores.documents.protocol import Documents
from kit.stores.documents.tables import EVENTS, MEMORY, METADATA, PLANS, SOULS, lay_out_documents
from kit.stores.documents.vectors import as_blob, of_blob
from kit.stores.engines.connection import StoreConnection
from kit.stores.rows import without_zeros
from kit.stores.statements import compiled
from kit.stores.tables import ALEMBIC_VERSION, LOGS, MESSAGES, TURNS
from kit.stores.tables import METADATA as TURN_METADATA
from kit.stores.turn_store import TurnStore

BATCH = 500
"""Rows that are in memory at a time."""
_ONE = literal_column("1", Integer())
_WORDS = table("agent_memory_words", column("rowid"), column("text"))
_KINDS: dict[Table, type[Value]] = {MEMORY: Memory, SOULS: Soul, PLANS: Plan, EVENTS: AgentEvent}
_NUMBERED = {TURNS.name: "number", MEMORY.name: "seq", EVENTS.name: "seq"}
"""Tables whose rows get numbers from the database, and the column of these."""


class CopiedTable(NamedTuple):
    """What became of a table."""

    name: str
    rows: int
    is_same: bool
    """Whether both stores hold as many rows, with the same contents in the same order."""


class _Contents(NamedTuple):
    rows: int
    digest: str


def copy_store(source: TurnStore, target: TurnStore) -> list[CopiedTable]:
    """Copies every table in one transaction, and compares. Raises StoreError where the target has rows already."""
    lay_out_documents(target)
    with target.commit() as db:
        for own in _tables():
            if db.execute(select(_ONE).select_from(own).limit(1)).first():
                raise StoreError(
                    f"the store to copy into is not empty: there are rows in {own.name}; name a new one"
                )
        before = source.read_apart(partial(_contents, target=db))
        _number_on(db)
    after = target.read_apart(_contents)
    return [
        CopiedTable(name, contents.rows, contents == after[name])
        for name, contents in before.items()
    ]


def copy_documents(source: TurnStore, target: TurnStore) -> list[CopiedTable]:
    """Copies the documents alone, from an OpenSearch or into one, and compares. Raises StoreError where
    the target has documents already, and for one that it does not take."""
    source.open_documents()
    documents = target.open_documents()
    for name, contents in _documents_of(target, lambda _: None).items():
        if contents.rows:
            raise StoreError(
                f"what to copy into is not empty: it has {contents.rows} documents of {name}; name another"
            )
    with asyncio.Runner() as runner:
        before = _documents_of(source, lambda document: runner.run(_write(documents, document)))
    after = _documents_of(target, lambda _: None)
    copied: list[CopiedTable] = []
    for name, contents in before.items():
        copied.append(CopiedTable(name, contents.rows, contents == after[name]))
    return copied


async def _write(documents: Documents, document: Value) -> None:
    match document:
        case Memory():
            await documents.memory.write(document)
        case Soul():
            await documents.souls.put(document)
        case Plan():
            await documents.plans.create(document)
        case AgentEvent():
            await documents.events.append(document)
        case _:
            raise TypeError(f"nobody keeps a {type(document).__name__} among documents")


def _documents_of(store: TurnStore, visit: Callable[[Value], None]) -> dict[str, _Contents]:
    """Goes through every document of a store; returns how many there are of each kind, and a sum of their digests."""
    contents: dict[str, _Contents] = {}
    for own, kind in _KINDS.items():
        count = 0
        total = 0
        for document in _every(store, own, kind):
            visit(document)
            count += 1
            # Two stores give them in different orders.
            total += int.from_bytes(hashlib.sha256(_normal_text(document)).digest())
        contents[own.name] = _Contents(count, f"{total:x}")
    return contents


def _every(store: TurnStore, own: Table, kind: type[D]) -> Iterator[D]:
    if store.backend is not None:
        yield from store.backend.everything(kind)
        return
    if own is SOULS:
        # They are few, and their rows have no numbers.
        for (text,) in store.read(select(own.c.document)):
            yield document_of(kind, text)
        return
    number = own.c.seq if "seq" in own.c else literal_column("rowid", Integer())
    last = -1
    # In batches, for each document is written while they are read.
    while rows := store.read(
        select(number, own).where(number > last).order_by(number).limit(BATCH)
    ):
        for row in rows:
            last = row[0]
            document = document_of(kind, row.document)
            if own is MEMORY:
                document = document.replace(
                    locked_by=row.locked_by,
                    lock_expires=row.lock_expires,
                    embedding=of_blob(row.embedding),
                )
            yield document


def _normal_text(document: Value) -> bytes:
    """Returns a document as every database gives it back: a vector with 32 bits, an event without its place."""
    fields = document.model_dump(mode="json", exclude={"seq", "embedding"})
    vector: Any = getattr(document, "embedding", None)
    return json.dumps([fields, as_blob(vector)], default=bytes.hex, sort_keys=True).encode()


def _tables() -> list[TableClause[Any]]:
    """Returns the tables of a store, in an order in which they can be written."""
    turns = [own for own in TURN_METADATA.sorted_tables if own is not ALEMBIC_VERSION]
    return [*turns, *METADATA.sorted_tables, _WORDS]


def _contents(
    source: StoreConnection, target: StoreConnection | None = None
) -> dict[str, _Contents]:
    """Reads every table of a store, and writes what it read into another one, where one is given."""
    contents: dict[str, _Contents] = {}
    for own in _tables():
        statement = compiled(insert(own), own.c.keys())
        digest = hashlib.sha256()
        count = 0
        for batch in _batches(source, own):
            if target is not None:
                target.execute_many(statement, batch)
            count += len(batch)
            for row in batch:
                digest.update(json.dumps([*row.values()], default=bytes.hex).encode())
        contents[own.name] = _Contents(count, digest.hexdigest())
    return contents


def _number_on(db: StoreConnection) -> None:
    """Has rows that come get higher numbers than those that were copied, as SQLite does by itself."""
    if db.core.dialect.name == "postgresql":
        for name, number in _NUMBERED.items():
            sequence = f"pg_get_serial_sequence('{name}', '{number}')"
            # Of an empty table the highest number is NULL, and nothing changes.
            db.execute(f"SELECT setval({sequence}, max({number})) FROM {name}")


def _batches(db: StoreConnection, own: TableClause[Any]) -> Iterator[list[dict[str, Any]]]:
    """Gives the rows of a table, those that have no other order in that of their row numbers."""
    if not db.has_table(own.name):
        return
    rows = db.core.execute(_query(own), execution_options={"yield_per": BATCH})
    for partition in rows.mappings().partitions():
        yield [_normal(own, row) for row in partition]


def _query(own: TableClause[Any]) -> Select[*tuple[Any, ...]]:
    query = select(*own.c)
    if own in (MESSAGES, PLANS, _WORDS):
        return query.order_by(literal_column("rowid"))
    assert isinstance(own, Table)
    return query.order_by(*own.primary_key.columns)


def _normal(own: TableClause[Any], row: Mapping[Any, Any]) -> dict[str, Any]:
    """Returns a row as every database takes it: a log is bytes, and no text has a character zero."""
    values = dict(without_zeros(row))
    if own is LOGS and isinstance(values["log"], str):
        values["log"] = values["log"].encode()
    if own is EVENTS:
        values["large_response_triggered"] = bool(values["large_response_triggered"])
    return values
