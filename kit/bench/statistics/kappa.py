"""Cohen's kappa of two sorts of verdict, with an interval that holds close to 1 too."""

from collections.abc import Callable

from kit.bench.statistics.distributions import root_between
from kit.metrics.estimate import normal_reach

Table = tuple[tuple[int, int], tuple[int, int]]
"""Counts: first no and yes, by second no and yes."""


def kappa_of(table: Table) -> tuple[float, float, float]:
    """Kappa (Cohen 1960) and the ends of its interval by the goodness of fit of Donner and Eliasziw
    (1992, "A goodness-of-fit approach to inference procedures for the kappa statistic").

    An interval from the standard error of kappa (Fleiss, Cohen and Everitt 1969) covers a kappa of
    0.94 in less than half of all samples of 20: it has no width where all agree. Zero, with the whole
    range for an interval, where one of the two always says the same.
    """
    (both_no, second_only), (first_only, both_yes) = table
    n = both_no + second_only + first_only + both_yes
    first = (first_only + both_yes) / n
    second = (second_only + both_yes) / n
    by_chance = first * second + (1 - first) * (1 - second)
    if first in (0.0, 1.0) or second in (0.0, 1.0):
        return 0.0, -1.0, 1.0
    kappa = ((both_no + both_yes) / n - by_chance) / (1 - by_chance)
    low, high = _fitting(both_no, second_only + first_only, both_yes)
    return kappa, min(kappa, low), max(kappa, high)


def _fitting(both_no: int, differing: int, both_yes: int) -> tuple[float, float]:
    """Between which kappas the three counts fit their expectations, at one rate of yes for both."""
    n = both_no + differing + both_yes
    rate = (2 * both_yes + differing) / (2 * n)
    spread = rate * (1 - rate)
    best = 1 - differing / (2 * n * spread)
    least = max(-rate / (1 - rate), -(1 - rate) / rate)

    def misfit(kappa: float) -> float:
        expected = (
            (1 - rate) ** 2 + spread * kappa,
            2 * spread * (1 - kappa),
            rate**2 + spread * kappa,
        )
        counts = (both_no, differing, both_yes)
        total = 0.0
        for count, share in zip(counts, expected, strict=True):
            # At the limits a count that is not expected at all would divide by nothing.
            total += (count - n * share) ** 2 / max(n * share, 1e-12)
        return total

    allowed = normal_reach() ** 2
    return _end(misfit, best, least, allowed), _end(misfit, best, 1.0, allowed)


def _end(misfit: Callable[[float], float], best: float, limit: float, allowed: float) -> float:
    """The kappa furthest from the best towards the limit that still fits."""
    if misfit(limit) <= allowed:
        return limit
    return root_between(lambda kappa: misfit(kappa) - allowed, best, limit)
