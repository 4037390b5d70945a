"""The store in PostgreSQL, by a URL; needs the extra `postgres`."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Executable,
    MetaData,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import ArgumentError, DBAPIError, ResourceClosedError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from kit.core.errors import StoreBusy, StoreError
from kit.core.secret import url_passwords, without_password, without_secret_words
from kit.stores.engines.connection import PATIENCE, StoreConnection
from kit.stores.engines.database import new_owner
from kit.stores.rows import without_zeros
from kit.stores.tables import ALEMBIC_VERSION, APPLICATION, METADATA, SCHEMA
from kit.stores.turn_store import TurnStore

T = TypeVar("T")
# Locks of which PostgreSQL knows nothing but their numbers. Whoever writes holds the first one until
# the commit; every connection of a process shares the second one as long as it lives.
_LOCK = f"advisory_xact_lock({APPLICATION}, hashtext(current_schema()))"
_BEGIN = f"BEGIN; SELECT pg_{_LOCK}".encode()
_TRY_TO_BEGIN = f"BEGIN; SELECT pg_try_{_LOCK}".encode()
_LIVE = f"""
SELECT
  pg_advisory_lock_shared(hashtextextended(%(owner)s, {APPLICATION})),
  set_config('lock_timeout', '{PATIENCE}s', false),
  -- A machine that vanishes says no good-bye: after a minute its owner counts as dead.
  set_config('tcp_keepalives_idle', '30', false),
  set_config('tcp_keepalives_interval', '10', false),
  set_config('tcp_keepalives_count', '3', false)
