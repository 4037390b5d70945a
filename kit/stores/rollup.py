"""Sums of stored turns, so that metrics of all time do not read every turn: one row of `rollups`
for a thousand of them."""

import sqlite3
from collections import defaultdict
from functools import partial
from typing import Any

import orjson

from kit.stores.rows import RUNNING, readable
from kit.stores.tally import Tally, TurnRow

CHUNK = 1000
"""Turns in a row of `rollups`. Whoever changes or deletes one of them takes that row away, by a trigger."""
_ROWS = f"SELECT number, {', '.join(TurnRow._fields)} FROM turns WHERE "
_NEXT = f"""{_ROWS} number > (SELECT coalesce(max(through), 0) FROM rollups) AND number <
(SELECT coalesce(min(number), 1 << 60) FROM turns WHERE {RUNNING}) ORDER BY number LIMIT {CHUNK}"""
READY = f"SELECT (SELECT max(number) FROM turns) - (SELECT coalesce(max(through), 0) FROM rollups) >= {CHUNK}"
"""Whether there may be turns for another row."""


def sum_up(db: sqlite3.Connection) -> bool:
    """Writes the next row of `rollups`; False while fewer turns than that have ended since the last."""
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
    (cut,) = db.execute(
        "SELECT coalesce(max(through), 0) FROM rollups WHERE first < ?", (since,)
    ).fetchone()
    window = {"tenant": tenant_id, "since": since, "mark": mark, "cut": cut}
    if tenant_id is None:
        tenant = ""
    else:
        tenant = " AND tenant_id = :tenant"
    whole = Tally()
    for (text,) in db.execute(f"SELECT tally FROM rollups WHERE through > :cut{tenant}", window):
        whole.merge(Tally.load(text))
    if since is None:
        begun = ""
    else:
        begun = " AND started_at >= :since"
    parts = [f"number > :mark{tenant}{begun}"]
    if cut:  # sums over the edge of the window: their turns one by one
        parts.append(f"+number <= :cut{tenant}{begun}")
    for part in parts:
        for row in db.execute(_ROWS + part, window):
            readable(partial(_add, whole), row, row[1])
    return whole


def _add(tally: Tally, row: tuple[Any, ...]) -> None:
    _, *fields, measures = row
    tally.add(TurnRow._make((*fields, orjson.loads(measures))))
