"""The store's file: its connections, its transactions, and whose running turns are whose."""

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Executable, insert

from kit.core.errors import StoreBusy, StoreError
from kit.core.event import Event
from kit.core.record import UNANSWERED
from kit.stores.advice import advice
from kit.stores.connection import PATIENCE, StorageError, StoreConnection, is_busy, open_engine
from kit.stores.live_logs import LiveLogs, Rows
from kit.stores.owner import Owner
from kit.stores.rollup import ROLLUP_IS_DUE, sum_up
from kit.stores.rows import packed
from kit.stores.sqlite_queries import KEEP_RUNNING_LOG, LEAVE_QUESTIONS, SWEEP_EVENTS
from kit.stores.statements import INTERRUPT_TURNS, OWNERS_OF_RUNNING
from kit.stores.tables import ALEMBIC_VERSION, APPLICATION, METADATA, SCHEMA

T = TypeVar("T")
OLDEST = (3, 38, 0)
"""The first SQLite with the `->>` operator."""
AHEAD = 8000
"""Pages of the write-ahead log, 32 MB, at which a turn has to work it into the file: a longer one
costs every commit more."""
TURNS = 100
"""Turns that end before a second thread works the log into the file when it next looks: some 17
pages each, 20 ms in all."""
MANY = 300
"""Turns after which it does so at once."""
SWEEP_EVERY = 3600.0
"""Seconds between two looks for events past their retention."""
SWEEP = 1000
"""Events that go in one commit: a turn that writes waits no longer than for these."""


