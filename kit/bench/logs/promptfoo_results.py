"""Reads results of promptfoo, as `promptfoo eval -o results.json` writes them: several systems in one
file, each a provider, or a provider with a prompt where there are several prompts.

`pass` and `score` are promptfoo's own verdict on a test, the others are its named metrics. A result
that promptfoo counts as an error, and not as a failed assertion, is one here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.bench.identity import digest
from kit.bench.logs.log import (
    Log,
    LoggedSample,
    choose_system,
    cluster_in,
    number_of,
    whole,
)

Fields = Mapping[str, Any]
ERROR = 2
"""`failureReason` of a result that was not judged."""
NAMES = ("id", "sample")
"""Variables that name a test which has no description."""


def read_promptfoo(
    content: Fields, path: Path, system: str | None = None, cluster: str | None = None
) -> Log:
    """The samples of one system. `cluster` is the field of a test's metadata, or the variable, that
    names its cluster. Raises DataError for what promptfoo did not write, and where a system has to
    be named."""
    with whole(path, "results of promptfoo"):
        results: Sequence[Fields] = sorted(content["results"]["results"], key=_test_index)
        has_prompts = len({result["prompt"]["label"] for result in results}) > 1
        systems = {_system(result, has_prompts=has_prompts) for result in results}
        name = choose_system(path, systems, system)
        epochs: Counter[str] = Counter()
        samples: list[LoggedSample] = []
        for result in results:
            if _system(result, has_prompts=has_prompts) == name:
                sample = _name(result)
                epochs[sample] += 1
                samples.append(_sample(result, sample, epochs[sample], cluster))
        version = content.get("metadata", {}).get("promptfooVersion", "")
    return Log(name=name, tool=f"promptfoo {version}".strip(), samples=tuple(samples))


def _test_index(result: Fields) -> tuple[int, int]:
    return result["testIdx"], result["promptIdx"]


def _system(result: Fields, *, has_prompts: bool) -> str:
    provider = result["provider"]
    name = str(provider.get("label") or provider["id"])
    if has_prompts:
        return f"{name} / {result['prompt']['label']}"
    return name


def _name(result: Fields) -> str:
    description = result["testCase"].get("description")
    if description:
        return str(description)
    variables: Fields = result["vars"]
    for name in NAMES:
        if name in variables:
            return str(variables[name])
    return digest(variables)


def _sample(result: Fields, sample: str, epoch: int, cluster: str | None) -> LoggedSample:
    test: Fields = result["testCase"]
    error: str | None = None
    if result.get("failureReason") == ERROR:
        error = str(result.get("error") or "an error")
    scores: dict[str, float | None] = {
        "pass": number_of(result["success"]),
        "score": number_of(result["score"]),
    }
    named_scores: Fields = result.get("namedScores") or {}
    for name, value in named_scores.items():
        scores[name] = number_of(value)
    milliseconds = number_of(result.get("latencyMs"))
    return LoggedSample(
        sample=sample,
        epoch=epoch,
        scores=scores,
        error=error,
        seconds=None if milliseconds is None else milliseconds / 1000,
        cost=number_of(result.get("cost")),
        cluster=cluster_in(test.get("metadata"), cluster) or cluster_in(result["vars"], cluster),
        # The assertions are both: what is expected, and how it is scored.
        question=digest(result["vars"], test.get("assert")),
    )
