"""run_grid(): a grid played to its end, from wherever it was left, and its results as files (docs/bench.md)."""

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from kit.bench.case import as_line
from kit.bench.grid.cell import Cell, Halt, cells, in_play_order
from kit.bench.grid.decision import Decision
from kit.bench.grid.failures import FAILURES, STREAK, Streaks
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import FinishedCell, Ledger
from kit.bench.grid.player import Opener
from kit.bench.grid.provenance import plan_of, provenance
from kit.bench.grid.workers import HaltNow, Keep, play
from kit.bench.scoring.own_judges import judge_in_words
from kit.bench.systems.disclosure import PROJECTED, project
from kit.core.display.count import many
from kit.core.errors import DataError

RESULTS = "results.jsonl"
TIMINGS = "timings.jsonl"
PROVENANCE = "provenance.json"
LEDGER = "ledger.db"
TRACES = "traces.db"
CASES = "cases.jsonl"
"""What was asked, so that a reader of the results need not look for the grid's own files."""
Progress = Callable[[int, int], object]
"""Told how many cells are done, and of how many."""


@dataclass(frozen=True)
class Run:
    """The outcome of a run."""

    folder: Path
    total: int
    """Cells of the grid."""
    before: int
    """Those that were there already."""
    done: int
    """Those of this run."""
    dollars: float
    """Spent on all cells of the grid, failed ones too, as far as prices are known."""
    failed: int = 0
    """Cells that infrastructure lost; the next run plays them again."""
    scored_again: int = 0
    """Those of `done` whose turns were stored by an earlier run: no model of a way was called."""
    stopped: str = ""
    """Why no further cell was begun, in words; empty where all were."""
    decided: bool = False
    """Whether no further case was begun because every verdict was settled."""

    @property
    def complete(self) -> bool:
        return self.before + self.done == self.total

    def __str__(self) -> str:
        text = f"{many(self.done - self.scored_again, 'cell')} played, {self.before:,} were there"
        if self.scored_again:
            text += f", {self.scored_again:,} were scored anew and asked nobody of a way"
        return text


def run_grid(
    spec: GridSpec,
    folder: Path,
    opener: Opener,
    workers: int | None = None,
    progress: Progress | None = None,
    go_on: Callable[[], bool] | None = None,
    *,
    traces: bool = False,
    on: str | None = None,
    say: Callable[[str], object] | None = None,
) -> Run:
    """Plays the cells that are not in the folder's ledger yet, and writes results.jsonl,
    timings.jsonl and provenance.json.

    The bytes of results.jsonl depend on the grid alone, provided its models are simulated or the
    stand-in: not on when, in how many processes, how many at a time or in how many runs its cells
    were played. It is written when the run ends, whole or at a limit, from all finished cells. No
    further cell is begun once `go_on` says no, and none of a model that cannot be asked. Once the
    dollars are spent, no further case is begun; those at work are finished on every way. With
    `traces`, every turn it plays is kept in traces.db, a store like the app's. `on`, the address of
    a Dask cluster, plays them there. `say` is told once what all of it will take, where whole
    systems are played. Blocks; call it in a thread where a loop runs. Raises DataError
    when the ledger or a file cannot be written, and whatever opening a kit raises.
    """
    with closing(Ledger(folder / LEDGER)) as ledger:
        all_cells = list(cells(spec))
        cassette = spec.grid.cassette
        if not _goes_on(spec):
            ledger.forget()
        finished = ledger.keys()
        missing_cells = [cell for cell in all_cells if cell.key not in finished]
        todo = in_play_order(spec, missing_cells)
        if spec.keeps_turns:
            turns = ledger.turns()
            todo = [replace(cell, stored=turns.get(cell.turn, "")) for cell in todo]
        present = len(all_cells) - len(todo)
        model_of = {cell.key: cell.model for cell in all_cells}
        cost = ledger.cost(model_of)
        tally = _Tally(spec, ledger, model_of, present, cost, progress)
        tally.say = say
        if spec.grid.limits.when_decided:
            tally.decision = Decision(spec, plan_of(spec, folder), ledger, model_of)
            tally.decision.look()
        # The bar shows how far an earlier run came before the first cell ends.
        tally.keep(())
        if todo:
            ledger.begin(json.dumps(provenance(spec)))
            if traces:
                spec = replace(spec, traces=folder / TRACES)
            if cassette is not None:
                workers = 1

            def halt() -> Halt:
                if go_on is None or go_on():
                    return tally.halt()
                return Halt(everything=True)

            if on is None:
                play(spec, todo, opener, tally.keep, halt, workers)
            else:
                _play_on_cluster(on, spec, todo, opener, tally.keep, halt)
        if tally.decision is not None:
            tally.decision.look()
        write(folder, spec, all_cells, ledger)
        failed = len(ledger.failures(model_of))
        missing = len(all_cells) - present - tally.count - failed
        return Run(
            folder,
            len(all_cells),
            present,
            tally.count,
            tally.dollars,
            failed,
            tally.scored_again,
            tally.reasons() if missing else "",
            decided=bool(missing) and tally.is_decided,
        )


