"""The sign-flip test, with as many flips as the number of comparisons asks for."""

from collections.abc import Sequence
from math import ceil, exp

import numpy as np

from kit.core.value import Value
from kit.metrics.estimate import LEVEL

SEED = 7
_BATCH = 10_000
_COUNTED = 13
"""So many items have fewer flips than a batch: each of them is made once, and the p-value is exact."""
_ENOUGH = 50
"""Flips as odd as what was seen, after which no more are made (Besag and Clifford 1991)."""
_FINER = 10
"""How many times finer than the level of one comparison the smallest p-value is."""


class PValue(Value):
    """How odd an outcome would be by chance."""

    value: float
    is_bound: bool = False
    """True where the chance is smaller than `value`, and nobody knows by how much."""

    def __str__(self) -> str:
        return f"p {'<' if self.is_bound else '='} {self.value:.3g}"


def sign_flip_test(gains: Sequence[float], *, comparisons: int = 1) -> PValue:
    """How odd a mean gain this far from zero would be if each item's sign were a coin (Fisher 1935).

    `comparisons`: among how many this is one; the flips are so many that each of them can be
    settled after Holm's correction.
    """
    sizes = np.abs(np.asarray(gains, dtype=float))
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return PValue(value=1.0)
    total = abs(float(sum(gains))) - 1e-9 * float(sizes.max())
    flip_limit = max(_BATCH, ceil(_FINER * comparisons / (1 - LEVEL)))
    floor = 1 / (1 + flip_limit)
    # The sum of coins is no further out than this (Hoeffding 1963): where that is less than the
    # flips could show, they need not be made.
    bound = 2 * exp(-(total**2) / (2 * float((sizes**2).sum())))
    if bound < floor:
        return PValue(value=bound, is_bound=True)
    if total >= float(sizes.sum()) * (1 - 1e-9):
        # All point one way: of all flips only two are as odd.
        return PValue(value=min(1.0, 2.0 ** (1 - len(sizes))))
    if len(sizes) <= _COUNTED:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums - size, sums + size])
        return PValue(value=float((np.abs(sums) >= total).mean()))
    generator = np.random.default_rng(SEED)
    as_odd = 0
    flips = 0
    while flips < flip_limit and as_odd < _ENOUGH:
        flips += _BATCH
        as_odd += _as_odd_as(total, sizes, generator)
    if as_odd == 0:
        return PValue(value=1 / (1 + flips), is_bound=True)
    return PValue(value=(1 + as_odd) / (1 + flips))


def _as_odd_as(
    total: float,
    sizes: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    generator: np.random.Generator,
) -> int:
    """How many of a batch of flips come out as far from zero."""
    distinct, counts = np.unique(sizes, return_counts=True)
    if len(distinct) * 4 < len(sizes):
        # Equal sizes are flipped together, as one binomial count.
        heads = generator.binomial(counts, 0.5, size=(_BATCH, len(counts)))
        sums = (2 * heads - counts) @ distinct
    else:
        signs = generator.integers(0, 2, size=(_BATCH, len(sizes)), dtype=np.int8)
        sums = (2.0 * signs - 1.0) @ sizes
    return int(np.sum(np.abs(sums) >= total))
