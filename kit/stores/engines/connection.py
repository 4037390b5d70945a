"""What the statements of the store need of a connection, whatever the database."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, Executable, MetaData

PATIENCE = 5.0
"""Seconds to wait for another process that writes."""


class StoreConnection(Protocol):
    """One connection to the store's database, for one thread at a time.

    A Core statement runs through SQLAlchemy. Text, whose values are named as in `:tenant`, runs on
    the driver: on SQLite a statement there makes 4 Python calls, through the engine 57, and a turn
    executes eight.
    """

    lock: threading.RLock
    core: Connection
    run: Callable[[str, Mapping[str, Any]], Any]
    """Executes text as `execute` does, on SQLite in a single call: a turn counts them."""
    execute_many: Callable[[str, Sequence[Mapping[str, Any]]], Any]
    """Executes text once for each row."""

    def execute(self, statement: Executable | str, values: Mapping[str, Any] | None = None) -> Any:
        """Executes a statement and returns its cursor, or SQLAlchemy's result."""
        ...

    def has_table(self, name: str) -> bool: ...

    def lay_out(self, metadata: MetaData) -> None:
        """Creates the tables, indexes, triggers and views that the database lacks."""
        ...

    def begin(self, patience: float) -> None:
        """Begins a transaction that writes, as the only one; waits so many seconds for another that does."""
        ...

    def begin_reading(self) -> None:
        """Begins a transaction that reads one state of the database, whoever writes meanwhile."""
        ...

    def commit(self) -> None: ...

    def roll_back(self) -> None:
        """Takes back what was written since `begin`; does nothing after `commit`."""
        ...

    def close(self) -> None:
        """Closes it; a second call does nothing."""
        ...
