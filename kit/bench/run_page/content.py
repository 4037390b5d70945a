"""What the page of a run says: its verdicts, figures by way, wrong cases and failures, from its files."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kit.bench.case import Ask, Case
from kit.bench.grid.comparison import LOWER, Comparison, Summary
from kit.bench.grid.decision import compare_rows
from kit.bench.grid.failures import failure_lines, read_failures
from kit.bench.grid.ledger import Ledger
from kit.bench.grid.report import (
    caveat_lines,
    differing_axes,
    rows_by_way,
    uncompared,
)
from kit.bench.grid.results import AXES, Row, read_results
from kit.bench.grid.run import LEDGER, PROVENANCE, RESULTS
from kit.bench.grid.stored_runs import StoredRun, read_asked, read_run
from kit.bench.scoring.played_cell import PlayedCell
from kit.bench.statistics.verdict import is_score
from kit.core.value import Value

MOST_WRONG = 10
"""Wrong cases of a way that the page shows; results.jsonl has all."""


class Spend(Value):
    """What the scored turns of one way took."""

    way: str
    turns: int
    calls: float | None
    """Model calls of a turn, on average; None where no turn says."""
    tokens_in: float | None
    tokens_out: float | None
    dollars: float | None
    """Of all turns together; None where the price of one is unknown."""
    seconds: float | None
    """The median."""


class WrongCase(Value):
    """A turn with the worst score."""

    row: dict[str, Any]
    """Its line of the results."""
    ask: Ask | None
    """What was asked and expected; None where the folder does not hold it."""
    answer: str | None
    """None where the run kept no answers."""


class WrongCases(Value):
    """Those of one way, the first few of them."""

    way: str
    count: int
    turns: int
    """Turns of the way that have a score."""
    shown: tuple[WrongCase, ...]


class RunContent(Value):
    """All that the page says of a run."""

    run: StoredRun
    rows: list[dict[str, Any]]
    axes: tuple[str, ...]
    """Those on which the ways differ; the model where none does."""
    cases: int
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]
    uncompared: tuple[str, ...]
    """The comparisons that were asked for and that cannot be made, in words."""
    spends: tuple[Spend, ...]
    caveats: tuple[str, ...]
    """A line for each way whose tokens and dollars are in part estimated, or whose calls waited."""
    measures: tuple[str, ...]
    """What its ways were compared by."""
    measure: str
    """The score that the wrong cases are wrong by."""
    failures: tuple[str, ...]
    """A line for each way and class of cells that infrastructure took."""
    dates: tuple[str, ...]
    """The days on which it was played; empty for a run that does not say."""
    digest: str
    """SHA-256 of results.jsonl followed by provenance.json."""


def read_content(folder: Path) -> RunContent:
    """What a folder says. Raises DataError for one that no grid wrote its results to."""
    run = read_run(folder)
    rows = read_results(folder)
    failures = read_failures(folder)
    # What all ways share is no part of their names.
    by = differing_axes([*rows, *failures]) or AXES[:1]
    measures = run.verdicts or ("exact",)
    summaries, comparisons = compare_rows(rows, failures, by, measures, run.baseline, run.plan)
    measure = next((name for name in measures if is_score(name)), "exact")
    return RunContent(
        run=run,
        rows=rows,
        axes=by,
        cases=len({row["case"] for row in rows}),
        summaries=tuple(summaries),
        comparisons=tuple(comparisons),
        uncompared=tuple(
            uncompared(summaries, comparisons, rows, failures, run.baseline, measures)
        ),
        spends=tuple(_spend(way, of_way) for way, of_way in rows_by_way(rows, by).items()),
        caveats=tuple(caveat_lines(rows, by)),
        measures=measures,
        measure=measure,
        failures=tuple(failure_lines(failures, by)),
        dates=tuple(dict.fromkeys(one["date"] for one in run.runs if "date" in one)),
        digest=_digest(folder),
    )


def _spend(way: str, rows: Sequence[Row]) -> Spend:
    costs = [row["cost"] for row in rows]
    return Spend(
        way=way,
        turns=len(rows),
        calls=_figure(fmean, rows, "model_calls"),
        tokens_in=_figure(fmean, rows, "input_tokens"),
        tokens_out=_figure(fmean, rows, "output_tokens"),
        dollars=None if None in costs else sum(costs),
        seconds=_figure(median, rows, "seconds"),
    )


def _figure(
    fold: Callable[[list[float]], float], rows: Sequence[Row], measure: str
) -> float | None:
    values = [float(row[measure]) for row in rows if row.get(measure) is not None]
    if not values:
        return None
    return fold(values)


def wrong_cases(content: RunContent) -> tuple[WrongCases, ...]:
    """Returns those of each way. Raises DataError while the run goes on: its answers are being written."""
    measure = content.measure
    right = 0.0 if measure in LOWER else 1.0
    cases = read_asked(content.run.folder)
    answers = _answers(content.run.folder)
    groups: list[WrongCases] = []
    for way, of_way in rows_by_way(content.rows, content.axes).items():
        scored_rows = [row for row in of_way if row["scores"].get(measure) is not None]
        wrong = [row for row in scored_rows if row["scores"][measure] != right]
        shown = [_wrong_case(row, cases, answers) for row in wrong[:MOST_WRONG]]
        groups.append(
            WrongCases(way=way, count=len(wrong), turns=len(scored_rows), shown=tuple(shown))
        )
    return tuple(groups)


def _wrong_case(
    row: Row, cases: Mapping[str, Case], answers: Mapping[tuple[str, int], str]
) -> WrongCase:
    turn: int = row["turn"]
    case = cases.get(row["case"])
    ask: Ask | None = None
    if case is not None and turn < len(case.turns):
        ask = case.turns[turn]
    # The line of a whole system holds its answer.
    answer = row.get("text", answers.get((row["cell"], turn)))
    return WrongCase(row=dict(row), ask=ask, answer=answer)


def _answers(folder: Path) -> dict[tuple[str, int], str]:
    """Cell and turn -> the answer, of runs that keep their turns (docs/bench.md)."""
    path = folder / LEDGER
    if not path.exists():
        return {}
    answers: dict[tuple[str, int], str] = {}
    with closing(Ledger(path)) as ledger:
        for text in ledger.turns().values():
            played = PlayedCell.from_json(text)
            if played is None:
                continue
            for turn in played.turns:
                answers[played.cell, turn.observation.turn] = turn.observation.text
    return answers


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (RESULTS, PROVENANCE):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()
