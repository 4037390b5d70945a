"""Copies a store into an empty one, of the same database or another, and compares the two row by row."""

import hashlib
import json
from collections.abc import Iterator, Mapping
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

from kit.core.errors import StoreError
from kit.stores.documents.tables import EVENTS, MEMORY, METADATA, PLANS, lay_out_documents
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
