"""The report of a grid: every way with its intervals, every verdict beside the baseline, each as one sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from kit.bench.grid.comparison import (
    QUALITY,
    Comparison,
    Row,
    Summary,
    compare,
    standings,
    summarise,
)
from kit.bench.grid.failures import (
    CellCount,
    count_cells,
    failed_words,
    failure_lines,
    read_failures,
)
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.hops import hop_lines
from kit.bench.grid.provenance import Plan, first_plan, plan_of
from kit.bench.grid.results import AXES, Results, tidy
from kit.bench.grid.run import Run
from kit.core.display.count import many
from kit.core.errors import DataError
from kit.patterns.a2a import A2A

REPORT = "report.md"


def report(spec: GridSpec, run: Run) -> str:
    """The report in Markdown; also written as report.md into the grid's folder. Every line of a
    simulated model says so."""
    grid = spec.grid
    rows = Results(run.folder)
    failures = read_failures(run.folder)
    plan = plan_of(spec, run.folder)
    ways, verdicts = compare_ways(spec, rows, plan, failures)
    kinds = " and ".join(sorted(set(spec.kinds.values())))
    if failures:
        failed_note = f"; {run.failed:,} of {run.total:,} cells failed ({failed_words(failures)})"
    else:
        failed_note = ""
    missing = run.total - run.before - run.done - run.failed
    if missing:
        state = f"; stopped early, {missing:,} cells are missing"
    else:
        state = ""
    state += f": {run.stopped}" if run.stopped else ""
    head = (
        f"# {grid.name}: {kinds}{failed_note}\n\n"
        f"{run.before + run.done:,} of {run.total:,} cells, {many(len(rows), 'turn')}, "
        f"{'virtual' if spec.virtual else 'real'} time, seed {grid.seed}{state}."
    )
    parts = [
        head,
        "## Ways",
        _list(ways),
        *_told_the_answers(spec),
        *_impossible(spec),
        *_hops(spec, rows, failures),
        *_judges(spec, rows, failures),
    ]
    if failures:
        sentence = "No sample of a model: they are not scored, and the next run plays them again."
        parts += [
            "## Failed cells",
            sentence,
            _list(failure_lines(failures, axes(chain(rows, failures)))),
        ]
    lost_ways: list[str] = []
    for label, count in unscored(ways, rows, failures).items():
        lost_ways.append(f"{label}: no verdict, {count}")
    if verdicts or (grid.baseline and (failures or missing)):
        parts += [f"## Against {_words(grid.baseline)}", _list([*verdicts, *lost_ways]), str(plan)]
    if plan.warning:
        parts.append(plan.warning)
    if QUALITY in grid.verdicts:
        parts += ["## Against the cards' own thresholds", _list(_standings(spec, rows, ways))]
    text = "\n\n".join(parts) + "\n"
    try:
        (run.folder / REPORT).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(
            f"the report cannot be written to {run.folder}: {error.strerror or error}; the results are kept"
        ) from error
    return text


def compare_ways(
    spec: GridSpec,
    rows: Sequence[Row] | Results,
    plan: Plan | None = None,
    failures: Sequence[Row] = (),
) -> tuple[list[Summary], list[Comparison]]:
    """Every way by every verdict of the grid, and beside the baseline where it has one that was
    played. Without a plan they are those of a first look."""
    plan = plan or first_plan(spec)
    names = spec.grid.verdicts
    differing = axes(chain(rows, failures))
    ways = summarise(tidy(rows, names, failures), differing, clusters=plan.clusters)
    baseline: dict[str, str] = {}
    for axis, name in spec.grid.baseline.items():
        if axis in differing:
            baseline[axis] = name
    has_baseline = any(
        all(row[axis] == name for axis, name in baseline.items()) for row in chain(rows, failures)
    )
    comparable = baseline and has_baseline and len(ways) > len(names)
    if not comparable:
        return ways, []
    verdicts = compare(
        tidy(rows, names, failures),
        baseline,
        differing,
        planned=plan.planned,
        margin=plan.margin,
        clusters=plan.clusters,
    )
    return ways, verdicts


def unscored(
    ways: Iterable[Summary], rows: Sequence[Row] | Results, failures: Sequence[Row]
) -> dict[str, CellCount]:
    """The ways that nothing was scored of, and so have no verdict, with their cells; empty where none failed."""
    if not failures:
        return {}
    counts = count_cells(
        chain(rows, ({**row, "lost": True} for row in failures)), axes(chain(rows, failures))
    )
    compared_ways: set[tuple[str, ...]] = set()
    for names in ways:
        compared_ways.add(tuple(names.way.values()))
    cell_counts: dict[str, CellCount] = {}
    for names, count in sorted(counts.items()):
        if names not in compared_ways:
            cell_counts[" / ".join(names)] = count
    return cell_counts


def axes(rows: Iterable[Row]) -> list[str]:
    """The axes on which the ways of a grid differ; always the model, whose name says what it is."""
    ways = {tuple(row[axis] for axis in AXES) for row in rows}
    texts: list[str] = []
    for index, axis in enumerate(AXES):
        if axis == "model" or len({names[index] for names in ways}) > 1:
            texts.append(axis)
    return texts


def _standings(spec: GridSpec, rows: Results, ways: Iterable[Summary]) -> list[str]:
    """Every vertical's quality against its card's threshold, way by way."""
    thresholds: dict[str, float] = {}
    for card in spec.deck.cards.values():
        if card.eval:
            thresholds[card.id] = card.eval.threshold
    texts: list[str] = []
    for names in (summary.way for summary in ways if summary.scorer == QUALITY):
        for standing in standings(tidy(_rows_of(names, rows), [QUALITY]), thresholds):
            texts.append(f"{' / '.join(names.values())}, {standing}")
    return texts


def _rows_of(names: Mapping[str, str], rows: Iterable[Row]) -> Iterable[Row]:
    return (row for row in rows if all(row[axis] == name for axis, name in names.items()))


def _hops(spec: GridSpec, rows: Results, failures: Sequence[Row]) -> list[str]:
    """The section on calls to peers, where a pattern of the grid may have made some."""
    if not (A2A.name in spec.grid.patterns or spec.own.patterns):
        return []
    lines = hop_lines(spec, rows, axes(chain(rows, failures)))
    if lines:
        return ["## Calls to peers", lines[0], _list(lines[1:])]
    return []


def _told_the_answers(spec: GridSpec) -> list[str]:
    """Says what a simulated model knows, where it stands beside one that does not."""
    kinds = set(spec.kinds.values())
    if "simulated" not in kinds or len(kinds) == 1:
        return []
    return [
        "Simulated models are told whom a case expects and err from there by a law: beside any other "
        "model they are no comparison."
    ]


def _impossible(spec: GridSpec) -> list[str]:
    """Says which faults of the grid its monolith cannot have: it asks nobody whose model could fail."""
    lead = spec.deck.settings.orchestrator
    every = (fault for faults in spec.faults.values() for fault in faults)
    names = dict.fromkeys(
        str(fault) for fault in every if fault.needs_agent and fault.where != lead
    )
    if "monolith" not in spec.grid.patterns or not names:
        return []
    return [
        f"The monolith asks nobody, so no sub-agent fails in it: {', '.join(names)} did not happen there."
    ]


def _judges(spec: GridSpec, rows: Iterable[Row], failures: Iterable[Row]) -> list[str]:
    """Says who judged by what, and what that cost beside the turns."""
    if not spec.grid.judges:
        return []
    sums: Counter[str] = Counter()
    for row in chain(rows, failures):
        sums.update({name: count for name, count in row.get("judges", {}).items() if count})
        sums["turns"] += row["cost"] or 0
    lines: list[str] = []
    for name, judge in spec.grid.judges.items():
        lines.append(
            f"{name}: {judge.model} by {spec.rubrics[name].id} {spec.rubrics[name].version}"
            + ("" if judge.threshold is None else f", passed from {judge.threshold:g}")
        )
    tokens = f"{sums['input_tokens']:,} tokens in and {sums['output_tokens']:,} out"
    dollars = f"${sums['cost']:,.4f} beside ${sums['turns']:,.4f} for the turns, as far as prices are known"
    return [
        "## Judges",
        _list([*lines, f"{many(sums['model_calls'], 'call')}, {tokens}, {dollars}"]),
    ]


def _list(items: Iterable[object]) -> str:
    return "\n".join(f"- {line}" for line in items) or "Nothing was decided."


def _words(names: Mapping[str, str]) -> str:
    return ", ".join(f"{axis} {name}" for axis, name in names.items())
