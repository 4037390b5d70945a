"""Reads reports of pydantic-evals, as `EvaluationReportAdapter.dump_json(report)` writes them.

Assertions are 1 or 0, scores are their number, labels are no numbers. An evaluator that failed
decides nothing; a case whose task failed is an error.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kit.bench.identity import digest
from kit.bench.logs.log import Log, LoggedSample, cluster_in, number_of, whole

Fields = Mapping[str, Any]


def read_pydantic_evals(report: Fields, path: Path, cluster: str | None = None) -> Log:
    """The samples of a report. `cluster` is the field of a case's metadata that names its cluster.
    Raises DataError for what pydantic-evals did not write."""
    with whole(path, "report of pydantic-evals"):
        epochs: Counter[str] = Counter()
        not_numeric: dict[str, str] = {}
        scorers: dict[str, str] = {}
        samples: list[LoggedSample] = []
        for case in (*report["cases"], *report.get("failures", ())):
            # Repeats of a case have its name, and their number, in theirs.
            name = str(case.get("source_case_name") or case["name"])
            epochs[name] += 1
            metrics: Fields = case.get("metrics") or {}
            scores: dict[str, float | None] = {}
            for score, result in _results(case):
                scores[score] = number_of(result["value"])
                if scores[score] is None:
                    not_numeric.setdefault(score, repr(result["value"])[:60])
                scorers[score] = digest(result.get("source"))
            samples.append(
                LoggedSample(
                    sample=name,
                    epoch=epochs[name],
                    scores=scores,
                    error=case.get("error_message"),
                    seconds=number_of(case.get("task_duration")),
                    cost=number_of(metrics.get("cost")),
                    cluster=cluster_in(case.get("metadata"), cluster),
                    question=digest(case["inputs"], case.get("expected_output")),
                )
            )
    return Log(
        name=str(report.get("name") or path.stem),
        tool="pydantic-evals",
        samples=tuple(samples),
        scorers=scorers,
        not_numeric=not_numeric,
    )


def _results(case: Fields) -> Iterator[tuple[str, Fields]]:
    for kind in ("assertions", "scores", "labels"):
        # A case that failed was not evaluated.
        results: Mapping[str, Fields] = case.get(kind) or {}
        yield from results.items()
