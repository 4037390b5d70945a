"""The embedded store: one SQLite file that survives kill -9 and answers plain SQL (tables in docs/traces.md)."""

import sqlite3
from pathlib import Path
from typing import cast

from sqlalchemy import insert
from sqlalchemy.exc import DBAPIError, ResourceClosedError

from kit.core.context import Principal
from kit.core.errors import StoreBusy, StoreError
from kit.stores.engines.advice import advice
from kit.stores.engines.connection import PATIENCE, StoreConnection
from kit.stores.engines.owner import Owner
from kit.stores.engines.sqlite_connection import (
    SqliteConnection,
    add_unpacking,
    is_busy,
    open_engine,
)
from kit.stores.tables import ALEMBIC_VERSION, APPLICATION, METADATA, SCHEMA
from kit.stores.turn_store import TurnStore

OLDEST = (3, 38, 0)
"""The first SQLite with the `->>` operator."""
AHEAD = 8000
"""Pages of the write-ahead log, 32 MB, at which a turn has to work it into the file: a longer one
costs every commit more."""
CACHE = 16_000
"""KiB of pages that a connection keeps. With SQLite's 2,000 a turn of a long conversation reads eighty pages again."""
WORDS = "agent_memory_words"
TURNS = 100
"""Turns that end before a second thread works the log into the file when it next looks: some 17
pages each, 20 ms in all."""


class SqliteStore(TurnStore):
    """The store in one SQLite file, or `:memory:`."""

    errors = (sqlite3.Error, DBAPIError, ResourceClosedError)

    def __init__(self, path: Path | str, retention_days: float | None = None):
        self.path = str(path)
        self.lasts = self.path != ":memory:"
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old for the store: use a Python built with 3.38 or newer"
            )
        self._life = Owner(self.path)
        self.owner = self._life.id
        self._engine = open_engine(self.path)
        self._reading_engine = open_engine(self.path, read_only=True)
        super().__init__(retention_days)
        # From here on `wait_for` waits, for those who will.
        self._db.execute("PRAGMA busy_timeout = 0")

    def _connect(self, apart: bool = False) -> SqliteConnection:
        if apart:
            return SqliteConnection(self._reading_engine)
        connection = SqliteConnection(self._engine)
        # A reader that stays open makes the write-ahead log grow; once it is gone, the log shrinks
        # to its bound again.
        connection.execute(f"PRAGMA wal_autocheckpoint = {AHEAD}")
        connection.execute(f"PRAGMA journal_size_limit = {AHEAD * 4096}")
        connection.execute(f"PRAGMA cache_size = -{CACHE}")
        return connection

    def _prepare(self) -> None:
        self._db.execute("PRAGMA synchronous = NORMAL")
        with self.commit() as db:
            # It raises before anything is written: another program's file stays as it is.
            if not self._is_current():
                _bring_up_to_date(db)
            self._life.live()
        cast("SqliteConnection", self._db).wait_for("PRAGMA journal_mode = WAL", PATIENCE)

    def _is_current(self) -> bool:
        version, application = _marks(self._db)
        if application == APPLICATION and version > SCHEMA:
            raise StoreError(
                f"{self.path} was written by a newer version of the kit (schema {version}, this one knows {SCHEMA}): "
                "update the kit, or choose another file."
            )
        if application != APPLICATION and (
            application or self._db.execute("SELECT 1 FROM sqlite_master").fetchone()
        ):
            raise StoreError(
                f"{self.path} is a database of another program: choose another file for the store."
            )
        return application == APPLICATION and version == SCHEMA

    def _refusal(self, error: Exception) -> StoreError:
        cause = getattr(error, "orig", error)
        kind = StoreBusy if is_busy(cause) else StoreError
        return kind(advice(self.path, cause))

    def _owners_beside(self) -> set[str]:
        return self._life.others()

    def _is_dead(self, db: StoreConnection, owner: str) -> bool:
        return self._life.dead(owner)

    def _tend(self) -> None:
        """Works the log into the file too, which no turn shall wait for."""
        if self._ended >= TURNS:
            self._ended = 0
            self.read("PRAGMA wal_checkpoint(PASSIVE)")
        super()._tend()

    def forget(self, principal: Principal) -> dict[str, int]:
        """Removes a principal's rows, overwritten with zeros in the file and its log; returns how many of each table.

        Raises StoreBusy while a turn of theirs runs, or while somebody reads what the log still holds.
        """
        with self.commit() as db:
            db.execute("PRAGMA secure_delete = ON")
            counts = self._forget(db, principal)
            if db.has_table(WORDS):
                # Its words are in an index that is rewritten now, not when it grows.
                db.execute(f"INSERT INTO {WORDS} ({WORDS}) VALUES ('optimize')")
        if self.read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise StoreBusy(
                f"{principal.user_id} is removed, but {self.path}-wal is being read and still "
                "holds them; try this again"
            )
        return counts

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        super().close()
        self._life.end()


def open_for_reading(path: Path | str) -> sqlite3.Connection:
    """Opens a store's file for SQL of one's own, which can read it and its views and write nothing."""
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    add_unpacking(connection)
    return connection


def _marks(db: StoreConnection) -> tuple[int, int]:
    """Returns the schema that a file says it has, and the program that it says it is of."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    return version, application


def _bring_up_to_date(db: StoreConnection) -> None:
    """Gives a new file its tables; brings one of an earlier schema to that of today, with every row."""
    version, application = _marks(db)
    if application:
        from kit.stores.migrations import migrate  # loads Alembic, which few openings need

        migrate(db.core, version)
    db.lay_out(METADATA)
    if not application:
        db.execute(insert(ALEMBIC_VERSION), {"version_num": f"{SCHEMA:04d}"})
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")
