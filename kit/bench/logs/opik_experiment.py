"""Reads experiments of Opik: what `opik export` writes of one, or the list of
`experiment.get_items()` as JSON.

Items of one dataset item are its trials. Opik has no errored items: a task that raises ends the run.
An output with a text under `error` counts as one here; a metric that failed left no score, and so
decides nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from kit.bench.identity import digest
from kit.bench.logs.log import Log, LoggedSample, cluster_in, number_of, whole

Fields = Mapping[str, Any]


def read_opik(content: Fields | Sequence[Fields], path: Path, cluster: str | None = None) -> Log:
    """The samples of an experiment. `cluster` is the field of a dataset item that names its cluster.
    Raises DataError for what Opik did not write."""
    with whole(path, "experiment of Opik"):
        name = path.stem
        items = content
        if isinstance(content, Mapping):
            name = str(content["experiment"]["name"])
            items = content["items"]
        trials: Counter[str] = Counter()
        samples: list[LoggedSample] = []
        for item in cast("Sequence[Fields]", items):
            sample = str(item["dataset_item_id"])
            trials[sample] += 1
            samples.append(_sample(item, sample, trials[sample], cluster))
    return Log(name=name, tool="Opik", samples=tuple(samples))


def _sample(item: Fields, sample: str, trial: int, cluster: str | None) -> LoggedSample:
    output = item.get("evaluation_task_output")
    error: str | None = None
    if isinstance(output, Mapping):
        error = cast("Fields", output).get("error")
    scores: dict[str, float | None] = {}
    for score in item["feedback_scores"]:
        scores[score["name"]] = number_of(score["value"])
    for assertion in item.get("assertion_results") or ():
        scores[assertion["value"]] = number_of(assertion["passed"])
    question = item.get("dataset_item_data")
    return LoggedSample(
        sample=sample,
        epoch=trial,
        scores=scores,
        error=error,
        cluster=cluster_in(question, cluster),
        question=digest(question),
    )
