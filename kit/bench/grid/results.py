"""Reads the results of a grid, as tidy rows for comparisons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from kit.bench.statistics.measures import COUNTS, MEASURES, PEER_MEASURES
from kit.core.errors import DataError

AXES = ("model", "prompt", "setting", "pattern", "fault")
"""What tells the ways of a grid apart."""
_NO_PEER = dict.fromkeys(PEER_MEASURES, 0)
"""Of a turn that asked nobody elsewhere."""
_FIELDS = ("cell", *AXES, *COUNTS, "kind", "case", "repeat", "turn", "domain", "called", "scores")
"""What every line holds."""
_NAMES = frozenset((*AXES, "kind", "case", "domain", "status"))
"""Fields whose words many lines share."""


Row = Mapping[str, Any]
"""A line of results, or of failures."""


@dataclass(frozen=True)
class Results:
    """The results in a folder, read anew each time they are gone through: a hundred thousand cells
    need no memory.

    One dict for each scored turn, in the order of the file; seconds of a real clock come from
    timings.jsonl beside it. Going through them raises DataError, with file and line, for what a
    grid did not write.
    """

    folder: Path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        timings: _Timings | None = None
        for row in read_rows(self.folder / "results.jsonl", *_FIELDS):
            # Else it was played in virtual time.
            if "seconds" not in row:
                timings = timings or _Timings(self.folder)
                row.update(timings.next_turn(row["cell"]))
            yield row

    def __len__(self) -> int:
        """How many there are; the lines are counted, not read."""
        try:
            with (self.folder / "results.jsonl").open("rb") as file:
                return sum(1 for _ in file)
        except OSError:
            return 0


class _Timings:
    """Goes along timings.jsonl, whose cells are in the order of the results."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._lines = iter(read_rows(folder / "timings.jsonl", "cell"))
        self._line: dict[str, Any] = {"cell": None}
        self._place = 0

    def next_turn(self, cell: str) -> dict[str, Any]:
        """The times of the next turn of this cell. Raises DataError where they are not there."""
        try:
            while self._line["cell"] != cell:
                self._line = next(self._lines)
                self._place = 0
            self._place += 1
            return dict(self._line["turns"][self._place - 1])
        except (StopIteration, LookupError, TypeError, ValueError) as error:
            raise DataError(
                f"timings.jsonl of {self._folder} lacks a turn of cell {cell}; run the grid again"
            ) from error


def read_results(folder: Path) -> list[dict[str, Any]]:
    """All results of a folder at once. Raises DataError, with file and line, for what a grid did not write."""
    return list(Results(folder))


def read_rows(path: Path, *fields: str) -> Iterable[dict[str, Any]]:
    """The lines of a file that a grid wrote, which hold these fields. Raises DataError, with file and line.

    What lines have in common is there once: a grid of a hundred thousand cells fits into memory.
    """
    words: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                row = _row(line, fields, f"{path}:{number}")
                for name in _NAMES & row.keys():
                    row[name] = words.setdefault(row[name], row[name])
                yield row
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the results of {path}: run the grid first, or name the folder it wrote to"
        ) from error


def _row(line: str, fields: Iterable[str], where: str) -> dict[str, Any]:
    try:
        # Unlike json it keeps one copy of each name.
        row: dict[str, Any] = orjson.loads(line)
        for name in fields:
            row[name]
        return row
    except (ValueError, KeyError, TypeError) as error:
        lacks = f" ({error} is missing)" if isinstance(error, KeyError) else ""
        raise DataError(
            f"{where}: no line of a grid{lacks}; run the grid again, it writes the file anew"
        ) from error


def tidy(
    rows: Iterable[Row],
    names: Sequence[str],
    failures: Iterable[Row] = (),
) -> Iterator[dict[str, Any]]:
    """A row for each turn and each named scorer or measure, as `compare` and `summarise` take them, one at a time.

    A turn of a failed cell has no value and is marked `lost`; neither has one whose fault never happened.
    """
    for row in rows:
        common = {name: row[name] for name in (*AXES, "case", "repeat", "turn", "domain")}
        elsewhere = {} if "hops" in row else _NO_PEER
        for name in names:
            if "void" in row:
                value = None
            elif name in MEASURES:
                value = row.get(name, elsewhere.get(name))
            else:
                value = row["scores"].get(name)
            yield {**common, "scorer": name, "value": value}
    for row in failures:
        common = {name: row[name] for name in (*AXES, "case", "repeat", "domain")}
        for turn, name in product(range(row["turns"]), names):
            yield {**common, "turn": turn, "scorer": name, "value": None, "lost": True}
