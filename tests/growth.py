"""`python -m tests.growth [TURNS]`: what lists, one trace and metrics cost once a store holds so many turns."""

import sqlite3
import time
import uuid
from pathlib import Path

from kit.patterns import PATTERNS
from kit.runtime.clock import run_virtual
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit

FULL = 100_000
"""Turns of the whole sweep; the test suite takes a sample."""
DAYS = 90
"""Over which the turns are spread."""
QUESTION = "my receipt didn't scan, how many points do I have, and find coffee deals"
FAULTS = ((), (), (), ("rewards=raise",), ("shop=hang",), ("rewards=foreign_principal",))


def fill(path: Path, turns: int) -> None:
    """Plays a turn of every pattern with and without faults, and copies these as often as it takes."""
    run_virtual(_play(path))
    db = sqlite3.connect(path)
    with db:
        _copy(db, turns)
    db.close()
    SqliteStore(path).close()


async def _play(path: Path) -> None:
    async with open_kit(Settings(store=str(path), pace=0, model="offline", today="2026-11-01"), faults=True) as kit:
        for pattern in PATTERNS:
            for faults in FAULTS:
                await kit.ask(QUESTION, kit.session(uuid.uuid4().hex), pattern, faults=faults)


def _copy(db: sqlite3.Connection, turns: int) -> None:
    """Half of the copies are the visitor's, ten stand in a session, all are spread evenly over the days."""
    db.execute("CREATE TEMP TABLE played AS SELECT row_number() OVER () - 1 AS place, * FROM turns")
    (count,) = db.execute("SELECT count(*) FROM played").fetchone()
    names = [row[1] for row in db.execute("PRAGMA table_info(turns)")]
    values = {
        **{name: name for name in names},
        "id": "printf('%032x', n)",
        "session_id": "'s' || (n / 20 * 2 + n % 2)",
        "user_id": "iif(n % 2, user_id, 'u-' || (n / 20 % 500))",
        "started_at": f"{time.time()} - {DAYS * 86_400.0} * (1.0 - 1.0 * n / {turns})",
    }
    numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {turns - 1})"
    db.execute(f"INSERT INTO turns {numbers} SELECT {', '.join(values.values())} FROM numbers JOIN played ON place = n % {count}")
    db.execute(
        f"INSERT INTO messages {numbers} SELECT printf('%032x', n), position, 's' || (n / 20 * 2 + n % 2), agent, role, m.text "
        f"FROM numbers JOIN played ON place = n % {count} JOIN messages m ON m.turn_id = played.id"
    )
    db.execute("DROP TABLE played")
