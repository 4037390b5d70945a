"""The verdict on two logs of the same samples: paired by sample, repeats averaged first, corrected
for the number of scores."""

from collections.abc import Mapping, Sequence
from typing import Any

from kit.bench.grid.comparison import Comparison, Summary, compare, summarise
from kit.bench.grid.failures import CellCount, obstacle
from kit.bench.grid.results import Row
from kit.bench.logs.log import MEASURED, Log, LoggedSample
from kit.bench.statistics.verdict import NO_COMPARISON, Margin, check_margin
from kit.core.display.count import many
from kit.core.errors import DataError, nearest
from kit.core.value import Value

Scale = tuple[float, float]
"""The least and the greatest that a score can be."""
UNIT: Scale = (0.0, 1.0)
_BY = ("log",)
_OTHER_CLOCK = "Seconds of virtual and of real time are no comparison."
_OTHER_SUB_AGENTS = (
    "The sub-agents were played otherwise: tokens, dollars and seconds are no comparison."
)


class LogVerdict(Value):
    """What two logs say beside each other."""

    first: str
    """The name of the log that the other is compared with."""
    second: str
    logs: tuple[str, ...]
    """Each log in a sentence: tool, samples, epochs, errors."""
    summaries: tuple[Summary, ...]
    """Each log by each score: of the completed samples, with the bounds that errors leave."""
    comparisons: tuple[Comparison, ...]
    """Errors are no samples here. What they leave open is taken either way, and where there are too
    many of them there is no verdict."""
    with_errors_wrong: tuple[Comparison, ...] = ()
    """The same had every errored sample been answered wrong; empty without errors, and for what is no score."""
    uncompared: tuple[str, ...] = ()
    """Each score that cannot be compared, in a sentence that says why there is no verdict."""

    def __str__(self) -> str:
        lines = [*self.logs, *map(str, self.summaries)]
        for comparison in self.comparisons:
            first, second = comparison.ahead
            counts = (
                f"{self.second} is ahead on {many(second, 'sample')}, {self.first} on {first:,}"
            )
            lines.append(f"{comparison} ({counts})")
        lines += self.uncompared
        for comparison in self.with_errors_wrong:
            lines.append(f"with every error counted as wrong, {comparison}")
        return "\n".join(lines)


def compare_logs(
    first: Log,
    second: Log,
    scores: Sequence[str] = (),
    *,
    margin: Margin | None = None,
    scales: Mapping[str, Scale] | None = None,
    lower: Sequence[str] = (),
    any_look: bool = False,
) -> LogVerdict:
    """The second log beside the first, by these scores or measures, else by what the run of the first is compared by,
    else by every score.

    `margin`: the difference that is too small to matter; without it what the run of the first has
    stated. `scales`: the least and the greatest value of scores that are not from 0 to 1; they are
    brought to that. `lower`: scores of which less is better. `any_look`: the logs were looked at
    before they were this long, so the verdict has to hold however often one looks; so it has to for
    a run that was stopped. Raises DataError for logs of other samples or by other scorers, and for a
    score that is no number or is not there.
    """
    _check_samples(first, second)
    names = _scores_of(first, second, scores or _own_verdicts(first))
    check_margin(margin, names)
    if margin is None:
        margin = first.margin
    for name in (*lower, *(scales or {})):
        _check_score(name, first)
        _check_score(name, second)
    first_name, second_name = _names(first, second)
    pair = {first_name: first, second_name: second}
    values = _values(pair, names, scales or {})
    clusters = _clusters(first, second)
    # Who stops a run has looked at it.
    any_look = any_look or bool(first.early_end or second.early_end)
    keys = {(sample.sample, sample.epoch) for sample in first.samples}
    shared = keys & {(sample.sample, sample.epoch) for sample in second.samples}

    def settle(rows: Sequence[Row]) -> tuple[Comparison, ...]:
        comparisons = compare(
            rows,
            {"log": first_name},
            _BY,
            planned=None if any_look else len(shared),
            margin=margin,
            clusters=clusters,
            lower=lower,
        )
        return tuple(comparisons)

    counted_wrong: tuple[Comparison, ...] = ()
    if any("lost" in row and row["scorer"] not in MEASURED for row in values):
        counted_wrong = settle(_with_errors_wrong(values, lower))
    comparisons = settle(values)
    compared = {comparison.scorer for comparison in comparisons}
    reason = obstacle(_count(first), _count(second)) or "no sample has a value on both sides"
    uncompared = [f"{name}: no verdict, {reason}" for name in names if name not in compared]
    if not scores:
        uncompared += _left_out(first)
    sentences = [_sentence(name, log) for name, log in pair.items()]
    return LogVerdict(
        first=first_name,
        second=second_name,
        logs=(*sentences, *_no_comparisons(first, second)),
        summaries=tuple(summarise(values, _BY, clusters=clusters)),
        comparisons=comparisons,
        with_errors_wrong=counted_wrong,
        uncompared=tuple(uncompared),
    )


def _own_verdicts(log: Log) -> list[str]:
    """What its run is compared by, as far as a log holds it."""
    return [name for name in log.verdicts if name in MEASURED or name in log.scores]


def _left_out(log: Log) -> list[str]:
    """What its run is compared by beside that, a sentence each."""
    held = _own_verdicts(log)
    left_out = [name for name in log.verdicts if name not in held]
    return [f"{name}: no verdict, it is compared within one grid alone" for name in left_out]


