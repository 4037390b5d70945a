"""Reads logs of Inspect: `.eval`, a zip of JSON files, and `.json`. Inspect need not be installed.

Values become numbers as Inspect's own `value_to_float` makes them: C is 1, P is 0.5, I and N are 0;
yes and true are 1, no and false are 0; digits are their number. Where Inspect warns and takes 0, the
score counts as one that is no number.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile, ZipInfo

from kit.bench.identity import digest
from kit.bench.logs.log import Log, LoggedSample, cluster_in, number_in, number_of, whole
from kit.core.display.count import many
from kit.core.extra import require
from kit.core.limits import read_json

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
ZSTANDARD = 93
"""How newer versions of Inspect pack a file of their zip. Python unpacks it from 3.14 on."""
_LOCAL_HEADER = 30
"""Bytes of a file's header in a zip before its name and its extra field, whose lengths are its last four."""


def read_inspect(path: Path, cluster: str | None = None) -> Log:
    """The samples of a log. `cluster` is the field of a sample's metadata that names its cluster.
    Raises DataError for a file that Inspect did not write."""
    with whole(
        path,
        "log of Inspect (`inspect log recover` completes that of a run that was killed)",
    ):
        if path.suffix == ".json":
            header: Any = read_json(path.read_text(encoding="utf-8"))
            raw_samples = list(header.get("samples") or ())
        else:
            with ZipFile(path) as archive:
                header = _json(archive, path, archive.getinfo("header.json"))
                raw_samples = list(_samples(archive, path))
        evaluation = header["eval"]
        samples: list[LoggedSample] = []
        not_numeric: dict[str, str] = {}
        for raw in raw_samples:
            samples.append(_sample(raw, not_numeric, cluster))
        return Log(
            name=str(evaluation["task"]),
            tool=f"Inspect {evaluation['packages'].get('inspect_ai', '')}".strip(),
            samples=tuple(sorted(samples, key=_order)),
            scorers=_scorers(evaluation),
            not_numeric=not_numeric,
            early_end=_early_end(header, len(samples)),
        )


def _early_end(header: Mapping[str, Any], count: int) -> str:
    """How a run ended that was stopped, broke, or has not ended; empty for any other."""
    status = header.get("status", "success")
    if status == "success":
        return ""
    results: Mapping[str, Any] = header.get("results") or {}
    total = results.get("total_samples")
    if total is None or total <= count:
        return f"its status is {status!r}"
    return f"its status is {status!r}, with {count:,} of {many(total, 'sample')}"


def _order(sample: LoggedSample) -> tuple[str, int]:
    return sample.sample, sample.epoch


def _samples(archive: ZipFile, path: Path) -> Iterator[Any]:
    for file in archive.infolist():
        if file.filename.startswith("samples/"):
            yield _json(archive, path, file)


def _json(archive: ZipFile, path: Path, file: ZipInfo) -> Any:
    if file.compress_type != ZSTANDARD:
        return read_json(archive.read(file).decode())
    require("bench", "zstandard")
    import zstandard

    with path.open("rb") as packed:
        packed.seek(file.header_offset)
        header = packed.read(_LOCAL_HEADER)
        name_length, extra_length = struct.unpack("<HH", header[-4:])
        packed.seek(name_length + extra_length, 1)
        content = packed.read(file.compress_size)
    try:
        text = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    except zstandard.ZstdError as error:
        raise ValueError(f"{file.filename}: {error}") from error
    if zlib.crc32(text) != file.CRC:
        raise ValueError(f"{file.filename} is damaged")
    return read_json(text.decode())


def _sample(raw: Any, not_numeric: dict[str, str], cluster: str | None) -> LoggedSample:
    scores: dict[str, float | None] = {}
    raw_scores: Mapping[str, Any] = raw.get("scores") or {}
    for scorer, score in raw_scores.items():
        for name, value in _values(scorer, score["value"]):
            scores[name] = _number(value)
            if scores[name] is None and not _is_unscored(value):
                not_numeric.setdefault(name, repr(value)[:60])
    error = raw.get("error")
    limit = raw.get("limit")
    message: str | None = None
    if error is not None:
        message = str(error["message"])
    elif limit is not None and not scores:
        # A limit ends a sample, and its scorer then judges what there is; without a score it is lost.
        message = f"limit: {limit['type']}"
    return LoggedSample(
        sample=str(raw["id"]),
        epoch=int(raw["epoch"]),
        scores=scores,
        error=message,
        seconds=number_of(raw.get("total_time")),
        cost=_cost(raw.get("model_usage")),
        cluster=cluster_in(raw.get("metadata"), cluster),
        question=digest(_without_ids(raw["input"]), raw["target"]),
    )


def _without_ids(question: Any) -> Any:
    """A question of messages without their ids, which Inspect draws anew in every run."""
    if not isinstance(question, list):
        return question
    messages: list[Any] = []
    for message in cast("list[dict[str, Any]]", question):
        messages.append({name: value for name, value in message.items() if name != "id"})
    return messages


def _values(scorer: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A score of several values is a score for each of them, as `scorer/name`."""
    if not isinstance(value, Mapping):
        yield scorer, value
        return
    for name, part in cast("Mapping[str, Any]", value).items():
        yield f"{scorer}/{name}", part


def _number(value: Any) -> float | None:
    if not isinstance(value, str):
        return number_of(value)
    if value in LETTERS:
        return LETTERS[value]
    return number_in(value)


def _is_unscored(value: Any) -> bool:
    """Inspect writes NaN where a scorer gave no verdict."""
    return value is None or (isinstance(value, float) and value != value)


def _cost(usage: Mapping[str, Any] | None) -> float | None:
    """Dollars over all models of a sample; None where Inspect knew the price of none, or not of each."""
    if not usage:
        return None
    total = 0.0
    for model in usage.values():
        cost = number_of(model.get("total_cost"))
        if cost is None:
            return None
        total += cost
    return total


def _scorers(evaluation: Any) -> dict[str, str]:
    scorers: dict[str, str] = {}
    for scorer in evaluation.get("scorers") or ():
        scorers[scorer["name"]] = digest(scorer.get("options"))
    return scorers
