"""Tells which process owns a running turn, by a lock on a side file that the system drops when that process ends."""

import sqlite3
from pathlib import Path

from kit.stores.engines.database import new_owner


class Owner:
    """This process, as other openers of the same store see it.

    Unlike a process id, such a lock is never reused and holds between containers that share the folder.
    """

    def __init__(self, store: str):
        self.id = new_owner()
        self._store = store
        self._life: sqlite3.Connection | None = None

    def live(self) -> None:
        """Takes the lock that says this process lives; a store in memory takes none."""
        if self._store != ":memory:":
            self._life = _hold(self._path(self.id))

    def end(self) -> None:
        """Gives the lock back and removes its file; a second call does nothing."""
        if self._life is not None:
            self._life.close()
            self._path(self.id).unlink(missing_ok=True)
            self._life = None

    def others(self) -> set[str]:
        """Owners that left a file beside the store, alive or not."""
        mark = f"{Path(self._store).name}-owner-"
        files = (file.name for file in Path(self._store).parent.iterdir())
        return {name.removeprefix(mark) for name in files if name.startswith(mark)} - {self.id}

    def dead(self, owner: str) -> bool:
        """Whether nobody holds this owner's lock; its file is then removed."""
        if owner == self.id:
            return False
        path = self._path(owner)
        if path.exists():
            try:
                _hold(path).close()
            except sqlite3.OperationalError:
                return False
            path.unlink(missing_ok=True)
        return True

    def _path(self, owner: str) -> Path:
        return Path(f"{self._store}-owner-{owner}")


def _hold(path: Path) -> sqlite3.Connection:
    """Locks an empty database file; raises sqlite3.OperationalError when a live process holds it."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # else a journal file would stand beside it
        connection.execute("BEGIN EXCLUSIVE")
    except BaseException:
        connection.close()
        raise
    return connection