class Database:
    """One SQLite file, or `:memory:`; safe to use from several threads and processes."""

    has_souls = False
    """Whether anybody may have a soul; once true it stays so."""

    def __init__(self, path: Path | str, retention_days: float | None = None):
        self.path = str(path)
        self._retention = retention_days
        self._sweep_at = 0.0
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old for the store: use a Python built with 3.38 or newer"
            )
        self._home = threading.get_ident()
        self._side_lock = threading.Lock()
        self._side: StoreConnection | None = None
        self._owner = Owner(self.path)
        self._running: dict[str, Sequence[Event]] = {}
        self._ended = 0
        self._live_logs: LiveLogs | None = None
        self._engine = open_engine(self.path)
        self._reading_engine = open_engine(self.path, read_only=True)
        try:
            self._db = StoreConnection(self._engine)
            try:
                self._prepare()
                self.mark_interrupted()
                self._tend_documents()
                # From here on `wait_for` waits, for those who will.
                self._db.driver.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                self.close()
                raise
        except StorageError as error:
            raise self._refusal(error) from error

    def _prepare(self) -> None:
        self._db.driver.execute("PRAGMA synchronous = NORMAL")
        _bound_log(self._db)
        with self.commit() as db:
            # It raises before anything is written: another program's file stays as it is.
            if not self._is_current():
                _bring_up_to_date(db)
            self._owner.live()
        self._db.wait_for("PRAGMA journal_mode = WAL", PATIENCE)
        if self.path != ":memory:":
            self._live_logs = LiveLogs(self._running, self._keep_logs, self._tend)

    @property
    def _connection(self) -> StoreConnection:
        """The thread that opened the store, a loop's, has one for itself: it never waits until a
        page has read its list."""
        if threading.get_ident() == self._home or self.path == ":memory:":
            return self._db
        with self._side_lock:
            if self._side is None:
                self._side = StoreConnection(self._engine)
                _bound_log(self._side)
            return self._side

    def _is_current(self) -> bool:
        version, application = _marks(self._db)
        if application == APPLICATION and version > SCHEMA:
            raise StoreError(
                f"{self.path} was written by a newer version of the kit (schema {version}, this one knows {SCHEMA}): "
                "update the kit, or choose another file."
            )
        if application != APPLICATION and (
            application or self._db.driver.execute("SELECT 1 FROM sqlite_master").fetchone()
        ):
            raise StoreError(
                f"{self.path} is a database of another program: choose another file for the store."
            )
        return application == APPLICATION and version == SCHEMA

    def mark_interrupted(self) -> int:
        """Gives turns whose process died the status `interrupted`; returns how many. Called on
        opening.

        Their questions join the narration, as open ones. A turn that a live process runs, this one
        or another, is left alone.
        """
        if self.path == ":memory:":
            return 0
        with self.commit() as db:
            owners = self._owner.others()
            for (owner,) in db.execute(OWNERS_OF_RUNNING):
                owners.add(owner)
            interrupted = 0
            for owner in owners:
                if self._owner.dead(owner):
                    db.execute(LEAVE_QUESTIONS, {"owner": owner, "unanswered": UNANSWERED})
                    interrupted += db.execute(INTERRUPT_TURNS, {"by": owner}).rowcount
            return interrupted

    @contextmanager
    def commit(self, wait: bool = True) -> Generator[StoreConnection]:
        """One transaction: all that is written in it, or, when it raises, nothing. Raises StoreError, or StoreBusy."""
        try:
            connection = self._connection
            driver = connection.driver
            with connection.lock:
                connection.wait_for("BEGIN IMMEDIATE", PATIENCE if wait else 0.0)
                try:
                    yield connection
                    driver.execute("COMMIT")
                finally:
                    if driver.in_transaction:
                        driver.execute("ROLLBACK")
        except StorageError as error:
            raise self._refusal(error) from error

    def read(
        self, statement: Executable | str, values: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """Every row of a query; within `commit` as they are by then. Raises StoreError."""
        try:
            connection = self._connection
            with connection.lock:
                return connection.execute(statement, values).fetchall()
        except StorageError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> StoreError:
        cause = getattr(error, "orig", error)
        kind = StoreBusy if is_busy(cause) else StoreError
        return kind(advice(self.path, cause))

    def _read_apart(self, read: Callable[[StoreConnection], T]) -> T:
        """Reads much from one state of the file, on a connection of its own: nobody waits for it,
        and it cannot write."""
        if self.path == ":memory:":
            with self._db.lock:
                return read(self._db)
        try:
            with closing(StoreConnection(self._reading_engine)) as db:
                db.driver.execute("BEGIN")
                return read(db)
        except StorageError as error:
            raise self._refusal(error) from error

    def sum_up(self) -> None:
        """Adds up the turns that have ended, a thousand at a time, for metrics of all time."""
        while self.read(ROLLUP_IS_DUE)[0][0]:
            with self.commit() as db:
                if not sum_up(db):
                    return

    def _tend(self) -> None:
        """Does beside the loop what no turn shall wait for: works the log into the file, adds up
        the turns that have ended, notices souls that another process wrote, lets old events go."""
        if self._ended >= TURNS:
            self._ended = 0
            self.read("PRAGMA wal_checkpoint(PASSIVE)")
        self.sum_up()
        self._tend_documents()

    def _tend_documents(self) -> None:
        if not self.read("SELECT 1 FROM sqlite_master WHERE name = 'agent_souls'"):
            return
        self.has_souls = self.has_souls or bool(self.read("SELECT 1 FROM agent_souls LIMIT 1"))
        if self._retention is not None and time.monotonic() >= self._sweep_at:
            self._sweep_events(time.time() - self._retention * 86_400)
            self._sweep_at = time.monotonic() + SWEEP_EVERY

    def _sweep_events(self, before: float) -> None:
        deleted = SWEEP
        while deleted == SWEEP:
            with self.commit() as db:
                deleted = db.execute(SWEEP_EVENTS, {"before": before, "limit": SWEEP}).rowcount

    def _keep_logs(self, rows: Rows) -> int:
        """Writes the logs of turns that this process runs; returns how many those were."""
        rows_written = 0
        with self.commit() as db:
            for log, turn_id in rows:
                data, size = packed(log)
                values = {"log": data, "size": size, "turn": turn_id, "by": self._owner.id}
                rows_written += db.execute(KEEP_RUNNING_LOG, values).rowcount
        return rows_written

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._live_logs:
            self._live_logs.close()
        with self._side_lock:
            self._side = self._side or self._db  # no thread opens the file again
        for connection in (self._side, self._db):
            with connection.lock:
                connection.close()
        self._owner.end()


def _bound_log(db: StoreConnection) -> None:
    """A reader that stays open makes the write-ahead log grow; once it is gone, the log shrinks to its bound again."""
    db.driver.execute(f"PRAGMA wal_autocheckpoint = {AHEAD}")
    db.driver.execute(f"PRAGMA journal_size_limit = {AHEAD * 4096}")


def _marks(db: StoreConnection) -> tuple[int, int]:
    """Returns the schema that a file says it has, and the program that it says it is of."""
    (version,) = db.driver.execute("PRAGMA user_version").fetchone()
    (application,) = db.driver.execute("PRAGMA application_id").fetchone()
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
    db.driver.execute(f"PRAGMA application_id = {APPLICATION}")
    db.driver.execute(f"PRAGMA user_version = {SCHEMA}")
