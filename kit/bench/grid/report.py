"""The report of a grid: every way with its intervals, every verdict beside the baseline, each as one sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path

from kit.bench.grid.comparison import (
    QUALITY,
    Comparison,
    Row,
    Summary,
    comparable,
    is_of,
    summarise,
)
from kit.bench.grid.decision import compare_rows
from kit.bench.grid.failures import (
    CellCount,
    CellEnds,
    failed_words,
    failure_lines,
    read_failures,
    way_name,
    way_of,
)
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.hops import hop_lines
from kit.bench.grid.provenance import plan_of
from kit.bench.grid.results import AXES, Results, tidy
from kit.bench.grid.run import Run
from kit.bench.statistics.verdict import NO_COMPARISON
from kit.bench.systems.disclosure import disclosures
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
    ways, verdicts = compare_run(spec, run.folder)
    by = axes(chain(rows, failures))
    kinds = " and ".join(sorted(set(spec.kinds.values())))
    title = f"# {grid.name}: {kinds}"
    if failures:
        title += f"; {run.failed:,} of {run.total:,} cells failed ({failed_words(failures)})"
    missing = run.total - run.before - run.done - run.failed
    state = ""
    if missing:
        state = f"; stopped early, {missing:,} cells are missing"
    if run.stopped:
        state += f": {run.stopped}"
    clock = "virtual" if spec.virtual else "real"
    played = f"{run.before + run.done:,} of {run.total:,} cells, {many(len(rows), 'turn')}"
    head = f"{title}\n\n{played}, {clock} time, seed {grid.seed}{state}."
    parts = [
        head,
        "## Ways",
        _list(ways),
        *_systems(spec, rows),
        *_told_the_answers(spec),
        *caveat_lines(rows, by),
        *_hops(spec, rows, by),
        *_judges(spec, rows, failures),
    ]
    if failures:
        sentence = "No sample of a model: they are not scored, and the next run plays them again."
        lines = failure_lines(failures, by)
        parts += ["## Failed cells", sentence, _list(lines)]
    verdict_lines = list(map(str, verdicts))
    verdict_lines += uncompared(ways, verdicts, rows, failures, grid.baseline, grid.verdicts)
    if verdict_lines or (grid.baseline and (failures or missing)):
        heading = "## Without a verdict"
        if grid.baseline:
            heading = f"## Against {', '.join(map(' '.join, grid.baseline.items()))}"
        parts += [heading, _list(verdict_lines), str(plan)]
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


def compare_run(spec: GridSpec, folder: Path) -> tuple[list[Summary], list[Comparison]]:
    """Every way by every verdict of the grid, of all that it has left in its folder, and beside the
    baseline where it has one that was played."""
    grid = spec.grid
    rows = Results(folder)
    failures = read_failures(folder)
    by = axes(chain(rows, failures))
    plan = plan_of(spec, folder)
    return compare_rows(rows, failures, by, grid.verdicts, grid.baseline, plan)


def uncompared(
    ways: Sequence[Summary],
    comparisons: Sequence[Comparison],
    rows: Sequence[Row] | Results,
    failures: Sequence[Row],
    baseline: Mapping[str, str],
    scorers: Sequence[str],
) -> list[str]:
    """The comparisons that were asked for and that cannot be made, a sentence each: of ways that nothing was scored of,
    and by what no case has a value of on both sides."""
    lines = _unscored(ways, rows, failures)
    if not baseline:
        return lines
    names = {tuple(summary.way.values()): summary.way for summary in ways}.values()
    baseline = {axis: name for axis, name in baseline.items() if any(axis in way for way in names)}
    if names and not any(is_of(way, baseline) for way in names):
        lines.append(f"no verdict by {', '.join(scorers)}, for nothing of the baseline was scored")
        return lines
    compared = [(verdict.scorer, verdict.baseline, verdict.way) for verdict in comparisons]
    for (base, way), scorer in product(comparable(list(names), baseline), scorers):
        if (scorer, base, way) not in compared:
            name = way_name(way.values())
            lines.append(f"{name}, {scorer}: no verdict, for no case has a value on both sides")
    return lines


def _unscored(
    ways: Sequence[Summary], rows: Sequence[Row] | Results, failures: Sequence[Row]
) -> list[str]:
    """The ways that nothing was scored of, and why; such a way has no line among the others."""
    by = list(ways[0].way) if ways else axes(chain(rows, failures))
    scored_ways = {tuple(summary.way.values()) for summary in ways}
    silent_rows = (row for row in chain(rows, failures) if way_of(row, by) not in scored_ways)
    lines: list[str] = []
    for way, rows_of_way in rows_by_way(silent_rows, by).items():
        ends: CellEnds = {}
        voids: set[str] = set()
        for row in rows_of_way:
            ends[row["case"], row["repeat"]] = "error_class" in row
            if "void" in row:
                voids.add(row["void"])
        reasons = sorted(voids)
        count = CellCount.of(ends)
        if count.failed:
            reasons.insert(0, str(count))
        why = "; ".join(reasons) or "no scorer decided anything of it"
        lines.append(f"{way}: no verdict, {why}")
    return lines


def axes(rows: Iterable[Row]) -> list[str]:
    """The axes on which the ways of a grid differ; always the model, whose name says what it is."""
    differing = differing_axes(rows)
    return [axis for axis in AXES if axis == "model" or axis in differing]


def differing_axes(rows: Iterable[Row]) -> tuple[str, ...]:
    """The axes on which the ways of a grid differ, the model's only where it does."""
    names: dict[str, set[str]] = {axis: set() for axis in AXES}
    for row in rows:
        for axis, seen_names in names.items():
            seen_names.add(row[axis])
    return tuple(axis for axis in AXES if len(names[axis]) > 1)