def _goes_on(spec: GridSpec) -> bool:
    """Whether a run begins with the cells that are in its ledger already."""
    cassette = spec.grid.cassette
    if cassette is None:
        return True
    # What was played counts only with the recording of it.
    return cassette.mode == "record" and not spec.virtual and Path(cassette.file).exists()


def what_is_kept(spec: GridSpec, folder: Path) -> str:
    """Says how many cells of a run that was interrupted are played, and how it goes on. Raises
    DataError for a ledger that cannot be read."""
    keys = {cell.key for cell in cells(spec)}
    with closing(Ledger(folder / LEDGER)) as ledger:
        played_count = len(keys & ledger.keys())
    progress = f"{played_count:,} of {many(len(keys), 'cell')} are played"
    if _goes_on(spec):
        return f"{progress} and kept in {folder}; the same command goes on from there"
    return f"{progress}; the recording answers again when the same command begins anew"


def _play_on_cluster(
    address: str,
    spec: GridSpec,
    todo: Sequence[Cell],
    opener: Opener,
    keep: Keep,
    halt: HaltNow,
) -> None:
    if spec.grid.cassette is not None or spec.traces is not None:
        raise DataError(
            "recordings and traces are kept on this machine: play a grid with them here, or on a cluster without"
        )
    # No other grid pays for importing it.
    from kit.bench.grid.cluster import play_on_cluster

    play_on_cluster(address, spec, todo, opener, keep, halt)


class _Tally:
    """Keeps cells as they end, counts them and what they cost, and says what would be in vain or too dear."""

    def __init__(
        self,
        spec: GridSpec,
        ledger: Ledger,
        models: Mapping[str, str],
        before: int,
        dollars: float,
        progress: Progress | None,
    ):
        self._ledger = ledger
        self._models = models
        self._names = {model: f"model {model!r}" for model in models.values()}
        for system in spec.systems:
            self._names[system] = f"system {system!r}"
        self._has_answered = {models[key] for key in ledger.keys() & models.keys()}
        """Those of which any cell is scored, in this run or an earlier one."""
        self._unanswered: dict[str, list[FinishedCell]] = defaultdict(list)
        self._ways = len(models) // (len(spec.cases) * spec.grid.repeats)
        self._began = time.monotonic()
        self.say: Callable[[str], object] | None = None
        self.decision: Decision | None = None
        self._judges = set(map(judge_in_words, (*spec.grid.judges, *spec.own.judges)))
        self._before = before
        self._limit = spec.grid.limits.dollars
        self._progress = progress
        self._streaks = Streaks()
        self._failed = 0
        self.count = 0
        self.scored_again = 0
        self.dollars = dollars
        self._dollars_before = dollars

    def keep(self, batch: Collection[FinishedCell]) -> None:
        cells: list[FinishedCell] = []
        for cell in batch:
            cells += self._as_counted(cell)
        self._ledger.keep(cells)
        for cell in cells:
            self.dollars += cell.cost or 0.0
            name = self._names[self._models[cell.key]]
            if cell.error_class is None:
                self.count += 1
                self.scored_again += cell.scored_again
                self._streaks.answered({name, *self._judges})
            else:
                self._failed += 1
                self._streaks.failed(cell.blamed or name, cell.error_class)
        if self.decision is not None:
            self.decision.cells_are_kept()
        self._project()
        if self._progress is not None:
            self._progress(self._before + self.count + self._failed, len(self._models))

    def _project(self) -> None:
        """Says once, after the first cases, what all of the run will take."""
        count = self.count + self._failed
        if self.say is None or count < PROJECTED * self._ways:
            return
        seconds = time.monotonic() - self._began
        total = len(self._models) - self._before
        # What an earlier run spent is no share of what these cells cost.
        dollars = self.dollars - self._dollars_before
        if count < total:
            self.say(project(count, total, dollars or None, seconds))
        self.say = None

    @property
    def is_decided(self) -> bool:
        return self.decision is not None and self.decision.is_settled

    def _as_counted(self, cell: FinishedCell) -> list[FinishedCell]:
        """The cell as it counts by now, and with a system's first answer those that waited for it.

        What a whole system fails by itself is an outcome like any other. But one that has never
        answered lacks something, such as a key, and nothing of it is a sample.
        """
        model = self._models[cell.key]
        if cell.unanswered and model not in self._has_answered:
            self._unanswered[model].append(cell._replace(cost=None))
            return [cell._replace(lines=cell.unanswered, error_class="system", turn="", played="")]
        if cell.error_class is not None or cell.unanswered:
            return [cell]
        self._has_answered.add(model)
        waiting = self._unanswered.pop(model, [])
        self._failed -= len(waiting)
        return [*waiting, cell]

    def halt(self) -> Halt:
        """What must not begin any more."""
        hopeless = self._streaks.hopeless
        models: set[str] = set()
        if hopeless:
            models = {model for model, name in self._names.items() if name in hopeless}
        return Halt(
            # A judge is asked about the cells of every way.
            everything=not self._judges.isdisjoint(hopeless),
            new_samples=self._is_spent or self.is_decided,
            models=frozenset(models),
        )

    @property
    def _dollars_so_far(self) -> str:
        if not self.dollars:
            return ""
        limit = "" if self._limit is None else f" of ${self._limit:,.2f}"
        return f", ${self.dollars:,.2f}{limit} spent"

    @property
    def _is_spent(self) -> bool:
        return self._limit is not None and self.dollars >= self._limit

    def reasons(self) -> str:
        """Why cells were not begun, in words; empty where nothing kept them from it."""
        reasons: list[str] = []
        if self.decision is not None and self.decision.is_settled:
            planned = len(self._models) // self._ways
            reasons.append(
                f"decided after {self.decision.samples:,} of {planned:,}{self._dollars_so_far}"
            )
        for blamed, error_class in self._streaks.hopeless.items():
            reasons.append(f"{blamed} failed {STREAK} times for the same reason ({error_class})")
        if self._is_spent:
            reasons.append(f"the limit of {self._limit:g} dollars is reached")
        return "; ".join(reasons)


