"""Reads the results of a grid: each of its ways is a system of its own."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kit.bench.case import Case
from kit.bench.grid.failures import read_failures
from kit.bench.grid.report import axes, rows_by_way
from kit.bench.grid.results import Row, read_results
from kit.bench.grid.stored_runs import read_asked, read_run
from kit.bench.identity import digest
from kit.bench.logs.log import Log, LoggedSample, choose_system
from kit.core.display.count import many


def read_grid_run(folder: Path, system: str | None = None) -> Log:
    """The samples of one way, named as the report names it. A case is a sample, in the clusters of the grid's plan;
    its repeats and turns are its epochs. Raises DataError for a folder that no grid wrote, and where a way has to be
    named."""
    run = read_run(folder)
    rows: list[Row] = [*read_results(folder), *read_failures(folder)]
    ways = rows_by_way(rows, axes(rows))
    name = choose_system(folder, ways, system)
    cases = read_asked(folder)
    made_of = run.runs[-1]
    # A run of an earlier version does not say how its sub-agents were played.
    clock = made_of.get("clock", "unknown")
    sub_agents = made_of.get("sub_agents", "")
    judges = str(made_of.get("inputs", {}).get("judges", ""))
    epochs: Counter[str] = Counter()
    samples: list[LoggedSample] = []
    scorers: dict[str, str] = {}
    for row in ways[name]:
        case = row["case"]
        # The line of a failed cell stands for all of its turns.
        for _ in range(row.get("turns", 1)):
            epochs[case] += 1
            sample = _sample(row, epochs[case], cases.get(case))
            samples.append(sample.replace(cluster=run.plan.clusters.get(case)))
        scorers.update(dict.fromkeys(row.get("scores", ()), judges))
    kind = ways[name][0]["kind"]
    return Log(
        name=name,
        tool=f"subagent-kit, {kind}, {clock} time, sub-agents: {sub_agents or 'unknown'}",
        samples=tuple(samples),
        scorers=scorers,
        early_end=_early_end(ways[name], run.plan.planned),
        is_virtual=clock == "virtual",
        sub_agents=sub_agents,
        verdicts=run.verdicts,
        margin=run.plan.margin,
    )


def _sample(row: Row, epoch: int, case: Case | None) -> LoggedSample:
    question = "" if case is None else digest(case)
    if "error_class" in row:
        error = f"{row['error_class']}: {row['error']}"
        return LoggedSample(sample=row["case"], epoch=epoch, error=error, question=question)
    # A turn whose fault never happened is a sample of something else.
    is_void = "void" in row
    return LoggedSample(
        sample=row["case"],
        epoch=epoch,
        scores=row["scores"],
        seconds=None if is_void else row.get("seconds"),
        cost=None if is_void else row["cost"],
        question=question,
    )


def _early_end(rows: Sequence[Row], planned: int | None) -> str:
    plays = len({(row["case"], row["repeat"]) for row in rows})
    if plays == planned:
        return ""
    return f"{many(plays, 'play')} of it, where {planned or 'no number'} was planned"
