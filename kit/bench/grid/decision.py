"""Whether a run that is under way has settled every verdict, so that no further case need be paid for."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from kit.bench.grid.comparison import Comparison, Summary, compare, is_of, summarise
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import Ledger
from kit.bench.grid.provenance import Plan
from kit.bench.grid.results import AXES, Results, Row, tidy

FEWEST = 10
"""Samples of the baseline before the first look: of fewer hardly anything can be settled."""


class Decision:
    """Looks at what a run has kept. At a size that was not planned `compare` takes the test that
    holds at any look, so looking after every cell makes no false verdict likelier."""

    def __init__(self, spec: GridSpec, plan: Plan, ledger: Ledger, keys: Iterable[str]):
        self._spec = spec
        self._plan = plan
        self._ledger = ledger
        self._keys = list(keys)
        self._next_look = 0
        self.samples = 0
        """Cases, each as often as it is repeated, that every way has ended."""
        self.is_settled = False

    def cells_are_kept(self) -> None:
        """Looks again where there are enough cells more."""
        if self._ledger.count >= self._next_look:
            self.look()

    def look(self) -> None:
        """Compares what there is."""
        # A look reads every row: of a large run it is taken after each fiftieth part more.
        self._next_look = self._ledger.count + 1 + self._ledger.count // 50
        rows: list[Row] = []
        for lines in self._ledger.lines("lines", self._keys):
            rows += map(json.loads, lines.splitlines())
        failures = list(map(json.loads, self._ledger.failures(self._keys)))
        ends: dict[tuple[object, object], set[object]] = {}
        for row in (*rows, *failures):
            ends.setdefault((row["case"], row["repeat"]), set()).add(tuple(row[a] for a in AXES))
        ways: set[object] = set()
        for ways_of_sample in ends.values():
            ways |= ways_of_sample
        self.samples = sum(ways_of_sample == ways for ways_of_sample in ends.values())
        if self.samples < FEWEST:
            return
        grid = self._spec.grid
        _, verdicts = compare_rows(rows, failures, AXES, grid.verdicts, grid.baseline, self._plan)
        self.is_settled = bool(verdicts) and all(verdict.settled for verdict in verdicts)


def compare_rows(
    rows: Sequence[Row] | Results,
    failures: Sequence[Row],
    by: Sequence[str],
    measures: Sequence[str],
    baseline: Mapping[str, str],
    plan: Plan,
) -> tuple[list[Summary], list[Comparison]]:
    """Every way of these axes by every measure, and beside the baseline where that was played and is not alone."""
    ways = summarise(tidy(rows, measures, failures), by, clusters=plan.clusters)
    baseline = {axis: name for axis, name in baseline.items() if axis in by}
    is_played = any(map(partial(is_of, wanted=baseline), chain(rows, failures)))
    several = len({tuple(summary.way.items()) for summary in ways}) > 1
    if not (baseline and is_played and several):
        return ways, []
    verdicts = compare(
        tidy(rows, measures, failures),
        baseline,
        by,
        planned=plan.planned,
        margin=plan.margin,
        clusters=plan.clusters,
    )
    return ways, verdicts
