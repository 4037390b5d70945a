"""experiment(): a grid whose every turn is kept as a trace, and a copy of the run in Opik, with scores and verdicts."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kit.bench.case import Case
from kit.bench.grid.comparison import Comparison, Summary
from kit.bench.grid.grid import CaseFile
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.report import axes, compare_run, rows_by_way
from kit.bench.grid.results import AXES, Row, read_results
from kit.bench.grid.run import PROVENANCE, TRACES, Run, run_grid
from kit.bench.scoring.run_case import turn_of
from kit.core.context import OPERATOR
from kit.core.trace import trace_of
from kit.experiment_kits import ExperimentKits
from kit.sinks.opik import OpikSink
from kit.sinks.opik_experiment import Experiment, ScoredTurn, send_experiments
from kit.stores.sqlite import SqliteStore


def experiment(spec: GridSpec, folder: Path, kits: ExperimentKits) -> Run:
    """`run_grid` with traces, then a copy of the whole run to Opik if one is configured; says in a
    line where that lies.

    The results are written before Opik hears of anything: whatever becomes of the copy, they stay
    as they are. Blocks; raises what `run_grid` does.
    """
    run = run_grid(spec.at(kits.access), folder, kits, traces=True)
    if kits.has_opik:
        print(copy_to_opik(spec, run, kits.opik()))
    return run


def copy_to_opik(spec: GridSpec, run: Run, sink: OpikSink | None) -> str:
    """Sends a run to Opik: its cases as a data set, each way as an experiment. Returns a line that
    says what came of it."""
    if sink is None:
        traces = run.folder / TRACES
        return (
            f"Opik: no server answers. The traces are in {traces}; run it again to send them, "
            f"no cell is played twice."
        )
    store = SqliteStore(run.folder / TRACES)
    try:
        rows = read_results(run.folder)
        items = {case.id: item(case) for case in spec.cases}
        count, page = send_experiments(
            sink, data_set(spec.grid.cases), items, experiments(spec, run, rows, store)
        )
    # A border: the SDK raises classes of its own and of what it is built on.
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        return (
            f"Opik: not everything arrived ({type(error).__name__}: {words}). Results and "
            f"traces are in {run.folder}."
        )
    finally:
        store.close()
        sink.close()
    # A grid that was first played without traces has turns that Opik cannot show.
    missing = len(rows) - count
    note = ""
    if missing:
        note = f"; {missing:,} were played without a trace and are left out: another folder plays them again"
    return f"Opik: {count:,} turns as traces and experiments{note}: {page}"


def experiments(
    spec: GridSpec, run: Run, rows: Sequence[Row], store: SqliteStore
) -> Iterator[Experiment]:
    """One for each way of the grid, its verdicts, intervals, seed and revision as metadata, its
    scores beside its traces."""
    ways, verdicts = compare_run(spec, run.folder)
    by = axes(rows)
    common = _common(spec, run)
    for rows_of_way in rows_by_way(rows, by).values():
        first = rows_of_way[0]
        way = {axis: first[axis] for axis in by}
        kind = first["kind"]
        metadata = {**common, "kind": kind, "turns": len(rows_of_way)}
        for axis in AXES:
            metadata[axis] = first[axis]
        metadata["estimates"] = {
            summary.scorer: _estimate(summary) for summary in ways if summary.way == way
        }
        metadata["verdicts"] = [_verdict(verdict) for verdict in verdicts if verdict.way == way]
        metadata["is_baseline"] = any(verdict.baseline == way for verdict in verdicts)
        yield Experiment(
            name=" · ".join((spec.grid.name, *way.values(), kind)),
            metadata=metadata,
            tags=(spec.grid.name, kind),
            results=_scored_turns(rows_of_way, store),
        )


def data_set(files: Iterable[CaseFile]) -> str:
    """The name of a set of cases: its files, and which of their lines, as Python writes a slice:
    `mixed[::2] + single`."""
    return "cases: " + " + ".join(map(_slice, files))


def item(case: Case) -> dict[str, Any]:
    """A case as an item of a data set: what is asked, whom each turn is for, and all else that the case holds."""
    return {
        "case": case.id,
        "input": [ask.user for ask in case.turns],
        "expected_output": [list(case.turns[number].expected) for number in case.scored],
        "definition": case.model_dump(mode="json", exclude_defaults=True),
    }


def _scored_turns(rows: Iterable[Row], store: SqliteStore) -> Iterator[ScoredTurn]:
    for row in rows:
        turn = store.turn(turn_of(row), OPERATOR)
        if turn is None:
            continue
        scores: dict[str, float] = {}
        for name, value in row["scores"].items():
            if value is not None:
                scores[name] = float(value)
        trace = trace_of(store.events(turn.id, OPERATOR))
        yield ScoredTurn(row["case"], turn, trace, scores)


def _common(spec: GridSpec, run: Run) -> dict[str, Any]:
    provenance = json.loads((run.folder / PROVENANCE).read_text(encoding="utf-8"))
    runs = provenance["runs"].values()
    return {
        "grid": spec.grid.name,
        "seed": spec.grid.seed,
        "repeats": spec.grid.repeats,
        "clock": "virtual" if spec.virtual else "real",
        "revision": sorted({made_of["revision"] for made_of in runs}),
        "versions": [made_of["versions"] for made_of in runs],
        "complete": run.complete,
        "failed": run.failed,
    }


def _estimate(summary: Summary) -> dict[str, Any]:
    estimate = summary.estimate
    return {
        "value": estimate.value,
        "interval": [estimate.low, estimate.high],
        "says": str(summary),
    }


def _verdict(comparison: Comparison) -> dict[str, Any]:
    return {
        "scorer": comparison.scorer,
        "verdict": comparison.verdict,
        "against": comparison.baseline,
        "difference": comparison.difference.value,
        "interval": [comparison.difference.low, comparison.difference.high],
        "p_after_holm": comparison.adjusted.value,
        "says": str(comparison),
    }


def _slice(file: CaseFile) -> str:
    stop = "" if file.take is None else str(file.take * file.every)
    step = "" if file.every == 1 else f":{file.every}"
    name = Path(file.file).stem
    if stop or step:
        return f"{name}[:{stop}{step}]"
    return name
