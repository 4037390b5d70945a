"""The ledger of a grid: finished cells by key in one SQLite file, so that a run goes on where the last one was killed."""

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kit.core.errors import DataError

_TABLES = """
CREATE TABLE IF NOT EXISTS cells (
  key TEXT PRIMARY KEY, run INTEGER NOT NULL, lines TEXT NOT NULL, timing TEXT NOT NULL, cost REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, provenance TEXT NOT NULL);
"""


class FinishedCell(NamedTuple):
    """A finished cell."""

    key: str
    lines: str
    """Its part of results.jsonl: a line for each scored turn."""
    timing: str
    """Its part of timings.jsonl: one line."""
    cost: float | None
    """Dollars; None where no price is known."""


class Ledger:
    """Written by one process at a time; whoever comes second is refused. What was committed survives a killed process.

    Raises DataError, one sentence that says what to do, when the file cannot be opened, read or written.
    """

    def __init__(self, path: Path):
        self.path, self.count = path, 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._sentence(error) from error
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_TABLES)
            (self.count,) = self._db.execute("SELECT count(*) FROM cells").fetchone()
            (last,) = self._db.execute("SELECT coalesce(max(run), 0) FROM runs").fetchone()
        except sqlite3.Error as error:
            self._db.close()
            raise self._sentence(error) from error
        self.run = int(last) + 1
        """Number of the run that this ledger was opened for."""

    def begin(self, provenance: str) -> None:
        """Notes what this run is made of."""
        self._write("INSERT INTO runs VALUES (?, ?)", [(self.run, provenance)])

    def keys(self) -> set[str]:
        """Keys of the finished cells."""
        return {key for (key,) in self._read("SELECT key FROM cells")}

    def forget(self) -> None:
        """Takes out every finished cell: they are played again."""
        self._write("DELETE FROM cells WHERE true = ?", [(1,)])

    def keep(self, cells: Iterable[FinishedCell]) -> None:
        """Commits finished cells together; one that is there already stays as it is."""
        rows = [(cell.key, self.run, cell.lines, cell.timing, cell.cost) for cell in cells]
        self.count += self._write("INSERT OR IGNORE INTO cells VALUES (?, ?, ?, ?, ?)", rows)

    def lines(self, column: str) -> Mapping[str, tuple[str, int]]:
        """Key -> what stands in `lines` or `timing`, and the run it is of."""
        return {key: (text, run) for key, text, run in self._read(f"SELECT key, {column}, run FROM cells")}

    def cost(self, keys: Iterable[str]) -> float:
        """Dollars spent on these cells, as far as prices are known."""
        selection = set(keys)
        return sum(cost for key, cost in self._read("SELECT key, cost FROM cells WHERE cost > 0") if key in selection)

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

    def _read(self, sql: str) -> list[Any]:
        try:
            return self._db.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise self._sentence(error) from error

    def _sentence(self, error: Exception) -> DataError:
        problem = f"the ledger {self.path} cannot be used ({error}): "
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return DataError(f"{problem}make room on its disk and run the grid again; {self.count:,} finished cells are kept")
        if code == sqlite3.SQLITE_BUSY:
            return DataError(f"{problem}another run writes to it; wait for that one, or choose another folder")
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return DataError(f"{problem}it is no ledger; move it away, or choose another folder")
        return DataError(f"{problem}choose a folder this user may write to")