def write(folder: Path, spec: GridSpec, all_cells: Iterable[Cell], ledger: Ledger) -> None:
    """The files of scored and failed cells, in order, each file whole or not at all. Raises
    DataError where there is no room."""
    order = [cell.key for cell in all_cells]
    try:
        _replace(folder / RESULTS, ledger.lines("lines", order))
        _replace(folder / TIMINGS, ledger.lines("timing", order))
        _replace(folder / CASES, map(as_line, spec.cases))
        failure_lines = ledger.failures(order)
        _replace(folder / FAILURES, failure_lines)
        if not failure_lines:
            (folder / FAILURES).unlink()
        finished = len(ledger.keys().intersection(order))
        error_classes = Counter(json.loads(line)["error_class"] for line in failure_lines)
        grid = {
            "name": spec.grid.name,
            "kinds": sorted(set(spec.kinds.values())),
            "cells": len(order),
            "played": finished,
            "failed": error_classes,
            "baseline": spec.grid.baseline,
            "verdicts": spec.grid.verdicts,
            "plan": plan_of(spec, folder).model_dump(mode="json", exclude_defaults=True),
        }
        runs = {str(run): json.loads(text) for run, text in ledger.provenance().items()}
        _replace(folder / PROVENANCE, [json.dumps({"grid": grid, "runs": runs}, indent=1) + "\n"])
    except OSError as error:
        raise DataError(
            f"the results cannot be written to {folder}: {error.strerror or error}; make room there "
            f"and run the grid again: {ledger.count:,} finished cells are kept"
        ) from error


def _replace(path: Path, lines: Iterable[str]) -> None:
    draft = path.with_suffix(".part")
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)
    draft.replace(path)


class Bar:
    """Progress on a terminal or in a notebook, one line that is written anew; elsewhere nothing is said."""

    def __init__(self) -> None:
        self._loud = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._began = self._last_update = time.monotonic()
        self._first: int | None = None

    def __call__(self, count: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = count
        if not self._loud or (now - self._last_update < 0.2 and count < total):
            return
        self._last_update = now
        pace = (count - self._first) / max(1e-9, now - self._began)
        line = f"{count:,} of {total:,} cells, {pace:,.0f} a second"
        if pace and count < total:
            line += f", {(total - count) / pace:,.0f} s left"
        # The last characters clear what a longer line has left.
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the line."""
        if self._loud and self._first is not None:
            print(file=sys.stderr)
