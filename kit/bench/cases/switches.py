"""Dialogues that switch from every vertical to every other; run as a module it writes data/cases/switches.jsonl."""

import json
import random
import sys
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import yaml

from kit.bench.home import HOME
from kit.core.errors import DataError
from kit.core.value import Value

DATA = HOME / "data"
SEED = 7


class Asked(Value):
    """What is asked of one vertical, and what it may have answered."""

    reply: str
    questions: tuple[str, ...]


class SwitchSource(Value):
    """data/source/switches.yaml."""

    bridges: tuple[str, ...]
    """How a person begins to speak of something else."""
    verticals: dict[str, Asked]


def read_source(path: Path = DATA / "source" / "switches.yaml") -> SwitchSource:
    """Raises DataError when the file is missing or not of that shape."""
    try:
        return SwitchSource.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path} cannot be used: {error}") from error


def switch_cases(source: SwitchSource, seed: int = SEED) -> list[dict[str, Any]]:
    """Two dialogues for each ordered pair of verticals (PC2-NFR-6): there, and there and back again. The same on every run."""
    rng = random.Random(seed)
    cases: list[dict[str, Any]] = []
    for first, second in permutations(source.verticals, 2):
        for name, path in (("there", (first, second)), ("back", (first, second, first))):
            cases.append(
                {"id": f"{first}-{second}-{name}", "kind": "switch", "domain": second, "turns": _turns(path, source, rng)}
            )
    return cases


def _turns(path: Sequence[str], source: SwitchSource, rng: random.Random) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    unused: Mapping[str, list[str]] = {v: rng.sample(source.verticals[v].questions, 2) for v in dict.fromkeys(path)}
    for number, vertical in enumerate(path):
        bridge = rng.choice(source.bridges) if number else ""
        turn: dict[str, Any] = {"user": bridge + unused[vertical].pop(), "expected_sub_agents": [vertical]}
        if number < len(path) - 1:
            turn["assistant"] = source.verticals[vertical].reply
        turns.append(turn)
    return turns


def as_lines(cases: Sequence[Mapping[str, Any]]) -> str:
    """One case a line."""
    return "".join(json.dumps(case) + "\n" for case in cases)


if __name__ == "__main__":
    made = switch_cases(read_source())
    (DATA / "cases").mkdir(exist_ok=True)
    (DATA / "cases" / "switches.jsonl").write_text(as_lines(made), encoding="utf-8")
    print(f"{len(made)} dialogues, {sum(len(case['turns']) for case in made)} turns", file=sys.stderr)
