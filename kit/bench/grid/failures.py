"""Cells that infrastructure lost (decisions 35): what lost them, how many, and whether ways can still be compared."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from kit.bench.grid.results import Row, read_rows
from kit.bench.statistics.distributions import fisher_p
from kit.core.outcome import ErrorClass
from kit.core.value import Value
from kit.metrics.estimate import LEVEL
from kit.runtime.handle import Reply

FAILURES = "failures.jsonl"
MOST_FAILED = 0.02
"""The share of a way's cells that may fail before it gets no verdict."""
STREAK = 5
"""A model, or a judge, is asked no further after so many failures of these classes in a row."""
HOPELESS: frozenset[ErrorClass] = frozenset(("auth", "not_found", "judge"))
UNREACHED: frozenset[ErrorClass] = frozenset(("network", "system"))
"""Hopeless only of an endpoint that has answered nothing in this run: one that has may be back in a minute."""
CellEnds = dict[tuple[Any, Any], bool]
"""Case and repeat -> whether the cell failed."""


class CellCount(Value):
    """Cells of one way."""

    total: int = 0
    failed: int = 0

    @classmethod
    def of(cls, ends: CellEnds) -> "CellCount":
        return cls(total=len(ends), failed=sum(ends.values()))

    @property
    def share(self) -> float:
        if self.total:
            return self.failed / self.total
        return 0.0

    def __str__(self) -> str:
        return f"{self.failed:,} of {self.total:,} cells failed"


class Streaks:
    """Counts failures in a row of each model and each judge that a run asks, by their names in words."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ErrorClass]] = Counter()
        self._answered: set[str] = set()

    def answered(self, names: Collection[str]) -> None:
        """Notes who has answered: the model of a scored cell, and every judge."""
        self._answered.update(names)
        for blamed, error_class in list(self._counts):
            if blamed in names:
                del self._counts[blamed, error_class]

    def failed(self, blamed: str, error_class: ErrorClass) -> None:
        """Notes a failed cell, and who is to blame for it."""
        if error_class in HOPELESS or (error_class in UNREACHED and blamed not in self._answered):
            self._counts[blamed, error_class] += 1

    @property
    def hopeless(self) -> dict[str, ErrorClass]:
        """Who is asked no further, and why."""
        hopeless: dict[str, ErrorClass] = {}
        for (blamed, error_class), n in self._counts.items():
            if n >= STREAK:
                hopeless[blamed] = error_class
        return hopeless


def error_of(replies: Iterable[Reply], *, faults: bool) -> tuple[ErrorClass, str] | None:
    """Returns what lost a cell of a real model, and the developer's line about it; None where its
    turns are samples.

    A budget loses what it ends, the turn or a sub-agent; a call that a turn goes on without, such
    as the failsafe's second one, is part of what is measured. `faults`: time-outs are wanted in
    this cell.
    """
    for reply in replies:
        lines: list[str] = []
        for event in reply.events:
            body = event.body
            if body.kind != "model_ended" or body.error_class is None:
                continue
            # A call that ran out of time is no loss where the turn went on without it.
            if body.error_class != "budget":
                return body.error_class, body.error or ""
            lines.append(body.error or "")
        details: list[str] = []
        for outcome in reply.outcomes:
            if outcome.kind == "failure" and outcome.reason in ("timeout", "budget"):
                details.append(outcome.detail)
        if faults or not (details or reply.status in ("failed", "deadline")):
            continue
        lines += details
        if reply.status == "deadline":
            lines.append("the turn took longer than the deck allows")
        if lines:
            return "budget", lines[0]
    return None


def read_failures(folder: Path) -> list[dict[str, Any]]:
    """One dict for each failed cell; empty where none failed. Raises DataError, with file and line,
    for what no grid wrote."""
    path = folder / FAILURES
    if path.exists():
        return list(read_rows(path, "cell", "case", "turns", "error_class", "error"))
    return []


def way_of(row: Row, by: Sequence[str]) -> tuple[str, ...]:
    """The names of the way that a row is of, on these axes."""
    return tuple(str(row.get(name, "")) for name in by)


def way_name(names: Iterable[str]) -> str:
    """The name of a way in reports and on pages. A whole system stands on no axis but its own name's,
    and has an empty name on the others."""
    return " / ".join(filter(None, names)) or "(all)"


def obstacle(baseline: CellCount, compared: CellCount) -> str:
    """Returns why two ways must not be compared; empty where they may."""
    words = f"{compared} here, {baseline} in the baseline"
    if max(baseline.share, compared.share) > MOST_FAILED:
        return f"{words}; more than {MOST_FAILED:.0%} is no fair comparison"
    # SciPy takes a second to import, and most runs lose no cell.
    if baseline.failed == compared.failed:
        return ""
    chance = fisher_p((baseline.failed, baseline.total), (compared.failed, compared.total))
    if chance < 1 - LEVEL:
        return f"{words}; they fail differently"
    return ""


def failed_words(failures: Iterable[Row]) -> str:
    """Returns how many cells each class has lost, in words: `auth 24, network 2`; empty for none."""
    counts = Counter(map(itemgetter("error_class"), failures))
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


def failure_lines(failures: Sequence[Row], axes: Sequence[str]) -> list[str]:
    """A line for each way and class: how many cells, and what was said of the first of them."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in failures:
        names = way_name(way_of(row, axes))
        groups[names, row["error_class"]].append(row)
    lines: list[str] = []
    for (names, name), rows in sorted(groups.items()):
        error = " ".join(rows[0]["error"].split())
        lines.append(f"{names}: {name} {len(rows):,}, such as {error}")
    return lines
