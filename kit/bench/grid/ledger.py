"""The ledger of a grid: finished cells by key in one SQLite file, so that a run goes on where the
last one was killed."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kit.core.errors import DataError
from kit.core.outcome import ErrorClass

_TABLES = """
CREATE TABLE IF NOT EXISTS cells (
  key TEXT PRIMARY KEY, run INTEGER NOT NULL, lines TEXT NOT NULL, timing TEXT NOT NULL, cost REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (key TEXT PRIMARY KEY, run INTEGER NOT NULL, line TEXT NOT NULL,
  cost REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS turns (key TEXT PRIMARY KEY, played TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, provenance TEXT NOT NULL);
"""

_KEEP_FAILURE = """INSERT INTO failures VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
  SET run = excluded.run, line = excluded.line, cost = coalesce(cost, 0) + coalesce(excluded.cost, 0)"""


AT_ONCE = 500
"""Cells whose lines are in memory together."""


class FinishedCell(NamedTuple):
    """How a cell ended: scored, or failed with a class."""

    key: str
    lines: str
    """Its part of results.jsonl, a line for each scored turn; of a failed cell its line of failures.jsonl."""
    timing: str
    """Its part of timings.jsonl: one line."""
    cost: float | None
    """Dollars; None where no price is known."""
    error_class: ErrorClass | None = None
    """What lost it: such a cell is no sample, and is played again by the next run (decisions 35)."""
    blamed: str = ""
    """Who lost it, in words; empty where its own model did."""
    turn: str = ""
    """The name of its turns, whoever scores them (`Cell.turn`); empty where they are not kept."""
    played: str = ""
    """Its turns as PlayedCell writes them, where they were played just now and may be scored again."""
    scored_again: bool = False
    """Its turns were there already: no model was called for them."""
    unanswered: str = ""
    """Of a whole system that failed by itself: the line of a failed cell, which it is until the
    system has answered once. One that never does has something missing, such as a key."""


class Ledger:
    """Written by one process at a time; whoever comes second is refused. What was committed survives a killed process.

    Raises DataError, one sentence that says what to do, when the file cannot be opened, read or written.
    """

    def __init__(self, path: Path):
        self.path = path
        self.count = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._sentence(error) from error
        try:
            # A second run would play the same cells, and pay for them, at the same time.
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing that was committed; only a power cut may.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_TABLES)
            (self.count,) = self._db.execute("SELECT count(*) FROM cells").fetchone()
            (last,) = self._db.execute("SELECT coalesce(max(run), 0) FROM runs").fetchone()
        except sqlite3.Error as error:
            self._db.close()
            raise self._sentence(error) from error
        except KeyboardInterrupt:
            # It holds the lock, and this process still wants to say what is kept.
            self._db.close()
            raise
        self.run = int(last) + 1
        """Number of the run that this ledger was opened for."""

    def begin(self, provenance: str) -> None:
        """Notes what this run is made of."""
        self._write("INSERT INTO runs VALUES (?, ?)", [(self.run, provenance)])

    def keys(self) -> set[str]:
        """Keys of the scored cells."""
        return {key for (key,) in self._read("SELECT key FROM cells")}

    def forget(self) -> None:
        """Takes out every cell and its turns: they are played again."""
        for table in ("cells", "failures", "turns"):
            self._write(f"DELETE FROM {table}", [()])

    def keep(self, cells: Collection[FinishedCell]) -> None:
        """Commits cells together; one that is scored already stays as it is, and what was paid for
        a failed one stays paid."""
        scored_rows: list[tuple[Any, ...]] = []
        failed_rows: list[tuple[Any, ...]] = []
        played_turns: list[tuple[Any, ...]] = []
        for cell in cells:
            if cell.error_class is None:
                scored_rows.append((cell.key, self.run, cell.lines, cell.timing, cell.cost))
            else:
                failed_rows.append((cell.key, self.run, cell.lines, cell.cost))
            if cell.turn and cell.played:
                played_turns.append((cell.turn, cell.played))
        if scored_rows:
            self.count += self._write(
                "INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?, ?)", scored_rows
            )
        if failed_rows:
            self._write(_KEEP_FAILURE, failed_rows)
        if played_turns:
            self._write("INSERT OR REPLACE INTO turns VALUES (?, ?)", played_turns)

    def turns(self) -> Mapping[str, str]:
        """Name of a cell's turns -> the turns, as they were played."""
        return dict(self._read("SELECT key, played FROM turns"))

    def lines(self, column: str, keys: Sequence[str]) -> Iterator[str]:
        """What stands in `lines` or `timing` of these cells, in their order, a few at a time; those
        not scored are left out."""
        for start in range(0, len(keys), AT_ONCE):
            # SQLite takes a limited number of values in one statement.
            part = keys[start : start + AT_ONCE]
            sql = f"SELECT key, {column} FROM cells WHERE key IN ({','.join('?' * len(part))})"
            texts: dict[str, str] = dict(self._read(sql, part))
            for key in part:
                if key in texts:
                    yield texts[key]

    def failures(self, keys: Iterable[str]) -> list[str]:
        """The lines of those of these cells that failed and are not scored yet, in their order."""
        rows = self._read("SELECT key, line FROM failures WHERE key NOT IN (SELECT key FROM cells)")
        lines: dict[str, str] = dict(rows)
        return [lines[key] for key in keys if key in lines]

    def cost(self, keys: Iterable[str]) -> float:
        """Dollars spent on these cells, failed attempts too, as far as prices are known."""
        selection = set(keys)
        rows = self._read(
            "SELECT key, cost FROM cells WHERE cost > 0 UNION ALL SELECT key, cost FROM failures WHERE cost > 0"
        )
        dollars = 0.0
        for key, cost in rows:
            if key in selection:
                dollars += cost
        return dollars

    def provenance(self) -> Mapping[int, str]:
        """Run -> what it was made of."""
        return dict(self._read("SELECT run, provenance FROM runs"))

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        self._db.close()

    def _write(self, sql: str, rows: list[tuple[Any, ...]]) -> int:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                added = self._db.executemany(sql, rows).rowcount
                self._db.execute("COMMIT")
                return added
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._sentence(error) from error

    def _read(self, sql: str, values: Sequence[str] = ()) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._sentence(error) from error

    def _sentence(self, error: Exception) -> DataError:
        problem = f"the ledger {self.path} cannot be used ({error}): "
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return DataError(
                f"{problem}make room on its disk and run the grid again; {self.count:,} finished cells are kept"
            )
        if code == sqlite3.SQLITE_BUSY:
            return DataError(
                f"{problem}another run writes to it; wait for that one, or choose another folder"
            )
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return DataError(f"{problem}it is no ledger; move it away, or choose another folder")
        return DataError(f"{problem}choose a folder this user may write to")
