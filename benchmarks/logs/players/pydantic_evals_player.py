"""Plays the samples with pydantic-evals: `python pydantic_evals_player.py FOLDER`."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter

from samples import SYSTEMS, TRIES, answer, brevity, exact, questions


@dataclass
class Scores(Evaluator[str, str, dict[str, str]]):
    def evaluate(self, ctx: EvaluatorContext[str, str, dict[str, str]]) -> dict[str, bool | float]:
        expected = ctx.expected_output or ""
        return {
            "exact": bool(exact(ctx.output, expected)),
            "brevity": brevity(ctx.output, expected),
        }


def play(name: str, out: Path) -> None:
    by_question = {one.question: one for one in questions()}
    attempts: Counter[str] = Counter()

    async def system(question: str) -> str:
        attempts[question] += 1
        one = by_question[question]
        return answer(name, one.sample, attempts[question], one.expected)

    cases = [
        Case(
            name=one.sample,
            inputs=one.question,
            expected_output=one.expected,
            metadata={"topic": one.topic},
        )
        for one in questions()
    ]
    dataset = Dataset(name="sums", cases=cases, evaluators=[Scores()])
    report = dataset.evaluate_sync(
        system, name=name, repeat=TRIES, max_concurrency=1, progress=False
    )
    # They name files of the machine that played it.
    for failure in report.failures:
        failure.error_stacktrace = ""
    content = EvaluationReportAdapter.dump_json(report)
    (out / f"pydantic-evals-{name}.json").write_bytes(content + b"\n")


if __name__ == "__main__":
    for system_name in SYSTEMS:
        play(system_name, Path(sys.argv[1]).resolve())
