"""Transactions of the store: when one may begin, and whose rows it may write."""

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from kit.core.context import Session
from kit.core.errors import SessionError
from kit.stores.rows import session_of
from kit.stores.statements import (
    BEGIN_TURN,
    BEGIN_TURN_AGAIN,
    DROP_LOG,
    END_TURN,
    INSERT_SESSION,
    KEEP_LOG,
    SESSION,
)


def open_session(db: sqlite3.Connection, session: Session) -> None:
    """Writes the session if it is new. Raises SessionError when it is another principal's."""
    principal = session.principal
    row = (
        session.id,
        principal.tenant_id,
        principal.user_id,
        session.locale,
        session.location,
    )
    if db.execute(INSERT_SESSION, row).rowcount:
        return
    stored = session_of(db.execute(SESSION, (session.id,)).fetchone())
    if stored.principal != principal:
        raise SessionError(
            f"session {session.id!r} belongs to someone else; start a new one under another id"
        )


def begin_turn(db: sqlite3.Connection, row: Sequence[Any], session: Session | None) -> None:
    """Writes the row of a turn that begins, or begins again, which then has no log. Raises
    SessionError as `end_turn` does."""
    if session is not None:
        open_session(db, session)
    try:
        db.execute(BEGIN_TURN, row)
    except sqlite3.IntegrityError:
        db.execute(DROP_LOG, (row[0], row[-1]))
        _number(db, BEGIN_TURN_AGAIN, row)


def end_turn(db: sqlite3.Connection, row: Sequence[Any], log: str, session: Session | None) -> None:
    """Writes the row of a turn that ended, and its log. Raises SessionError for a turn of another conversation."""
    if session is not None:
        open_session(db, session)
    db.execute(KEEP_LOG, (_number(db, END_TURN, row), log))


def _number(db: sqlite3.Connection, sql: str, row: Sequence[Any]) -> int:
    """Writes a row, new or not, and returns its number."""
    for (number,) in db.execute(sql, row).fetchall():
        return number
    raise SessionError(
        f"turn {row[0]!r} belongs to another conversation; leave the id out, or take another one"
    )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else is writing to the file at this moment."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def wait_for(db: sqlite3.Connection, sql: str, seconds: float) -> None:
    """Executes what needs the file for itself, as soon as no other process writes it."""
    until = time.monotonic() + seconds
    while True:
        try:
            db.execute(sql)
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)
