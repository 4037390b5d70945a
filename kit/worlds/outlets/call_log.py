"""The calls that ran, in their order: what the acts among them did, and whether one with a known key has run before."""

import fcntl
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import SEEK_END, StringIO
from pathlib import Path
from typing import Any, TextIO

from kit.core.errors import DataError
from kit.core.value import Value


class LoggedCall(Value):
    """One call that ran."""

    tenant: str
    skill: str
    arguments: dict[str, Any]
    key: str | None = None
    """Its idempotency key, where the skill honours keys."""
    result: dict[str, Any] | None = None
    """What an act gave. A lookup gives the same again, so that nothing of it is kept."""


class CallLog:
    """One line of JSON for each call: in memory, or in a file, which outlives the process and which
    several may share."""

    def __init__(self, path: Path | None = None):
        self._path = path
        self._memory = StringIO()

    def calls(self) -> Sequence[LoggedCall]:
        """All calls so far."""
        with self._open() as file:
            return _read(file)

    def add(self, call: LoggedCall) -> None:
        """Writes a call down."""
        with self._open() as file:
            file.seek(0, SEEK_END)
            file.write(f"{call.model_dump_json()}\n")

    def once(
        self, call: LoggedCall, run: Callable[[Sequence[LoggedCall]], dict[str, Any]]
    ) -> LoggedCall:
        """Runs an act over the calls so far, unless one with its key has run: gives the call that
        ran, this or the earlier one.

        Nobody else writes meanwhile. What an act does is its line, so that one that was killed has either run or not.
        """
        with self._open() as file:
            before = _read(file)
            earlier = next(
                (
                    one
                    for one in before
                    if call.key and (one.tenant, one.key) == (call.tenant, call.key)
                ),
                None,
            )
            if earlier is None:
                call = call.replace(result=run(before))
                file.write(f"{call.model_dump_json()}\n")
            return earlier or call

    @contextmanager
    def _open(self) -> Generator[TextIO]:
        if self._path is None:
            yield self._memory
            return
        try:
            file = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"the log of calls cannot be written: {error}; name another file"
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _read(file: TextIO) -> Sequence[LoggedCall]:
    file.seek(0)
    return [LoggedCall.model_validate_json(line) for line in file]
