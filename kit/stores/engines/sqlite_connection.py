"""Connections to a store's SQLite file: SQLAlchemy's, and the driver's beneath it for what a turn does."""

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, Engine, Executable, MetaData, create_engine, create_mock_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from kit.stores.engines.connection import PATIENCE
from kit.stores.rows import unpacked


@lru_cache(maxsize=32)
def open_engine(path: str, read_only: bool = False) -> Engine:
    """Returns the engine of a store's file, the same one for a path that was opened before.

    An engine asks SQLite what it is on its first connection and keeps the statements that it compiled. A new one for
    every store in memory takes as long as a short turn. It holds no connection, so that stores share nothing by it.
    """
    query: dict[str, str] = {}
    if read_only:
        path = Path(path).absolute().as_uri()
        query = {"mode": "ro", "uri": "true"}
    # The driver begins no transaction by itself: the store says BEGIN IMMEDIATE, as two that begin
    # to read and then write would wait for each other.
    options: dict[str, Any] = {
        "timeout": PATIENCE,
        "isolation_level": None,
        "check_same_thread": False,
    }
    url = URL.create("sqlite", database=path, query=query)
    return create_engine(url, poolclass=NullPool, connect_args=options)


class SqliteConnection:
    """The StoreConnection protocol over a file."""

    def __init__(self, engine: Engine):
        self.lock = threading.RLock()
        self.core = engine.connect()
        driver = self.core.connection.driver_connection
        self.driver = cast("sqlite3.Connection", driver)
        self.run = cast("Callable[[str, Mapping[str, Any]], Any]", self.driver.execute)
        self.execute_many = cast(
            "Callable[[str, Sequence[Mapping[str, Any]]], Any]", self.driver.executemany
        )
        add_unpacking(self.driver)
        self.driver.create_function("casefold", 1, str.casefold, deterministic=True)

    def execute(self, statement: Executable | str, values: Mapping[str, Any] | None = None) -> Any:
        """Executes a statement and returns its cursor, or SQLAlchemy's result."""
        if isinstance(statement, str):
            return self.driver.execute(statement, values or ())
        return self.core.execute(statement, values)

    def has_table(self, name: str) -> bool:
        """Whether the file has a table of this name."""
        query = "SELECT 1 FROM sqlite_master WHERE name = :name"
        return self.driver.execute(query, {"name": name}).fetchone() is not None

    def lay_out(self, metadata: MetaData) -> None:
        """Creates the tables, indexes, triggers and views that the file lacks."""
        for statement in creating(metadata):
            self.driver.execute(statement)

    def begin(self, patience: float) -> None:
        """Begins a transaction that writes, as soon as no other process does."""
        try:
            self.driver.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            self.wait_for("BEGIN IMMEDIATE", patience)

    def begin_reading(self) -> None:
        """Begins a transaction that reads one state of the file."""
        self.driver.execute("BEGIN")

    def commit(self) -> None:
        """Keeps what was written."""
        self.driver.execute("COMMIT")

    def roll_back(self) -> None:
        """Takes back what was not committed."""
        if self.driver.in_transaction:
            self.driver.execute("ROLLBACK")

    def wait_for(self, sql: str, seconds: float) -> None:
        """Executes what needs the file for itself, as soon as no other process writes it."""
        until = time.monotonic() + seconds
        while True:
            try:
                self.driver.execute(sql)
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= until:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        """Closes it; a second call does nothing."""
        self.core.close()


@cache
def creating(metadata: MetaData) -> tuple[str, ...]:
    """Returns the statements that create what a file lacks of these tables, with their indexes, triggers and views.

    `create_all` asks SQLite about each table and index first and compiles its statement, which for
    every store that is opened takes ten times as long as to create them.
    """
    statements: list[str] = []

    def note(element: ExecutableDDLElement, *_: Any, **__: Any) -> None:
        if isinstance(element, CreateTable | CreateIndex):
            element.if_not_exists = True
        statements.append(str(element.compile(dialect=engine.dialect)))

    engine = create_mock_engine("sqlite://", note)
    metadata.create_all(engine, checkfirst=False)
    return tuple(statements)


def add_unpacking(connection: sqlite3.Connection) -> None:
    """Gives a connection the function that unpacks a log in a query; the shell `sqlite3` has it by itself."""
    connection.create_function("sqlar_uncompress", 2, unpacked, deterministic=True)


def is_busy(error: BaseException | None) -> bool:
    """Whether somebody else is writing to the file at this moment."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
