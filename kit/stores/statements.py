"""The statements that write and read turns, sessions, narration and notes (kit/stores/tables.py).

Those that a turn executes are compiled once, to text that every database understands: it runs on the driver, as
StoreConnection says.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import TypeEngine

from kit.core.context import Operator, Reader
from kit.core.record import CohortPrompt, TurnRecord
from kit.stores.tables import (
    FEEDBACK,
    FLOAT,
    LOGS,
    MESSAGES,
    NOTES,
    PROMPTS,
    ROLLUPS,
    SESSIONS,
    TURNS,
    WHOLE,
)

_KNOWN_AT_BEGIN = frozenset(
    {"id", "session_id", "tenant_id", "user_id", "message", "pattern", "model", "started_at", "cap"}
    | {"owner"}
)
"""These never change, so the end of a turn does not write them again."""
_turn = TURNS.c
_prompt = PROMPTS.c
Query = Select[*tuple[Any, ...]]
TEXT = Text()
_DIALECT = sqlite.dialect(paramstyle="named")


def compiled(statement: ClauseElement, names: Iterable[str] | None = None) -> str:
    """Returns a statement as text whose values are named; an INSERT is of the columns `names`.

    SQLite's words for ON CONFLICT and RETURNING are PostgreSQL's: the text is for both.
    """
    return str(statement.compile(dialect=_DIALECT, column_keys=names))


def insert_new(table: Table, names: Iterable[str] | None = None) -> str:
    """Returns the text that writes a row, and leaves one that is there already alone."""
    return compiled(upsert(table).on_conflict_do_nothing(), names or table.c.keys())


def insert_or_replace(table: Table) -> str:
    """Returns the text that writes a row of all columns; one with the same key gets its values."""
    statement = upsert(table)
    keys = table.primary_key.columns.keys()
    changed = {
        column.name: statement.excluded[column.name] for column in table.c if not column.primary_key
    }
    replacing = statement.on_conflict_do_update(index_elements=keys, set_=changed)
    return compiled(replacing, table.c.keys())


def _value(name: str, kind: TypeEngine[Any] = TEXT) -> BindParameter[Any]:
    """Returns a value that a statement is executed with."""
    return bindparam(name, type_=kind)


def of_reader(reader: Reader, in_session: bool = False) -> ColumnElement[bool]:
    """Returns the condition that holds a query of turns to what its reader may see.

    `in_session` is for a query of one session: it has few turns, and its user may have many, so
    that no index of users shall be walked.
    """
    if isinstance(reader, Operator):
        return true()
    user = _turn.user_id
    if in_session:
        user = _past_index(user)
    return (_turn.tenant_id == reader.tenant_id) & (user == reader.user_id)


def _past_index(column: ColumnElement[str]) -> ColumnElement[str]:
    return column.concat("")


# Sessions

INSERT_SESSION = insert_new(SESSIONS)


SESSION = select(SESSIONS).where(
    SESSIONS.c.tenant_id == _value("tenant_id"), SESSIONS.c.id == _value("session_id")
)

# Turns and their logs

RECORDS = select(*(_turn[name] for name in TurnRecord.model_fields))
"""The query of rows that TurnRecords are read from; the other columns are for the store alone."""
_WRITTEN = (*TurnRecord.model_fields, "ending", "axes", "owner")
_IS_TURN = _turn.id == _value("turn")
_IS_RUNNING = _turn.status == "running"

# It writes nothing where the turn begins again.
BEGIN_TURN = insert_new(TURNS, _WRITTEN)


def _replace_turn(columns: Iterable[str], *, begins: bool) -> str:
    """Returns the statement that writes a turn's row, new or not; it returns no number for the row
    of another conversation, or of another process, which stays as it is. A turn that has ended may
    begin again in any process."""
    statement = upsert(TURNS)
    excluded = statement.excluded
    is_same_conversation = (
        (_turn.tenant_id == excluded.tenant_id)
        & (_turn.user_id == excluded.user_id)
        & (_turn.session_id == excluded.session_id)
    )
    is_free = _turn.owner == excluded.owner
    if begins:
        # Written out: the values of this statement are the columns of the row.
        is_free |= _turn.status != literal_column("'running'")
    replacing = statement.on_conflict_do_update(
        index_elements=["id"],
        set_={name: excluded[name] for name in columns},
        where=is_same_conversation & is_free,
    )
    return compiled(replacing.returning(_turn.number), _WRITTEN)


BEGIN_TURN_AGAIN = _replace_turn(_WRITTEN, begins=True)
END_TURN = _replace_turn((name for name in _WRITTEN if name not in _KNOWN_AT_BEGIN), begins=False)

KEEP_LOG = insert_or_replace(LOGS)

# What was kept of a turn goes when it begins again. It stays when its own process writes the row of
# the running turn a second time.
_IS_OWN = _IS_RUNNING & (_turn.owner == _value("by"))
DROP_LOG = delete(LOGS).where(LOGS.c.number.in_(select(_turn.number).where(_IS_TURN, ~_IS_OWN)))

_IS_THEIRS = (_turn.tenant_id == _value("tenant")) & (_turn.user_id == _value("user"))
_READERS = _IS_THEIRS | _value("tenant").is_(None)
"""The same as `of_reader`, for a statement that is made once; for an operator both values are None."""

TURN = RECORDS.where(_IS_TURN, _READERS)

TURN_LOG = (
    select(LOGS.c.log, LOGS.c.size)
    .join(TURNS, _turn.number == LOGS.c.number)
    .where(_IS_TURN, _READERS)
)


@cache
def newest_turns(*names: str) -> Query:
    """Returns the query of the newest turns, newest first, whose columns of these names have the
    values that it is executed with."""
    # A statement that is made anew for each call costs 0.3 ms, and a tab asks every few seconds.
    query = RECORDS.order_by(_turn.started_at.desc(), _turn.number.desc())
    for name in names:
        column = _turn[name]
        if "session_id" in names and name == "user_id":
            column = _past_index(column)
        query = query.where(column == _value(name))
    return query.limit(_value("limit", WHOLE))


# By the order in which they were accepted: a clock may be set back.
TURNS_BEFORE = RECORDS.where(
    _turn.session_id == _value("session_id"),
    _turn.tenant_id == _value("tenant_id"),
    _turn.user_id == _value("user_id"),
    _turn.number < select(TURNS.c.number).where(TURNS.c.id == _value("turn")).scalar_subquery(),
).order_by(_turn.number)

CLAIM_TURN = (
    update(TURNS)
    .where(_IS_TURN, _turn.status.in_(["paused", "interrupted"]))
    .values(status="running", ending="running", owner=_value("by"))
)

# Turns that were running when their process died. Turns that are summed up have ended, so only
# those after the last sum are looked at.

LAST_SUM = select(func.coalesce(func.max(ROLLUPS.c.through), 0))
SUMMED_UP = LAST_SUM.scalar_subquery()
_MAY_RUN = _IS_RUNNING & (_turn.number > SUMMED_UP)

OWNERS_OF_RUNNING = select(_turn.owner).distinct().where(_MAY_RUN)


INTERRUPT_TURNS = (
    update(TURNS)
    .where(_MAY_RUN, _turn.owner == _value("by"))
    .values(status="interrupted", ending="interrupted")
)

# Narration, notes, prompts and feedback

# A message that is written again takes a new row number: by it narration is in order.
DROP_MESSAGES = compiled(
    delete(MESSAGES).where(
        MESSAGES.c.turn_id == bindparam("turn"), MESSAGES.c.position < bindparam("count")
    )
)
INSERT_MESSAGE = compiled(insert(MESSAGES), MESSAGES.c.keys())

INSERT_NOTE = insert_or_replace(NOTES)


NOTE = select(NOTES.c.value, NOTES.c.at).where(
    NOTES.c.tenant_id == _value("tenant_id"),
    NOTES.c.session_id == _value("session_id"),
    NOTES.c.name == _value("name"),
)

PROMPT = (
    select(*(_prompt[name] for name in CohortPrompt.model_fields))
    .where(_prompt.cohort == _value("cohort"), _prompt.since <= _value("at", FLOAT))
    .order_by(_prompt.since.desc())
    .limit(1)
)

FEEDBACK_OF_TURN = select(FEEDBACK).where(FEEDBACK.c.turn_id == _value("turn"))

FEEDBACKS = (
    select(FEEDBACK)
    .join(TURNS, _turn.id == FEEDBACK.c.turn_id)
    .where(FEEDBACK.c.score == _value("score", WHOLE))
    .order_by(_turn.started_at, FEEDBACK.c.turn_id)
)
