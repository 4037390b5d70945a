"""Two stored runs side by side, paired by case: only where both were asked the same and judged alike."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kit.bench.grid.comparison import Comparison, compare
from kit.bench.grid.failures import read_failures
from kit.bench.grid.results import AXES, Results, tidy
from kit.bench.grid.stored_runs import StoredRun, read_run
from kit.bench.statistics.verdict import NO_COMPARISON, Margin, check_margin
from kit.core.errors import DataError

_EQUAL_INPUTS = {"cases": "other case files", "judges": "other judges"}
"""Input of a run -> what is wrong where it differs."""


def compare_runs(
    before: Path,
    after: Path,
    measures: Sequence[str] = (),
    *,
    margin: Margin | None = None,
) -> list[Comparison]:
    """Every way of the second run beside the same way of the first; `measures` are scorers and
    measures, the first run's verdicts when none is named. On an axis where the runs differ each
    must have one value: that is what is compared. `margin` takes the place of the first run's.

    Raises DataError for folders without results, for runs over other case files or by other judges,
    and for ways that cannot be told apart.
    """
    first_run = read_run(before)
    second_run = read_run(after)
    _check_inputs(first_run, second_run)
    names = tuple(measures) or first_run.verdicts or ("exact",)
    check_margin(margin, names)
    rows = [*_tidy_rows("before", before, names), *_tidy_rows("after", after, names)]
    plan = first_run.plan
    same_size = plan.planned == second_run.plan.planned
    return compare(
        rows,
        {"run": "before"},
        ("run", *_shared_axes(rows)),
        planned=plan.planned if same_size else None,
        margin=plan.margin if margin is None else margin,
        clusters=plan.clusters,
    )


def describe_runs(before: Path, after: Path) -> list[str]:
    """Says what the figures of two runs are, and what of them is no comparison, a line each."""
    lines: list[str] = []
    kinds: set[str] = set()
    conditions: list[tuple[str, str]] = []
    for label, run in (("before", read_run(before)), ("after", read_run(after))):
        made_of = run.runs[-1]
        clock = made_of.get("clock", "unknown")
        sub_agents = made_of.get("sub_agents", "unknown")
        lines.append(f"{label}: {run.folder}, {run}; {clock} time, sub-agents: {sub_agents}")
        kinds.update(run.kinds)
        conditions.append((clock, sub_agents))
    (clock, sub_agents), (other_clock, other_sub_agents) = conditions
    # A run of an earlier version does not say how its sub-agents were played.
    is_known = "unknown" not in (sub_agents, other_sub_agents)
    if "simulated" in kinds and len(kinds) > 1:
        lines.append(NO_COMPARISON)
    if clock != other_clock:
        lines.append("Seconds of virtual and of real time are no comparison.")
    if is_known and sub_agents != other_sub_agents:
        lines.append(
            "The sub-agents were played otherwise: tokens, dollars and seconds are no comparison."
        )
    return lines


def _tidy_rows(run: str, folder: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for row in tidy(Results(folder), names, read_failures(folder)):
        yield {**row, "run": run}


def _check_inputs(first_run: StoredRun, second_run: StoredRun) -> None:
    for name, words in _EQUAL_INPUTS.items():
        first = first_run.runs[-1].get("inputs", {}).get(name)
        second = second_run.runs[-1].get("inputs", {}).get(name)
        if first is None or first != second:
            digests = f"{first or 'unknown'} and {second or 'unknown'}"
            raise DataError(
                f"{first_run.folder} and {second_run.folder} cannot be compared: they were played over "
                f"{words} ({name} {digests}); "
                "play both again with the same ones"
            )


def _shared_axes(rows: Sequence[dict[str, Any]]) -> list[str]:
    differing: list[str] = []
    for axis in AXES:
        names: dict[str, set[str]] = {"before": set(), "after": set()}
        for row in rows:
            names[row["run"]].add(row[axis])
        first = names["before"]
        second = names["after"]
        if len(first | second) == 1:
            continue
        if first == second:
            differing.append(axis)
        elif len(first) > 1 or len(second) > 1:
            raise DataError(
                f"the runs have other {axis}s, {sorted(first)} and {sorted(second)}: play both "
                f"with one, or with the same"
            )
    return differing
