"""Connections to the store's file: SQLAlchemy's, and the driver's beneath it for what a turn does."""

import sqlite3
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, Engine, Executable, MetaData, create_engine
from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.pool import NullPool

StorageError = (sqlite3.Error, DBAPIError, ResourceClosedError)
"""What a statement raises, by the driver or through SQLAlchemy."""
PATIENCE = 5.0
"""Seconds to wait for another process that writes."""


def open_engine(path: str, read_only: bool = False) -> Engine:
    """Returns the engine of a store's file."""
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


class StoreConnection:
    """One connection to the store's file, for one thread at a time.

    A Core statement runs through SQLAlchemy. Text runs on the driver: there a statement makes 4
    Python calls, through the engine 57, and a turn executes seven.
    """

    def __init__(self, engine: Engine):
        self.lock = threading.RLock()
        self.core = engine.connect()
        driver = self.core.connection.driver_connection
        self.driver = cast("sqlite3.Connection", driver)
        _add_unpacking(self.driver)

    def execute(
        self,
        statement: Executable | str,
        values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Any:
        """Executes a statement and returns its cursor, or SQLAlchemy's result."""
        if isinstance(statement, str):
            return self.driver.execute(statement, values or ())
        return self.core.execute(statement, values)

    def lay_out(self, metadata: MetaData) -> None:
        """Creates the tables, indexes, triggers and views that the file lacks."""
        metadata.create_all(self.core)
        for table in metadata.tables.values():
            # `create_all` passes over the indexes of a table that is there.
            for index in table.indexes:
                index.create(self.core, checkfirst=True)

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


def open_for_reading(path: Path | str) -> sqlite3.Connection:
    """Opens a store's file for SQL of one's own, which can read it and its views and write nothing."""
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    _add_unpacking(connection)
    return connection


def _add_unpacking(connection: sqlite3.Connection) -> None:
    """Gives a connection the function that unpacks a log in a query; the shell `sqlite3` has it by itself."""
    connection.create_function("sqlar_uncompress", 2, _unpack, deterministic=True)


def _unpack(log: bytes | str, size: int) -> bytes | str:
    if not size or isinstance(log, str):
        return log
    try:
        return zlib.decompress(log).decode()
    except (zlib.error, UnicodeDecodeError):
        # Somebody else wrote it. An error here would break the query for the other rows.
        return log


def is_busy(error: BaseException | None) -> bool:
    """Whether somebody else is writing to the file at this moment."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