""".encode()
_IS_DEAD = f"SELECT pg_try_advisory_xact_lock(hashtextextended(:owner, {APPLICATION}))"
_FUNCTIONS = {
    "json_group_array": "json_agg",
    "json_group_object": "json_object_agg",
    "json_array": "json_build_array",
}
"""SQLite's functions that are called otherwise here."""
_NAMED = DefaultDialect(paramstyle="pyformat")
_CONNECTING: Mapping[str, int] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""How soon a server that vanished without a word counts as gone, in seconds and at last in
milliseconds; the URL may say otherwise."""
FORM = "postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE"
"""The URL of a store."""
_NO_SCHEMA = ("42501", "3F000")
_BUSY = ("55P03", "40001", "40P01")
"""A lock that was not given in time, and transactions that would have waited for each other."""


class _Busy(Exception):
    """Somebody else writes."""


@cache
def _worded(sql: str) -> bytes:
    """Returns text that is worded for SQLite as it is worded here."""
    for name, own in _FUNCTIONS.items():
        sql = sql.replace(f"{name}(", f"{own}(")
    return str(text(sql).compile(dialect=_NAMED)).encode()


class PostgresConnection:
    """The StoreConnection protocol over a connection that is opened again where PostgreSQL dropped it."""

    core: Connection
    driver: "psycopg.Connection[Any]"

    def __init__(self, engine: Engine):
        self.lock = threading.RLock()
        self.run = cast("Callable[[str, Mapping[str, Any]], Any]", self.execute)
        self._engine = engine
        self._closed = False
        self._open()

    def _open(self) -> None:
        self.core = self._engine.connect()
        self.driver = cast("psycopg.Connection[Any]", self.core.connection.driver_connection)

    def _attempt(self, work: Callable[[], T]) -> T:
        """Does what can be done a second time, and does so where the connection turns out to be gone."""
        if self._closed:
            raise ResourceClosedError("it is closed")
        if not self.driver.closed:
            try:
                return work()
            except (psycopg.Error, DBAPIError):
                if not self.driver.closed:
                    raise
        if not self.core.closed:
            self.core.invalidate()
            self.core.close()
        self._open()
        return work()

    @property
    def _in_transaction(self) -> bool:
        status = self.driver.info.transaction_status
        return status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def execute(self, statement: Executable | str, values: Mapping[str, Any] | None = None) -> Any:
        """Executes a statement and returns its cursor, or SQLAlchemy's result."""
        values = values and without_zeros(values)

        def work() -> Any:
            if isinstance(statement, str):
                return self.driver.execute(_worded(statement), values)
            return self.core.execute(statement, values)

        # What a transaction has done before is gone with its connection: there is no second attempt.
        if self._in_transaction:
            return work()
        return self._attempt(work)

    def execute_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Executes a statement once for each row."""
        with self.driver.cursor() as cursor:
            cursor.executemany(_worded(statement), [without_zeros(row) for row in rows])

    def has_table(self, name: str) -> bool:
        """Whether the schema has a table of this name."""
        cursor = self.execute("SELECT to_regclass(:name) IS NOT NULL", {"name": name})
        return cursor.fetchone()[0]

    def lay_out(self, metadata: MetaData) -> None:
        """Creates the tables, indexes, triggers and views that the schema lacks."""
        if not all(self.has_table(name) for name in metadata.tables):
            metadata.create_all(self.core)

    def begin(self, patience: float) -> None:
        """Begins a transaction that writes, as the only one."""
        # PostgreSQL would warn, and end both with the first commit.
        if self._in_transaction:
            raise psycopg.ProgrammingError("a transaction is open already")

        def work() -> None:
            if patience:
                self.driver.execute(_BEGIN)
                return
            cursor = self.driver.execute(_TRY_TO_BEGIN)
            cursor.nextset()
            if cursor.fetchone() != (True,):
                self.roll_back()
                raise _Busy("another process writes to it")

        try:
            self._attempt(work)
        except BaseException:
            self.roll_back()
            raise

    def begin_reading(self) -> None:
        """Begins a transaction that reads one state of the database."""
        self.driver.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self) -> None:
        """Keeps what was written."""
        self.driver.execute("COMMIT")

    def roll_back(self) -> None:
        """Takes back what was not committed."""
        if self._in_transaction:
            self.driver.execute("ROLLBACK")

    def close(self) -> None:
        """Closes it, or gives it back to the pool; a second call does nothing."""
        self._closed = True
        if self.driver.closed and not self.core.closed:
            self.core.invalidate()
        self.core.close()


class PostgresStore(TurnStore):
    """The store in a schema of a PostgreSQL database."""

    errors = (psycopg.Error, DBAPIError, ResourceClosedError, PoolTimeout, _Busy)
    dialect = "postgresql"

    def __init__(self, url: str, retention_days: float | None = None):
        self.place = without_password(url)
        self._passwords = url_passwords(url)
        self.owner = new_owner()
        self._engine = _open_engine(_parse(url), self.owner)
        super().__init__(retention_days)

    def _connect(self, apart: bool = False) -> PostgresConnection:
        return PostgresConnection(self._engine)

    def _prepare(self) -> None:
        with self.commit() as db:
            tables = inspect(db.core).get_table_names()
            if not tables:
                db.lay_out(METADATA)
                db.execute(ALEMBIC_VERSION.insert(), {"version_num": f"{SCHEMA:04d}"})
                return
            self._bring_up_to_date(db, set(tables))

    def _bring_up_to_date(self, db: StoreConnection, tables: set[str]) -> None:
        """Migrates a schema of an earlier version. Raises StoreError, before anything is written, for
        one of a newer version, and for one with tables of another program."""
        version = ""
        if tables >= METADATA.tables.keys():
            version = db.execute(select(ALEMBIC_VERSION.c.version_num)).scalar_one_or_none() or ""
        if not version.isdecimal():
            raise StoreError(
                f"{self.place} has tables of another program: choose another database, or give the URL a schema "
                "of the store's own (?options=-csearch_path%3DNAME)."
            )
        if int(version) > SCHEMA:
            raise StoreError(
                f"{self.place} was written by a newer version of the kit (schema {int(version)}, this one knows "
                f"{SCHEMA}): update the kit, or choose another database."
            )
        if int(version) < SCHEMA:
            from kit.stores.migrations import migrate  # loads Alembic, which few openings need

            migrate(db.core, int(version))
            METADATA.create_all(db.core)

    def _refusal(self, error: Exception) -> StoreError:
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None) or ""
        words = without_secret_words(str(cause), self._passwords).strip().partition("\n")[0]
        problem = f"the store {self.place} cannot be used ({words}): "
        if isinstance(cause, ResourceClosedError):
            return StoreError(problem + "open it again.")
        if isinstance(cause, (_Busy, PoolTimeout)) or state in _BUSY:
            return StoreBusy(
                problem
                + "another process did not finish writing to it in time; try again, or stop that process."
            )
        if state.startswith("53"):
            return StoreError(problem + "make room on the machine of the database.")
        if state in _NO_SCHEMA:
            return StoreError(
                problem + "create its schema, and let its user create and write tables there."
            )
        if isinstance(cause, psycopg.OperationalError):
            return StoreError(
                problem
                + "see that PostgreSQL runs there and takes this user, password and database; "
                "what comes next connects anew."
            )
        return StoreError(problem + "see what the log of the database says of it.")

    def _owners_beside(self) -> set[str]:
        return set()

    def _is_dead(self, db: StoreConnection, owner: str) -> bool:
        return db.execute(_IS_DEAD, {"owner": owner}).fetchone()[0]

    def close(self) -> None:
        """Closes every connection; a second call does nothing."""
        super().close()
        self._engine.dispose()


def _parse(url: str) -> URL:
    """Returns the URL of a store. Raises StoreError, which does not quote it: it may hold a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(
            f"the URL of the store cannot be read: it has the form {FORM}, in which %40, %2F and %3A stand for "
            "@, / and : of a password"
        ) from None
    if parsed.get_backend_name() != "postgresql":
        raise StoreError(
            f"no store is kept in {parsed.get_backend_name()!r}: set KIT_STORE to the path of a file, or to {FORM}"
        )
    return parsed.set(drivername="postgresql+psycopg")


def _open_engine(url: URL, owner: str) -> Engine:
    """Returns an engine whose connections tell others, as long as one of them is open, that an owner lives."""
    options: dict[str, Any] = {"autocommit": True, **_CONNECTING}
    for name in url.query:
        options.pop(name, None)
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        pool_pre_ping=True,
        pool_timeout=PATIENCE,
        connect_args=options,
    )

    def live(driver: "psycopg.Connection[Any]", _record: object) -> None:
        driver.execute(_LIVE, {"owner": owner})

    event.listen(engine, "connect", live)
    return engine
