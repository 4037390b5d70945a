"""Finds out which tool wrote a file, and reads it."""

from pathlib import Path
from typing import Any, cast

from kit.bench.json_lines import read_text
from kit.bench.logs.grid_run import read_grid_run
from kit.bench.logs.inspect_log import read_inspect
from kit.bench.logs.log import Log
from kit.bench.logs.opik_experiment import read_opik
from kit.bench.logs.promptfoo_results import read_promptfoo
from kit.bench.logs.pydantic_evals_report import read_pydantic_evals
from kit.bench.logs.table import read_table
from kit.core.errors import DataError
from kit.core.limits import read_json

FORMATS = (
    "a log of Inspect (.eval or .json), a report of pydantic-evals, results of promptfoo, "
    "an experiment of Opik (JSON), a table (.csv or .jsonl), or the folder of a grid's run"
)


def read_log(reference: str, cluster: str | None = None) -> Log:
    """The log that `FILE` or `FILE#SYSTEM` names. `cluster` is the field of a sample's metadata, or
    the column, that names its cluster. Raises DataError for a file that cannot be read, for one
    of several systems of which none is named, and where no sample has that field."""
    name, _, system = reference.partition("#")
    log = _read(Path(name), system, cluster)
    if cluster is not None and all(sample.cluster is None for sample in log.samples):
        # Taken as independent, its samples would make every interval narrower than it is.
        raise DataError(
            f"no sample of {reference} has a field {cluster!r} that names its cluster: is it spelt so there?"
        )
    return log


def _read(path: Path, system: str, cluster: str | None) -> Log:
    if path.is_dir():
        return read_grid_run(path, system or None)
    if path.suffix == ".eval":
        return read_inspect(path, cluster)
    if path.suffix in (".csv", ".jsonl"):
        return read_table(path, system or None, cluster)
    try:
        content: Any = read_json(read_text(path))
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); a log is {FORMATS}") from error
    if isinstance(content, list):
        return read_opik(cast("list[Any]", content), path, cluster)
    match content:
        case {"eval": _, "samples": _}:
            return read_inspect(path, cluster)
        case {"cases": _, "name": _}:
            return read_pydantic_evals(cast("dict[str, Any]", content), path, cluster)
        case {"results": {"results": _}}:
            return read_promptfoo(cast("dict[str, Any]", content), path, system or None, cluster)
        case {"experiment": _, "items": _}:
            return read_opik(cast("dict[str, Any]", content), path, cluster)
        case _:
            raise DataError(f"{path} is of no tool that is known here; a log is {FORMATS}")
