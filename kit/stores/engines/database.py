"""What a store does on any database: its connections, its transactions, and whose running turns are whose."""

import asyncio
import math
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Executable

from kit.core.context import SessionKey
from kit.core.errors import KitError, SessionError, StoreError
from kit.core.event import Event
from kit.core.record import UNANSWERED
from kit.stores.engines.connection import PATIENCE, StoreConnection
from kit.stores.live_logs import LiveLogs, Rows
from kit.stores.queries import KEEP_RUNNING_LOG, LEAVE_QUESTIONS, SWEEP_EVENTS, SWEEP_MEMORIES
from kit.stores.rollup import ROLLUP_IS_DUE, sum_up
from kit.stores.rows import packed
from kit.stores.statements import INTERRUPT_TURNS, OWNERS_OF_RUNNING

T = TypeVar("T")
SWEEP_EVERY = 3600.0
"""Seconds between two looks for events past their retention."""
SWEEP = 1000
"""Events that go in one commit: a turn that writes waits no longer than for these."""
LATE_WRITES = 1000
"""Ends of turns that wait for a database which is away; those before them stay unsaved. Each holds its turn's log."""
CROWD = 3
"""Turns that run at once from which on their writes share commits: ten in one take half the time, as they fill the
same pages. A turn with few beside it does not wait for them."""