def rows_by_way(rows: Iterable[Row], by: Sequence[str]) -> dict[str, list[Row]]:
    """The name of each way -> its rows, in order of the names."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(way_name(way_of(row, by)), []).append(row)
    return dict(sorted(groups.items()))


def _standings(spec: GridSpec, rows: Results, ways: Iterable[Summary]) -> list[str]:
    """Every vertical's quality against its card's threshold, way by way; a row's `domain` is its vertical.

    The figure as measured decides, as for a promotion; the interval says how sure that is.
    """
    texts: list[str] = []
    for summary in ways:
        if summary.scorer != QUALITY:
            continue
        rows_of_way = filter(partial(is_of, wanted=summary.way), rows)
        for vertical in summarise(tidy(rows_of_way, [QUALITY]), ("domain",)):
            card = spec.deck.cards.get(vertical.way["domain"])
            if card is None or card.eval is None:
                continue
            threshold = card.eval.threshold
            verdict = "reached" if vertical.estimate.value >= threshold else "missed"
            if not vertical.estimate.excludes(threshold):
                verdict += " (not for certain)"
            texts.append(f"{way_name(summary.way.values())}, {vertical}, {threshold:g} {verdict}")
    return texts


def _hops(spec: GridSpec, rows: Results, by: Sequence[str]) -> list[str]:
    """The section on calls to peers, where a pattern of the grid may have made some."""
    if not (A2A.name in spec.grid.patterns or spec.own.patterns):
        return []
    lines = hop_lines(spec, rows, by)
    if lines:
        return ["## Calls to peers", lines[0], _list(lines[1:])]
    return []


def _systems(spec: GridSpec, rows: Results) -> list[str]:
    """Says what whole systems told of themselves, where the grid has any."""
    if not spec.systems:
        return []
    return ["## Systems", _list(disclosures(spec.systems.keys(), rows))]


def _told_the_answers(spec: GridSpec) -> list[str]:
    """Says what a simulated model knows, where it stands beside one that does not."""
    kinds = set(spec.kinds.values())
    if "simulated" not in kinds or len(kinds) == 1:
        return []
    return [NO_COMPARISON]


def caveat_lines(rows: Iterable[Row], by: Sequence[str]) -> list[str]:
    """Says of each way in how many turns its tokens and dollars are no bill, and its seconds not the model's own."""
    lines: list[str] = []
    for way, rows_of_way in rows_by_way(rows, by).items():
        turns = many(len(rows_of_way), "turn")
        # Of a call that was cut off every count is an estimate; what stands in for a model has no bill anyway.
        told = [row for row in rows_of_way if row["kind"] == "measured"]
        count = sum(row.get("estimated", False) for row in told)
        if count:
            lines.append(
                f"{way}: in {count:,} of {turns} the model did not tell what it used. Tokens "
                "and dollars are estimated there from the length of the texts, and so is every comparison by them."
            )
        pauses = [row["paused"] for row in rows_of_way if "paused" in row]
        if pauses:
            lines.append(
                f"{way}: in {len(pauses):,} of {turns} a model call waited because its endpoint asked for a pause, "
                f"failed at first, or let no more through: {sum(pauses):,.1f} s in all. These seconds are in "
                "`seconds`, and so in every comparison by it."
            )
    return lines


def _judges(spec: GridSpec, rows: Iterable[Row], failures: Iterable[Row]) -> list[str]:
    """Says who judged by what, and what that cost beside the turns."""
    if not spec.grid.judges:
        return []
    sums: Counter[str] = Counter()
    for row in chain(rows, failures):
        for name, count in row.get("judges", {}).items():
            # Of a model without a price the cost is None.
            sums[name] += count or 0
        sums["turns"] += row["cost"] or 0
    lines: list[str] = []
    for name, judge in spec.grid.judges.items():
        rubric = spec.rubrics[name]
        line = f"{name}: {judge.model} by {rubric.id} {rubric.version}"
        if judge.threshold is not None:
            line += f", passed from {judge.threshold:g}"
        lines.append(line)
    tokens = f"{sums['input_tokens']:,} tokens in and {sums['output_tokens']:,} out"
    dollars = f"${sums['cost']:,.4f} beside ${sums['turns']:,.4f} for the turns, as far as prices are known"
    lines.append(f"{many(sums['model_calls'], 'call')}, {tokens}, {dollars}")
    return ["## Judges", _list(lines)]


def _list(items: Iterable[object]) -> str:
    return "\n".join(f"- {line}" for line in items) or "Nothing was decided."
