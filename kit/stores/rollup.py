"""Sums of stored turns, so that metrics of all time do not read every turn: one row of `rollups`
for a thousand of them."""

from collections import defaultdict
from typing import Any

from sqlalchemy import Row, Table, exists, func, select

from kit.stores.engines.connection import StoreConnection
from kit.stores.rows import records_of
from kit.stores.statements import LAST_SUM, RECORDS, SUMMED_UP, Query, insert_new
from kit.stores.tables import ROLLUPS, TURNS
from kit.stores.tally import Tally, tally_of

CHUNK = 1000
"""Turns in a row of `rollups`. Whoever changes or deletes one of them takes that row away, by a trigger."""
_turn = TURNS.c

# Numbers may have gaps, but there are never more turns than numbers: most looks end with those.
ROLLUP_IS_DUE = select(
    (select(func.max(_turn.number)).scalar_subquery() - SUMMED_UP >= CHUNK)
    & exists(select(_turn.number).where(_turn.number > SUMMED_UP).offset(CHUNK - 1))
)
"""Whether there may be turns for another row."""

# A turn that runs, and what came after it, is added up once it has ended.
_FIRST_RUNNING = (
    select(func.coalesce(func.min(_turn.number), 1 << 60))
    .where(_turn.status == "running", _turn.number > SUMMED_UP)
    .correlate(None)
    .scalar_subquery()
)
_NEXT = (
    RECORDS.add_columns(_turn.number)
    .where(_turn.number > SUMMED_UP, _turn.number < _FIRST_RUNNING)
    .order_by(_turn.number)
    .limit(CHUNK)
)


def sum_up(db: StoreConnection) -> bool:
    """Writes the next row of `rollups`; returns False while fewer turns than that have ended since the last."""
    rows: list[Row[Any]] = db.execute(_NEXT).all()
    if len(rows) < CHUNK:
        return False
    tenants: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        tenants[row.tenant_id].append(row)
    through = rows[-1].number
    first = min(row.started_at for row in rows)
    values: list[dict[str, Any]] = []
    for tenant, turns in tenants.items():
        tally = tally_of(records_of(row[:-1] for row in turns))
        values.append(
            {"through": through, "tenant_id": tenant, "first": first, "tally": tally.dump()}
        )
    db.execute_many(insert_new(ROLLUPS), values)
    return True


def tally(db: StoreConnection, tenant_id: str | None, since: float | None) -> Tally:
    """Adds up the turns of one tenant or all, begun at `since` or later, from the sums there are
    and the turns beside them."""

    def of_tenant(query: Query, table: Table) -> Query:
        return query if tenant_id is None else query.where(table.c.tenant_id == tenant_id)

    mark = db.execute(LAST_SUM).scalar_one()
    cut = 0
    sums = of_tenant(select(ROLLUPS.c.tally), ROLLUPS)
    turns = of_tenant(RECORDS, TURNS)
    if since is not None:
        # A sum whose first turn began before the window lies over its edge, or outside: it is not
        # used, and neither are those before it.
        cut = db.execute(LAST_SUM.where(ROLLUPS.c.first < since)).scalar_one()
        turns = turns.where(_turn.started_at >= since)
    tally = tally_of(records_of(db.execute(turns.where(_turn.number > mark))))
    if cut:
        # `+ 0` has SQLite find these turns by their time, as there may be many before the window.
        before_sums = db.execute(turns.where(_turn.number + 0 <= cut))
        tally.merge(tally_of(records_of(before_sums)))
    for (text,) in db.execute(sums.where(ROLLUPS.c.through > cut)):
        tally.merge(Tally.load(text))
    return tally
