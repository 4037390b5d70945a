"""What every tool plays: 60 samples on two systems, two tries each, with answers that a seed draws."""

import json
import random
from pathlib import Path
from typing import NamedTuple

SAMPLES = 60
TOPICS = 20
"""Samples of one topic are a cluster."""
TRIES = 2
SYSTEMS = {"plain": 0.55, "careful": 0.9}
"""System -> how often it is right."""
BROKEN = ("s17", 2)
"""The try on which the system `careful` finds nobody at the other end."""
ERROR = "503 from the endpoint"


class Question(NamedTuple):
    """One sample."""

    sample: str
    question: str
    expected: str
    topic: str


def questions() -> list[Question]:
    """All samples, in order."""
    return [
        Question(f"s{i:02}", f"What is {i} + {i}?", str(2 * i), f"t{i % TOPICS:02}")
        for i in range(SAMPLES)
    ]


def answer(system: str, sample: str, attempt: int, expected: str) -> str:
    """What a system says on one try. Raises ConnectionError on the one that is broken."""
    if system == "careful" and (sample, attempt) == BROKEN:
        raise ConnectionError(ERROR)
    draw = random.Random(f"{system} {sample} {attempt}")
    hard = random.Random(sample).random() < 0.2
    if draw.random() < SYSTEMS[system] - 0.3 * hard:
        return expected
    return f"{expected}, or {draw.randint(100, 999)}"


def exact(output: str, expected: str) -> float:
    """Whether it is the answer and nothing else."""
    return float(output == expected)


def brevity(output: str, expected: str) -> float:
    """A score that is no yes or no: the part of what was said that had to be."""
    return len(expected) / len(output)


def write_turns(path: Path) -> None:
    """Writes what each system says, for tools that are not written in Python."""
    turns: dict[str, str | None] = {}
    for system in SYSTEMS:
        for one in questions():
            for attempt in range(1, TRIES + 1):
                try:
                    turns[f"{system} {one.sample} {attempt}"] = answer(
                        system, one.sample, attempt, one.expected
                    )
                except ConnectionError:
                    turns[f"{system} {one.sample} {attempt}"] = None
    path.write_text(json.dumps(turns), encoding="utf-8")
