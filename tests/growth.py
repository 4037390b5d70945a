"""`python -m tests.growth [TURNS]`: what lists, one trace and metrics cost once a store holds so many turns."""

import asyncio
import gc
import resource
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kit.bench.grid.provenance import revision
from kit.core.context import OPERATOR, Principal
from kit.core.trace import trace_of
from kit.metrics.summary import metrics
from kit.patterns import PATTERNS
from kit.runtime.clock import run_virtual
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.stores.turn_filter import TurnFilter
from kit.ui.shared.turn_fold import stored_view
from kit.wire import open_kit

WHO = Principal(tenant_id="acme", user_id="u-001")
"""The visitor, who has half of the turns."""
TICK = 0.002
"""Seconds between two looks of the loop."""
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
    async with open_kit(
        Settings(store=str(path), pace=0, model="offline", today="2026-11-01"), faults=True
    ) as kit:
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
        "number": "NULL",
        "id": "printf('%032x', n)",
        "session_id": "'s' || (n / 20 * 2 + n % 2)",
        "user_id": "iif(n % 2, user_id, 'u-' || (n / 20 % 500))",
        "started_at": f"{time.time()} - {DAYS * 86_400.0} * (1.0 - 1.0 * n / {turns})",
    }
    numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {turns - 1})"
    db.execute(
        f"INSERT INTO turns {numbers} SELECT {', '.join(values.values())} FROM numbers JOIN "
        f"played ON place = n % {count}"
    )
    db.execute(
        f"INSERT INTO logs {numbers} SELECT turns.number, log, size FROM numbers JOIN turns ON turns.id = printf('%032x', n) "
        f"JOIN played ON place = n % {count} JOIN logs ON logs.number = played.number"
    )
    db.execute(
        f"INSERT INTO messages {numbers} SELECT printf('%032x', n), position, m.tenant_id, 's' || (n / 20 * 2 "
        f"+ n % 2), agent, role, m.text "
        f"FROM numbers JOIN played ON place = n % {count} JOIN messages m ON m.turn_id = played.id"
    )
    db.execute("DROP TABLE played")


class Figure(NamedTuple):
    """What one reading of a full store took."""

    name: str
    cpu: float
    """Seconds of this process."""
    gap: float
    """The longest stretch in which an event loop beside it stood still, in seconds of this process' work."""


def measure(path: Path) -> Iterator[Figure]:
    """Reads lists, one trace and metrics as the pages do, each from a thread of its own beside a running event loop.

    What is loaded is out of garbage collection, as it is in the app (kit/ui/shared/frame.py).
    """
    gc.collect()
    gc.freeze()
    store = SqliteStore(path)
    turn = store.turns(tenant_id=WHO.tenant_id, user_id=WHO.user_id, limit=1)[0]
    day = turn.started_at - 86_400

    def one_trace() -> object:
        return stored_view(turn, tuple(store.events(turn.id, OPERATOR))).trace.rows()

    def spans() -> object:
        return [trace_of(store.events(turn.id, OPERATOR)).spans for turn in store.turns(limit=20)]

    readings: dict[str, Callable[[], object]] = {
        "sums of all turns, which a thread writes as they end": store.sum_up,
        "the newest turns": lambda: (store.choices(WHO), store.search(WHO, TurnFilter(), 15)),
        "turns by words": lambda: store.search(WHO, TurnFilter(text="coffee points"), 15),
        "turns by how they ended": lambda: store.search(
            WHO, TurnFilter(endings=("partly",), axes=("partial",)), 15
        ),
        "turns by pattern and model": lambda: store.search(
            WHO, TurnFilter(patterns=("a2a",), models=("offline",)), 15
        ),
        "conversations": lambda: store.conversations(WHO, 15),
        "one trace": one_trace,
        "metrics of a day": lambda: metrics(store, day, WHO.tenant_id),
        "metrics of all time": lambda: metrics(store, None, WHO.tenant_id),
        "spans of twenty turns": spans,
    }
    for name, read in readings.items():
        yield asyncio.run(_beside_a_loop(name, read))
    store.close()
    gc.unfreeze()


async def _beside_a_loop(name: str, read: Callable[[], object]) -> Figure:
    longest, work = 0.0, asyncio.create_task(asyncio.to_thread(_cpu_of, read))
    while not work.done():
        wall, cpu = time.monotonic(), time.process_time()
        await asyncio.sleep(TICK)
        longest = max(longest, min(time.monotonic() - wall, time.process_time() - cpu) - TICK)
    return Figure(name, await work, longest)


def _cpu_of(read: Callable[[], object]) -> float:
    began = time.thread_time()
    read()
    return time.thread_time() - began


def lines(turns: int) -> Iterator[str]:
    """A line for each reading, and one for what the process took of memory."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kit.db"
        # In a process of its own: else what plays turns, the stand-in and the A2A SDK above all, would
        # be counted as what reading takes.
        filling = get_context("spawn").Process(target=fill, args=(path, turns))
        filling.start()
        filling.join()
        yield f"{turns:,} turns, {path.stat().st_size / 1e6:,.0f} MB, at {revision()}"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for figure in measure(path):
            yield f"{figure.name}: {figure.cpu:.3f} s CPU, the loop stood still for {figure.gap * 1000:.0f} ms"
        whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        yield f"{whole / 1024:,.0f} MB at most, {(whole - before) / 1024:,.0f} MB more than before reading it"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if sys.argv[1:] else FULL):
        print(line, flush=True)
