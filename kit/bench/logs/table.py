"""Reads tables: CSV with a head, or JSON lines. Wide, with a column for each score, or long, with
`score` and `value`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kit.bench.identity import digest
from kit.bench.json_lines import first_fault, read_objects
from kit.bench.logs.log import Log, LoggedSample, choose_system, number_in, number_of
from kit.bench.systems.case_table import csv_rows
from kit.core.errors import DataError

SAMPLE = ("sample", "id", "case")
EPOCH = ("epoch", "repeat")
QUESTION = ("input", "message", "question")
EXPECTED = ("target", "expected", "expected_text")
OTHER = ("system", "model", "error", "cost", "seconds", "cluster")
NOT_SCORES = frozenset((*SAMPLE, *EPOCH, *QUESTION, *EXPECTED, *OTHER))
_NO_ERROR = ("", "none", "null", "nan")
"""What a column of errors has, beside false, no and 0, where there was none."""

Fields = Mapping[str, Any]


def read_table(path: Path, system: str | None = None, cluster: str | None = None) -> Log:
    """The samples of a table. `system` is the value of its column of that name, where it has several;
    `cluster` the name of its column of clusters, if that is another. Raises DataError, with file and
    line."""
    if path.suffix == ".csv":
        rows = list(csv_rows(path, "sample", lambda names, where: None))
    else:
        rows = list(read_objects(path, "sample"))
    systems = {text for _, fields in rows if (text := _text(fields, "system")) is not None}
    name = path.stem
    if systems:
        name = choose_system(path, systems, system)
        rows = [(where, fields) for where, fields in rows if _text(fields, "system") == name]
    elif system is not None:
        raise DataError(f"{path} has no column `system`, so there is no {system!r} in it")
    samples: dict[tuple[str, int], LoggedSample] = {}
    not_numeric: dict[str, str] = {}
    for where, fields in rows:
        sample = _sample(fields, where, not_numeric, cluster or "cluster")
        key = (sample.sample, sample.epoch)
        earlier = samples.get(key)
        if earlier is not None:
            sample = _join(earlier, sample, where)
        samples[key] = sample
    return Log(name=name, tool="a table", samples=tuple(samples.values()), not_numeric=not_numeric)


def _sample(fields: Fields, where: str, not_numeric: dict[str, str], cluster: str) -> LoggedSample:
    name = _first(fields, SAMPLE)
    if name is None:
        raise DataError(f"{where}: no sample is named; give it a column `sample`")
    epoch = _first(fields, EPOCH)
    error = _error(fields.get("error"))
    scores: dict[str, float | None] = {}
    for score, value in _scores(fields, where, cluster):
        number, is_number = _number(value)
        scores[score] = number
        if not is_number and error is None:
            not_numeric.setdefault(score, repr(value)[:60])
    try:
        return LoggedSample(
            sample=str(name),
            epoch=1 if epoch is None else int(epoch),
            scores=scores,
            error=error,
            seconds=_number(fields.get("seconds"))[0],
            cost=_number(fields.get("cost"))[0],
            cluster=_text(fields, cluster),
            question=_question(fields),
        )
    except ValidationError as error:
        raise DataError(f"{where}: not a sample; {first_fault(error)}") from error
    except ValueError as error:
        raise DataError(f"{where}: not a sample ({error})") from error


def _scores(fields: Fields, where: str, cluster: str) -> Iterator[tuple[str, Any]]:
    if "score" in fields and "value" in fields:
        score = _text(fields, "score")
        if score is not None:
            yield score, fields["value"]
        elif _text(fields, "value") is not None:
            raise DataError(f"{where}: a value without the name of its score")
        # A sample that errored has neither.
        return
    for name, value in fields.items():
        if name not in NOT_SCORES and name != cluster:
            yield name, value


def _number(value: Any) -> tuple[float | None, bool]:
    """The number of a field, and whether it may be one: an empty field is a score that decided nothing."""
    if value is None or value == "":
        return None, True
    number = number_in(value.strip()) if isinstance(value, str) else number_of(value)
    return number, number is not None


def _error(value: Any) -> str | None:
    """Why a sample was not answered; None for an empty field and for words that say it was."""
    if not value:
        return None
    text = str(value)
    if text.strip().lower() in _NO_ERROR or _number(text)[0] == 0:
        return None
    return text


def _text(fields: Fields, name: str) -> str | None:
    value = _first(fields, (name,))
    if value is None:
        return None
    return str(value)


def _first(fields: Fields, names: tuple[str, ...]) -> Any:
    for name in names:
        if fields.get(name) not in (None, ""):
            return fields[name]
    return None


def _question(fields: Fields) -> str:
    question = _first(fields, QUESTION)
    if question is None:
        return ""
    return digest(question, _first(fields, EXPECTED))


def _join(earlier: LoggedSample, later: LoggedSample, where: str) -> LoggedSample:
    """One sample of two lines of a long table, which have a score each."""
    twice = sorted(earlier.scores.keys() & later.scores.keys())
    if twice:
        raise DataError(
            f"{where}: sample {later.sample!r} has {twice[0]!r} already; number its repeats in a "
            "column `epoch`"
        )
    fields = {**later.model_dump(), "scores": {**earlier.scores, **later.scores}}
    for name, value in fields.items():
        if value in (None, ""):
            # What a sample has in common need not stand on each of its lines.
            fields[name] = getattr(earlier, name)
    return later.replace(**fields)