class Database(ABC):
    """The database of a store; safe to use from several threads and processes.

    One process writes at a time, on every database: so numbers of rows are given in the order of commits, which
    sums of turns, searches of vectors and the order of narration rest on.
    """

    has_souls = False
    """Whether anybody may have a soul; once true it stays so."""
    dialect = "sqlite"
    """What SQLAlchemy calls the database."""
    lasts = True
    """Whether it outlives its process, and may have other ones beside it."""
    errors: tuple[type[Exception], ...]
    """What a statement raises, by the driver or through SQLAlchemy."""
    owner: str
    """The id of this process, as turns that it runs name it."""

    def __init__(self, retention_days: float | None):
        self._retention = retention_days
        self._sweep_at = 0.0
        self._marked_at = -math.inf
        self._home = threading.get_ident()
        self._side_lock = threading.Lock()
        self._side: StoreConnection | None = None
        self._running: dict[str, Sequence[Event]] = {}
        self.at_work: dict[str, SessionKey] = {}
        """Turns of this process that are in no store as ended, with their sessions."""
        self._queue: list[tuple[Callable[[], None], asyncio.Future[bool]]] = []
        """Writes that share the next commit."""
        self._late_writes: deque[tuple[str, Callable[[], None]]] = deque(maxlen=LATE_WRITES)
        self._is_shared = False
        """Whether a commit is open that several turns share."""
        self._live_logs: LiveLogs | None = None
        try:
            self._db = self._connect()
            try:
                self._prepare()
                if self.lasts:
                    self._live_logs = LiveLogs(self._running, self._keep_logs, self._tend)
                self.mark_interrupted()
                self._tend_documents()
            except BaseException:
                self.close()
                raise
        except self.errors as error:
            raise self._refusal(error) from error

    @abstractmethod
    def _connect(self, apart: bool = False) -> StoreConnection:
        """Opens a connection; one that is `apart` reads, and is closed soon."""

    @abstractmethod
    def _prepare(self) -> None:
        """Brings the database up to date, and tells others that this process lives. Raises StoreError."""

    @abstractmethod
    def _refusal(self, error: Exception) -> StoreError:
        """Returns what to raise for what a statement raised, with a sentence on what helps."""

    @abstractmethod
    def _owners_beside(self) -> set[str]:
        """Owners of whom something is left beside the database, alive or not."""

    @abstractmethod
    def _is_dead(self, db: StoreConnection, owner: str) -> bool:
        """Whether the process of an owner has ended."""

    @property
    def _connection(self) -> StoreConnection:
        """The thread that opened the store, a loop's, has one for itself: it never waits until a
        page has read its list."""
        if threading.get_ident() == self._home or not self.lasts:
            return self._db
        with self._side_lock:
            if self._side is None:
                self._side = self._connect()
            return self._side

    def mark_interrupted(self, every: float = 0.0) -> int:
        """Gives turns whose process died the status `interrupted`; returns how many. Called on
        opening.

        Their questions join the narration, as open ones. A turn that a live process runs, this one
        or another, is left alone. It does nothing where that was done within the last `every` seconds.
        """
        now = time.monotonic()
        if not self.lasts or now - self._marked_at < every:
            return 0
        self._marked_at = now
        with self.commit() as db:
            owners = self._owners_beside()
            for (owner,) in db.execute(OWNERS_OF_RUNNING):
                owners.add(owner)
            interrupted = 0
            for owner in owners - {self.owner}:
                if self._is_dead(db, owner):
                    db.execute(LEAVE_QUESTIONS, {"owner": owner, "unanswered": UNANSWERED})
                    interrupted += db.execute(INTERRUPT_TURNS, {"by": owner}).rowcount
            return interrupted

    @contextmanager
    def commit(self, wait: bool = True) -> Generator[StoreConnection]:
        """One transaction: all that is written in it, or, when it raises, nothing. Raises StoreError, or StoreBusy."""
        try:
            connection = self._connection
            with connection.lock:
                if self._is_shared and connection is self._db:
                    yield connection
                    return
                connection.begin(PATIENCE if wait else 0.0)
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.roll_back()
                    raise
        except self.errors as error:
            raise self._refusal(error) from error

    async def write_together(self, write: Callable[[], None]) -> None:
        """Calls what a turn writes with, and returns once it is committed; of many turns at once it makes one commit.

        What is cancelled while it waits is not written. Raises what `write` raises.
        """
        if len(self._running) < CROWD or threading.get_ident() != self._home:
            write()
            return
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[bool] = loop.create_future()
        self._queue.append((write, committed))
        # Before it is called, every turn that can go on by now has its write in the queue.
        loop.call_soon(self._write_queue)
        if not await committed:
            # One of them was refused, and all of them taken back.
            write()

    def _write_queue(self) -> None:
        queue = self._queue
        self._queue = []
        if not queue:
            return
        is_committed = False
        try:
            with suppress(KitError):
                with self.commit(wait=False):
                    self._is_shared = True
                    for write, committed in queue:
                        if not committed.cancelled():
                            write()
                is_committed = True
        finally:
            self._is_shared = False
            for _, committed in queue:
                if not committed.cancelled():
                    committed.set_result(is_committed)

    def write_later(self, turn_id: str, write: Callable[[], None]) -> None:
        """Has the end of a turn that was refused written again beside the loop, until the database takes it or is
        closed."""
        self._late_writes.append((turn_id, write))

    def _write_late(self) -> None:
        while self._late_writes:
            turn_id, write = self._late_writes.popleft()
            try:
                write()
                self.at_work.pop(turn_id, None)
            except SessionError:
                # It is of another conversation by now, and will never be taken.
                continue
            except StoreError:
                self._late_writes.appendleft((turn_id, write))
                raise

    def read(
        self, statement: Executable | str, values: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """Every row of a query; within `commit` as they are by then. Raises StoreError."""
        try:
            connection = self._connection
            with connection.lock:
                return connection.execute(statement, values).fetchall()
        except self.errors as error:
            raise self._refusal(error) from error

    def read_apart(self, read: Callable[[StoreConnection], T]) -> T:
        """Reads much from one state of the database, on a connection of its own: nobody waits for it,
        and it cannot write."""
        if not self.lasts:
            with self._db.lock:
                return read(self._db)
        try:
            with closing(self._connect(apart=True)) as db:
                db.begin_reading()
                return read(db)
        except self.errors as error:
            raise self._refusal(error) from error

    def sum_up(self) -> None:
        """Adds up the turns that have ended, a thousand at a time, for metrics of all time."""
        while self.read(ROLLUP_IS_DUE)[0][0]:
            with self.commit() as db:
                if not sum_up(db):
                    return

    def _tend(self) -> None:
        """Does beside the loop what no turn shall wait for: writes what was refused, adds up the turns that
        have ended, notices souls that another process wrote, lets old events go."""
        self._write_late()
        self.sum_up()
        self._tend_documents()

    def _tend_documents(self) -> None:
        if not self._has_souls_table():
            return
        self.has_souls = self.has_souls or bool(self.read("SELECT 1 FROM agent_souls LIMIT 1"))
        if self._retention is not None and time.monotonic() >= self._sweep_at:
            self.sweep_documents(time.time(), self._retention * 86_400)
            self._sweep_at = time.monotonic() + SWEEP_EVERY

    def _has_souls_table(self) -> bool:
        try:
            connection = self._connection
            with connection.lock:
                return connection.has_table("agent_souls")
        except self.errors as error:
            raise self._refusal(error) from error

    def sweep_documents(self, now: float, retention: float) -> None:
        """Deletes memories that have expired by `now`, and events of more than `retention` seconds before it."""
        with self.commit() as db:
            db.execute(SWEEP_MEMORIES, {"now": now})
        deleted = SWEEP
        while deleted == SWEEP:
            with self.commit() as db:
                values = {"before": now - retention, "limit": SWEEP}
                deleted = db.execute(SWEEP_EVENTS, values).rowcount

    def _keep_logs(self, rows: Rows) -> int:
        """Writes the logs of turns that this process runs; returns how many those were."""
        rows_written = 0
        with self.commit() as db:
            for log, turn_id in rows:
                data, size = packed(log)
                values = {"log": data, "size": size, "turn": turn_id, "by": self.owner}
                rows_written += db.execute(KEEP_RUNNING_LOG, values).rowcount
        return rows_written

    def close(self) -> None:
        """Closes the database; a second call does nothing."""
        if self._live_logs:
            self._live_logs.close()
        with suppress(StoreError):
            self._write_late()
        with self._side_lock:
            self._side = self._side or self._db  # no thread opens the database again
        for connection in (self._side, self._db):
            with connection.lock:
                connection.close()


def new_owner() -> str:
    """Returns an id for this process that no other has."""
    return uuid.uuid4().hex[:12]