def _no_comparisons(first: Log, second: Log) -> list[str]:
    """Says what of two logs is no comparison, a sentence each."""
    sentences: list[str] = []
    if ("simulated" in first.tool) != ("simulated" in second.tool):
        sentences.append(NO_COMPARISON)
    if first.is_virtual != second.is_virtual:
        sentences.append(_OTHER_CLOCK)
    is_known = first.sub_agents and second.sub_agents
    if is_known and first.sub_agents != second.sub_agents:
        sentences.append(_OTHER_SUB_AGENTS)
    return sentences


def _count(log: Log) -> CellCount:
    errors = sum(sample.error is not None for sample in log.samples)
    return CellCount(total=len(log.samples), failed=errors)


def _names(first: Log, second: Log) -> tuple[str, str]:
    if first.name != second.name:
        return first.name, second.name
    return f"{first.name} (first)", f"{second.name} (second)"


def _sentence(name: str, log: Log) -> str:
    samples = {sample.sample for sample in log.samples}
    text = f"{name}: {log.tool}, {many(len(samples), 'sample')}"
    if len(log.samples) > len(samples):
        text += f" played {many(len(log.samples), 'time')} in all"
    errors = [sample for sample in log.samples if sample.error is not None]
    if errors:
        text += f"; {many(len(errors), 'error')}, such as {str(errors[0].error)[:120]!r}"
    if log.early_end:
        text += f"; {log.early_end}, so a verdict has to hold however often one looks"
    return text


def _check_samples(first: Log, second: Log) -> None:
    questions = _questions(first)
    other_questions = _questions(second)
    odd = sorted(questions.keys() ^ other_questions.keys())
    if odd:
        count = len(questions.keys() & other_questions.keys())
        raise DataError(
            f"{first.name} and {second.name} are not logs of the same samples: {odd[0]!r} is in one "
            f"of them alone, {count:,} are in both; play both over the same samples"
        )
    if not questions:
        raise DataError(f"{first.name} holds no sample")
    if first.tool.split()[0] != second.tool.split()[0]:
        # Each tool writes down a question in its own way, so only the ids can be compared.
        return
    for name, question in questions.items():
        if question and other_questions[name] and question != other_questions[name]:
            raise DataError(
                f"sample {name!r} asks or expects something else in {second.name} than in "
                f"{first.name}: a verdict needs the same samples on both sides"
            )


def _questions(log: Log) -> dict[str, str]:
    return {sample.sample: sample.question for sample in log.samples}


def _scores_of(first: Log, second: Log, wanted: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(wanted))
    if not names:
        odd = sorted(set(first.scores) ^ set(second.scores))
        for name in odd:
            _check_number(name, first)
            _check_number(name, second)
        if odd:
            raise DataError(
                f"{first.name} and {second.name} were scored by other scorers, {first.scores} and "
                f"{second.scores}: name those that both have with --by"
            )
        names = first.scores
    if not names:
        raise DataError(f"{first.name} holds no score that is a number")
    for name in names:
        for log in (first, second):
            _check_score(name, log)
        before = first.scorers.get(name.partition("/")[0], "")
        after = second.scorers.get(name.partition("/")[0], "")
        if before and after and before != after:
            raise DataError(
                f"{name} was scored by another set-up in {second.name} than in {first.name}: score "
                "both by the same one"
            )
    return names


def _check_score(name: str, log: Log) -> None:
    _check_number(name, log)
    if name in MEASURED or name in log.scores:
        return
    raise DataError(f"{log.name} has no score {name!r}: {nearest(name, log.scores)}")


def _check_number(name: str, log: Log) -> None:
    if name in log.not_numeric:
        raise DataError(
            f"{name} is no number in {log.name}: it is {log.not_numeric[name]} at least once"
        )


def _values(
    pair: Mapping[str, Log], names: Sequence[str], scales: Mapping[str, Scale]
) -> list[dict[str, Any]]:
    """A row for each sample and score, as `compare` takes them; `lost` where the sample errored."""
    rows: list[dict[str, Any]] = []
    for log_name, log in pair.items():
        for sample in log.samples:
            for name in names:
                row: dict[str, Any] = {
                    "log": log_name,
                    "case": sample.sample,
                    "repeat": sample.epoch,
                    "scorer": name,
                    "value": _scaled(sample, name, scales.get(name, UNIT), log.name),
                }
                if sample.error is not None:
                    row["value"] = None
                    row["lost"] = True
                rows.append(row)
    return rows


def _scaled(sample: LoggedSample, name: str, scale: Scale, log: str) -> float | None:
    value = sample.value(name)
    if value is None or name in MEASURED:
        return value
    least, greatest = scale
    if not least <= value <= greatest:
        raise DataError(
            f"{name} is {value:g} for sample {sample.sample!r} of {log}, outside of {least:g} to "
            f"{greatest:g}: name its scale, such as --scale {name}=1:5"
        )
    return (value - least) / (greatest - least)


def _with_errors_wrong(rows: Sequence[Row], lower: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of scores, each errored sample with the worst there is."""
    counted_rows: list[dict[str, Any]] = []
    for row in rows:
        if row["scorer"] in MEASURED:
            continue
        counted_rows.append(dict(row))
        if counted_rows[-1].pop("lost", False):
            counted_rows[-1]["value"] = 1.0 if row["scorer"] in lower else 0.0
    return counted_rows


def _clusters(first: Log, second: Log) -> dict[str, str]:
    clusters: dict[str, str] = {}
    for sample in (*first.samples, *second.samples):
        if sample.cluster is None:
            continue
        if clusters.setdefault(sample.sample, sample.cluster) != sample.cluster:
            raise DataError(
                f"sample {sample.sample!r} is in two clusters, {clusters[sample.sample]!r} and "
                f"{sample.cluster!r}"
            )
    return clusters
