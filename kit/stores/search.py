"""Lists of one principal's turns and conversations, as SQL over all of them, however many there are."""

import math

import orjson
from sqlalchemy import ColumnElement, bindparam, func, not_, or_, select

from kit.core.context import Principal
from kit.stores.engines.connection import StoreConnection
from kit.stores.engines.functions import casefold, instr
from kit.stores.rows import records_of
from kit.stores.statements import RECORDS, of_reader
from kit.stores.tables import TURNS
from kit.stores.turn_filter import (
    AGAIN,
    Conversation,
    TurnChoices,
    TurnFilter,
    TurnPage,
)

_turn = TURNS.c
Condition = ColumnElement[bool]


def search(
    db: StoreConnection, principal: Principal, by: TurnFilter, limit: int, offset: int
) -> TurnPage:
    """Returns `limit` of a principal's turns that pass a filter, past the first `offset`, newest first."""
    conditions = _conditions(principal, by)
    counting = select(func.count(), func.max(_turn.seconds)).where(*conditions)
    count, longest = db.execute(counting).one()
    page = (
        RECORDS.where(*conditions)
        .order_by(_turn.started_at.desc(), _turn.number.desc())
        .limit(limit)
        .offset(offset)
    )
    return TurnPage(tuple(records_of(db.execute(page))), count, longest or 0.0)


def choices(db: StoreConnection, principal: Principal) -> TurnChoices:
    """Returns what a principal's turns can be chosen by."""
    is_theirs = of_reader(principal)
    groups = (
        select(_turn.pattern, _turn.model, func.count())
        .where(is_theirs)
        .group_by(_turn.pattern, _turn.model)
    )
    total = 0
    patterns: set[str] = set()
    models: set[str] = set()
    for pattern, model, count in db.execute(groups):
        total += count
        patterns.add(pattern)
        models.add(model)
    query = select(_turn.seconds).where(is_theirs, _turn.seconds.is_not(None))
    seconds = db.execute(query.order_by(_turn.seconds)).scalars().all()
    slow = 0.0
    if seconds:
        rank = math.ceil(len(seconds) * 95 / 100)
        slow = seconds[rank - 1]
    return TurnChoices(total, tuple(sorted(patterns - {""})), tuple(sorted(models - {""})), slow)


def conversations(
    db: StoreConnection, principal: Principal, limit: int, offset: int
) -> tuple[list[Conversation], int]:
    """Returns `limit` of a principal's conversations, past the first `offset`, the one with the
    newest turn first; and how many there are."""
    session_id = _turn.session_id
    # A turn that was asked again, or by a job, is no conversation.
    conditions = (
        of_reader(principal),
        not_(session_id.startswith(AGAIN)),
        not_(session_id.startswith("job:")),
    )
    counting = select(func.count(session_id.distinct())).where(*conditions)
    count = db.execute(counting).scalar_one()
    newest = func.max(_turn.started_at)
    page = (
        select(session_id, func.count(), newest)
        .where(*conditions)
        .group_by(session_id)
        .order_by(newest.desc())
        .limit(limit)
        .offset(offset)
    )
    first = (
        select(_turn.message)
        .where(session_id == bindparam("session"), of_reader(principal, in_session=True))
        .order_by(_turn.started_at)
        .limit(1)
    )
    listing: list[Conversation] = []
    for name, turns, newest_at in db.execute(page).all():
        question = db.execute(first, {"session": name}).scalar_one()
        listing.append(Conversation(name, question, turns, newest_at))
    return listing, count


def _conditions(principal: Principal, by: TurnFilter) -> list[Condition]:
    """Returns the conditions of a filter."""
    conditions: list[Condition] = [of_reader(principal, in_session=bool(by.session))]
    if by.session:
        conditions.append(_turn.session_id == by.session)
    for word in by.text.split():
        conditions.append(instr(casefold(_turn.message), casefold(word)) > 0)
    if by.patterns:
        conditions.append(_turn.pattern.in_(by.patterns))
    if by.models:
        conditions.append(_turn.model.in_(by.models))
    if by.agents:
        # A JSON list of names holds each of them between quotes.
        conditions.append(
            or_(*(instr(_turn.invoked, orjson.dumps(agent).decode()) > 0 for agent in by.agents))
        )
    if by.at_least:
        conditions.append(_turn.seconds >= by.at_least)
    if by.endings:
        conditions.append(_turn.ending.in_(by.endings))
    if by.axes:
        conditions.append(or_(*(_turn.axes.contains(axis) for axis in by.axes)))
    return conditions
