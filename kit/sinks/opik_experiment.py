"""Sends an experiment to Opik through its own SDK: a data set, what was played on it, and scores on
the traces of that."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kit.core.record import TurnRecord
from kit.core.trace import Trace
from kit.sinks.opik import OpikSink, uuid7

if TYPE_CHECKING:
    from opik.types import BatchFeedbackScoreDict

BATCH = 500
"""Experiment items of one request."""
BORN = 1767225600.0
"""A moment for the ids of items, which have none of their own: the start of 2026."""


@dataclass(frozen=True)
class ScoredTurn:
    """A turn that was played, the item it was played on, and its scores by name."""

    item: str
    turn: TurnRecord
    trace: Trace
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Experiment:
    """One way of doing things, tried on a data set."""

    name: str
    metadata: Mapping[str, Any]
    tags: Sequence[str]
    """Its own and those of its traces."""
    results: Iterable[ScoredTurn]
    """Read once."""


def send_experiments(
    sink: OpikSink,
    dataset: str,
    items: Mapping[str, Mapping[str, Any]],
    experiments: Iterable[Experiment],
) -> tuple[int, str]:
    """Sends all of it, and returns how many turns arrived and the page that sets the experiments
    side by side.

    Items are known by their names, traces by their turns, an experiment by its name and its first
    turn: sending it all again changes what is there and adds nothing. Waits until the server has
    it; raises whatever the SDK does.
    """
    client = sink.client
    opik_dataset = client.get_or_create_dataset(dataset)
    ids: dict[str, str] = {}
    for name in items:
        ids[name] = uuid7(BORN, f"{dataset}/{name}")
    # By id, not by content: an item that changed is to be changed, not to stand there twice.
    opik_dataset.insert(
        [{"id": ids[name], **content} for name, content in items.items()],
        num_threads=1,
        deduplication=False,
    )
    total = 0
    experiment_ids: list[str] = []
    for experiment in experiments:
        count, experiment_id = _send(sink, dataset, ids, experiment)
        total += count
        if count:
            experiment_ids.append(experiment_id)
    page = client.config.url_override.rstrip("/").removesuffix("/api")
    query = quote(json.dumps(experiment_ids))
    return (
        total,
        f"{page}/{client.config.workspace}/experiments/{opik_dataset.id}/compare?experiments={query}",
    )


def _send(
    sink: OpikSink, dataset: str, ids: Mapping[str, str], experiment: Experiment
) -> tuple[int, str]:
    scores: list[BatchFeedbackScoreDict] = []
    links: list[tuple[str, str]] = []
    first: tuple[float, str] | None = None
    for result in experiment.results:
        trace_id = sink.send(result.turn, result.trace, experiment.tags)
        links.append((ids[result.item], trace_id))
        for name, value in result.scores.items():
            scores.append({"id": trace_id, "name": name, "value": value})
        began = (result.trace.started_at, result.turn.id)
        first = min(first or began, began)
    if first is None:
        return 0, ""
    if scores:
        sink.client.log_traces_feedback_scores(scores)
    if not sink.client.flush(timeout=60 + len(links) // 10):
        raise TimeoutError(f"{len(links)} traces did not all arrive")
    experiment_id = uuid7(first[0], f"{experiment.name}/{first[1]}")
    _describe(sink, dataset, experiment_id, experiment)
    _link(sink, experiment_id, links)
    return len(links), experiment_id


def _describe(sink: OpikSink, dataset: str, experiment_id: str, experiment: Experiment) -> None:
    from opik.exceptions import ExperimentNotFound

    client = sink.client
    config = dict(experiment.metadata)
    try:
        client.get_experiment_by_id(experiment_id)
    except ExperimentNotFound:
        tags = list(experiment.tags)
        client.create_experiment(
            dataset, experiment.name, config, tags=tags, experiment_id=experiment_id
        )
    else:
        client.update_experiment(experiment_id, experiment.name, config)


def _link(sink: OpikSink, experiment_id: str, pairs: Sequence[tuple[str, str]]) -> None:
    """`Experiment.insert` would give the links ids of chance, and send them twice the second time."""
    from opik.rest_api.types.experiment_item import ExperimentItem

    requests = sink.client.rest_client.experiments
    links: list[ExperimentItem] = []
    for item, trace in pairs:
        links.append(
            ExperimentItem(
                id=uuid7(BORN, f"{experiment_id}/{trace}"),
                experiment_id=experiment_id,
                dataset_item_id=item,
                trace_id=trace,
            )
        )
    for start in range(0, len(links), BATCH):
        requests.create_experiment_items(experiment_items=links[start : start + BATCH])
    requests.finish_experiments(ids=[experiment_id])
