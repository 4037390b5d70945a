"""Sums of stored turns, so that metrics of all time do not read every turn: one row of `rollups`
for a thousand of them."""

import sqlite3
from collections import defaultdict
from functools import partial
from typing import Any

import orjson

from kit.stores.rows import readable
from kit.stores.tally import Tally, TurnRow

CHUNK = 1000
"""Turns in a row of `rollups`. Whoever changes or deletes one of them takes that row away, by a trigger."""
_SELECT = f"SELECT number, {', '.join(TurnRow._fields)} FROM turns"
# A turn that runs, and what came after it, is added up once it has ended.
_NEXT = f"""
{_SELECT}
WHERE number > (SELECT coalesce(max(through), 0) FROM rollups)
  AND number < (
    SELECT coalesce(min(number), 1 << 60) FROM turns
    WHERE status = 'running' AND number > (SELECT coalesce(max(through), 0) FROM rollups))
ORDER BY number LIMIT {CHUNK}
"""
# A sum whose first turn began before the window lies over its edge, or outside: it is not used, and
# neither are those before it.
_LAST_CUT = "SELECT coalesce(max(through), 0) FROM rollups WHERE first < ?"
_SUMS = """
SELECT tally FROM rollups
WHERE through > :cut AND (:tenant IS NULL OR tenant_id = :tenant)
"""
_AFTER_SUMS = f"""
{_SELECT}
WHERE number > :mark
  AND (:tenant IS NULL OR tenant_id = :tenant)
  AND (:since IS NULL OR started_at >= :since)
"""
# The turns of the window that are part of such sums, by the index of times.
_IN_CUT_SUMS = f"""
{_SELECT}
WHERE +number <= :cut AND (:tenant IS NULL OR tenant_id = :tenant) AND started_at >= :since
"""
READY = f"""
SELECT (SELECT max(number) FROM turns) - (SELECT coalesce(max(through), 0) FROM rollups) >= {CHUNK}
"""
"""Whether there may be turns for another row."""


def sum_up(db: sqlite3.Connection) -> bool:
    """Writes the next row of `rollups`; returns False while fewer turns than that have ended since the last."""
    rows = db.execute(_NEXT).fetchall()
    if len(rows) < CHUNK:
        return False
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for row in rows:
        readable(partial(_add, tallies[row[2]]), row, row[1])
    first = min(row[5] for row in rows)
    values: list[tuple[Any, str, Any, str]] = []
    for tenant, tally in tallies.items():
        values.append((rows[-1][0], tenant, first, tally.dump()))
    db.executemany("INSERT OR IGNORE INTO rollups VALUES (?, ?, ?, ?)", values)
    return True


def tally(db: sqlite3.Connection, tenant_id: str | None, since: float | None) -> Tally:
    """Adds up the turns of one tenant or all, begun at `since` or later, from the sums there are
    and the turns beside them."""
    (mark,) = db.execute("SELECT coalesce(max(through), 0) FROM rollups").fetchone()
    (cut,) = db.execute(_LAST_CUT, (since,)).fetchone()
    values = {"tenant": tenant_id, "since": since, "mark": mark, "cut": cut}
    tally = Tally()
    for (text,) in db.execute(_SUMS, values):
        tally.merge(Tally.load(text))
    for row in db.execute(_AFTER_SUMS, values):
        readable(partial(_add, tally), row, row[1])
    if cut:
        for row in db.execute(_IN_CUT_SUMS, values):
            readable(partial(_add, tally), row, row[1])
    return tally


def _add(tally: Tally, row: tuple[Any, ...]) -> None:
    _, *fields, measures = row
    tally.add(TurnRow._make((*fields, orjson.loads(measures))))
