"""Dialogues that switch from every vertical to every other."""

import random
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

from case_source import SwitchSource

SEED = 7


def switch_cases(source: SwitchSource, seed: int = SEED) -> list[dict[str, Any]]:
    """Makes two dialogues for each ordered pair of verticals: there, and there and back again. The
    same on every run."""
    rng = random.Random(seed)
    cases: list[dict[str, Any]] = []
    for first, second in permutations(source.verticals, 2):
        for name, path in (("there", (first, second)), ("back", (first, second, first))):
            cases.append(
                {
                    "id": f"{first}-{second}-{name}",
                    "kind": "switch",
                    "domain": second,
                    "turns": _turns(path, source, rng),
                }
            )
    return cases


def _turns(path: Sequence[str], source: SwitchSource, rng: random.Random) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    unused: Mapping[str, list[str]] = {
        v: rng.sample(source.verticals[v].questions, 2) for v in dict.fromkeys(path)
    }
    for number, vertical in enumerate(path):
        bridge = rng.choice(source.bridges) if number else ""
        turn: dict[str, Any] = {
            "user": bridge + unused[vertical].pop(),
            "expected_sub_agents": [vertical],
        }
        if number < len(path) - 1:
            turn["assistant"] = source.verticals[vertical].reply
        turns.append(turn)
    return turns
