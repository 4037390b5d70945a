"""Whether a run that is under way has settled every verdict, so that no further case need be paid for."""

import json
from collections.abc import Iterable

from kit.bench.grid.comparison import compare
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import FinishedCell
from kit.bench.grid.provenance import Plan
from kit.bench.grid.results import AXES, Row, tidy

FEWEST = 10
"""Samples of the baseline before the first look: of fewer hardly anything can be settled."""


class Decision:
    """Looks at the rows of a run as they come. At a size that was not planned `compare` takes the
    test that holds at any look, so looking after every cell makes no false verdict likelier."""

    def __init__(self, spec: GridSpec, plan: Plan):
        self._spec = spec
        self._plan = plan
        self._rows: list[Row] = []
        self._failures: dict[str, Row] = {}
        self._next_look = 0
        self.samples = 0
        """Cases, each as often as it is repeated, that every way has ended."""
        self.is_settled = False

    def add(self, cells: Iterable[FinishedCell]) -> None:
        """Takes cells, and looks again."""
        for cell in cells:
            if cell.error_class is None:
                self._failures.pop(cell.key, None)
                self.add_lines(cell.lines)
            else:
                self._failures[cell.key] = json.loads(cell.lines)
        if len(self._rows) >= self._next_look:
            self.look()

    def add_lines(self, lines: str) -> None:
        """Takes the lines of a scored cell."""
        self._rows += map(json.loads, lines.splitlines())

    def look(self) -> None:
        """Compares what there is."""
        # A look reads every row: of a large run it is taken after each fiftieth part more.
        self._next_look = len(self._rows) + 1 + len(self._rows) // 50
        ends: dict[tuple[object, object], set[object]] = {}
        for row in (*self._rows, *self._failures.values()):
            ends.setdefault((row["case"], row["repeat"]), set()).add(tuple(row[a] for a in AXES))
        ways: set[object] = set()
        for ways_of_sample in ends.values():
            ways |= ways_of_sample
        self.samples = sum(ways_of_sample == ways for ways_of_sample in ends.values())
        baseline = self._spec.grid.baseline
        has_baseline = any(
            all(row[axis] == name for axis, name in baseline.items()) for row in self._rows
        )
        if self.samples < FEWEST or not baseline or not has_baseline:
            return
        verdicts = compare(
            tidy(self._rows, self._spec.grid.verdicts, self._failures.values()),
            baseline,
            AXES,
            planned=self._plan.planned,
            margin=self._plan.margin,
            clusters=self._plan.clusters,
        )
        self.is_settled = bool(verdicts) and all(verdict.settled for verdict in verdicts)
