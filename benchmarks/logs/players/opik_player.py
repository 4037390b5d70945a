"""Plays the samples with Opik's SDK: `python opik_player.py FOLDER`.

No server of Opik is to be had here. The SDK evaluates and scores, a loopback stub takes its traces,
and the items are read and written by the SDK's own code for what a server sends and what `opik
export` writes.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loopback_opik import opik_stub

from samples import ERROR, SYSTEMS, TRIES, answer, brevity, exact, questions


def play(name: str, out: Path) -> None:
    import opik
    from opik.api_objects.experiment.experiment_item import ExperimentItemContent
    from opik.cli.exports.utils import create_experiment_data_structure, write_json_data
    from opik.evaluation.metrics import base_metric, score_result

    class Scored(base_metric.BaseMetric):
        """Both scores; none of an answer that never came."""

        def score(self, output: str, expected: str, **_: Any) -> list[score_result.ScoreResult]:
            if not output:
                return []
            return [
                score_result.ScoreResult(name="exact", value=exact(output, expected)),
                score_result.ScoreResult(name="brevity", value=brevity(output, expected)),
            ]

    attempts: Counter[str] = Counter()

    def system(item: dict[str, Any]) -> dict[str, str]:
        attempts[item["sample"]] += 1
        try:
            text = answer(name, item["sample"], attempts[item["sample"]], item["expected"])
        except ConnectionError:
            return {"output": "", "error": ERROR}
        return {"output": text}

    items = [one._asdict() for one in questions()]
    contents: list[Any] = []
    for trial in range(TRIES):
        result = opik.evaluate_on_dict_items(
            items=items, task=system, scoring_metrics=[Scored(track=False)], scoring_threads=1
        )
        in_order = sorted(result.test_results, key=_sample)
        contents += [ExperimentItemContent.from_compare_dict(_sent(one, trial)) for one in in_order]
    experiment = SimpleNamespace(
        id=name, name=name, dataset_name="sums", get_experiment_data=lambda: SimpleNamespace()
    )
    data = create_experiment_data_structure(experiment, contents)
    write_json_data(data, out / f"opik-{name}.json")


def _sample(result: Any) -> str:
    return result.test_case.dataset_item_content["sample"]


def _sent(result: Any, trial: int) -> dict[str, Any]:
    """One item as a server sends it."""
    case = result.test_case
    return {
        "id": f"{_sample(result)}-{trial}",
        "dataset_item_id": _sample(result),
        "trace_id": f"trace-{_sample(result)}-{trial}",
        "input": {key: value for key, value in case.dataset_item_content.items() if key != "id"},
        "output": case.task_output,
        "feedback_scores": [
            {"name": score.name, "value": score.value, "reason": score.reason}
            for score in result.score_results
        ],
    }


if __name__ == "__main__":
    with opik_stub() as stub:
        os.environ["OPIK_URL_OVERRIDE"] = stub.url
        os.environ["OPIK_TRACK_DISABLE"] = "false"
        for system_name in SYSTEMS:
            play(system_name, Path(sys.argv[1]).resolve())
