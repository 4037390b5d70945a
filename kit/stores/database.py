"""The store's file: its connections, its transactions, and whose running turns are whose."""

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kit.core.errors import StoreBusy, StoreError
from kit.core.event import Event
from kit.core.record import UNANSWERED
from kit.stores.advice import advice
from kit.stores.live_logs import LiveLogs, Rows
from kit.stores.migration import lay_out
from kit.stores.owner import Owner
from kit.stores.rollup import READY, sum_up
from kit.stores.statements import (
    INTERRUPT_TURNS,
    KEEP_RUNNING_LOG,
    LEAVE_QUESTIONS,
    OWNERS_OF_RUNNING,
)
from kit.stores.tables import APPLICATION, SCHEMA
from kit.stores.transaction import is_busy, wait_for

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
PATIENCE = 5.0
"""Seconds to wait for another process that writes."""
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
        self._lock = threading.RLock()
        self._side_lock = threading.RLock()
        self._home = threading.get_ident()
        self._side: sqlite3.Connection | None = None
        self._owner = Owner(self.path)
        self._running: dict[str, Sequence[Event]] = {}
        self._ended = 0
        self._live_logs: LiveLogs | None = None
        try:
            self._db = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
                self.mark_interrupted()
                self._tend_documents()
                self._db.execute(
                    "PRAGMA busy_timeout = 0"
                )  # from here on `_wait_for` waits, for those who will
            except BaseException:
                self.close()
                raise
        except sqlite3.Error as error:
            raise StoreError(advice(self.path, error)) from error

    def _prepare(self) -> None:
        self._db.execute("PRAGMA synchronous = NORMAL")
        _bound_log(self._db)
        with self.commit() as db:
            if (
                not self._is_current()
            ):  # raises before anything is written: another program's file stays as it is
                lay_out(db)
            self._owner.live()
        wait_for(self._db, "PRAGMA journal_mode = WAL", PATIENCE)
        if self.path != ":memory:":
            self._live_logs = LiveLogs(self._running, self._keep_logs, self._tend)

    @property
    def _connection(self) -> tuple[threading.RLock, sqlite3.Connection]:
        """The thread that opened the store, a loop's, has one for itself: it never waits until a
        page has read its list."""
        if threading.get_ident() == self._home or self.path == ":memory:":
            return self._lock, self._db
        with self._side_lock:
            if self._side is None:
                self._side = sqlite3.connect(
                    self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
                )
                _bound_log(self._side)
            return self._side_lock, self._side

    def _is_current(self) -> bool:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
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
                    interrupted += db.execute(INTERRUPT_TURNS, {"owner": owner}).rowcount
            return interrupted

    @contextmanager
    def commit(self, wait: bool = True) -> Generator[sqlite3.Connection]:
        """One transaction: all that is written in it, or, when it raises, nothing. Raises StoreError, or StoreBusy."""
        try:
            lock, db = self._connection
            with lock:
                wait_for(db, "BEGIN IMMEDIATE", PATIENCE if wait else 0.0)
                try:
                    yield db
                    db.execute("COMMIT")
                finally:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise (StoreBusy if is_busy(error) else StoreError)(advice(self.path, error)) from error

    def read(self, sql: str, *values: Any, **names: Any) -> list[Any]:
        """Every row of a query; within `commit` as they are by then. Raises StoreError."""
        try:
            lock, db = self._connection
            with lock:
                return db.execute(sql, names or values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(advice(self.path, error)) from error

    def _read_apart(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Reads much from one state of the file, on a connection of its own: nobody waits for it,
        and it cannot write."""
        if self.path == ":memory:":
            with self._lock:
                return read(self._db)
        uri = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        try:
            with closing(
                sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
            ) as db:
                db.execute("BEGIN")
                return read(db)
        except sqlite3.Error as error:
            raise StoreError(advice(self.path, error)) from error

    def sum_up(self) -> None:
        """Adds up the turns that have ended, a thousand at a time, for metrics of all time."""
        while self.read(READY)[0][0]:
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
        has_documents = bool(self.read("SELECT 1 FROM sqlite_master WHERE name = 'agent_souls'"))
        self.has_souls = self.has_souls or (
            has_documents and bool(self.read("SELECT 1 FROM agent_souls LIMIT 1"))
        )
        if has_documents and self._retention is not None and time.monotonic() >= self._sweep_at:
            self._sweep_events(time.time() - self._retention * 86_400)
            self._sweep_at = time.monotonic() + SWEEP_EVERY

    def _sweep_events(self, before: float) -> None:
        while rows := self.read(
            "SELECT seq FROM agent_events WHERE ts < ? ORDER BY seq LIMIT ?", before, SWEEP
        ):
            with self.commit() as db:
                db.executemany("DELETE FROM agent_events WHERE seq = ?", rows)

    def _keep_logs(self, rows: Rows) -> None:
        with self.commit() as db:
            db.executemany(KEEP_RUNNING_LOG, rows)

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._live_logs:
            self._live_logs.close()
        with self._lock, self._side_lock:
            self._side = self._side or self._db  # no thread opens the file again
            for connection in (self._side, self._db):
                connection.close()
            self._owner.end()


def _bound_log(db: sqlite3.Connection) -> None:
    """A reader that stays open makes the write-ahead log grow; once it is gone, the log shrinks to its bound again."""
    db.execute(f"PRAGMA wal_autocheckpoint = {AHEAD}")
    db.execute(f"PRAGMA journal_size_limit = {AHEAD * 4096}")
