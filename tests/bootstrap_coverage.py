"""`python -m tests.bootstrap_coverage [TRIES]`: how often the paired bootstrap holds the truth
about simulated models."""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kit.bench.statistics.difference import paired_difference
from kit.metrics.estimate import Estimate, wilson

FULL = 10_000
"""Tries of each setting whose figures stand in docs/statistics.md; the test suite takes a sample."""


class Setting(NamedTuple):
    """Two simulated models on the same items."""

    items: int
    first: float
    second: float
    twin: float
    """How often both meet the same luck."""


SETTINGS = [
    Setting(n, a, b, twin)
    for n in (50, 150)
    for a, b in ((0.9, 0.9), (0.9, 0.95), (0.7, 0.8))
    for twin in (0.0, 0.5)
]


def coverage(setting: Setting, tries: int, seed: int = 5) -> Estimate:
    """The share of tries whose interval holds the true difference of the two rates."""
    n, rng, names = (
        setting.items,
        np.random.default_rng(seed),
        [str(item) for item in range(setting.items)],
    )
    held = 0
    for trial in range(tries):
        first, own = rng.random(n), rng.random(n)
        second = np.where(rng.random(n) < setting.twin, first, own)
        x, y = (first < setting.first).astype(float), (second < setting.second).astype(float)
        scores = (dict(zip(names, side[:, None].tolist(), strict=True)) for side in (x, y))
        held += not paired_difference(*scores, seed=trial, resamples=500).excludes(
            setting.second - setting.first
        )
    return wilson(held, tries)


def lines(tries: int) -> Iterator[str]:
    """A sentence for each setting."""
    for setting in SETTINGS:
        n, a, b, twin = setting
        yield f"{n} items, {a:g} and {b:g}, luck shared {twin:g}: {coverage(setting, tries):.3f}"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if sys.argv[1:] else FULL):
        print(line, flush=True)
