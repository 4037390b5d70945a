"""What the bench takes from SciPy, with plain types; it loads slowly, so on first use."""

from collections.abc import Callable
from typing import Any

from kit.core.extra import require
from kit.metrics.estimate import LEVEL

require("bench", "scipy")


def student_reach(freedom: float, level: float = LEVEL) -> float:
    """How many standard errors a two-sided interval of Student's law with so many degrees of
    freedom reaches to either side."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + level) / 2))


def binomial_share(count: int, total: int, share: float) -> float:
    """Chance of at most `count` hits of `total`, each with the same chance."""
    from scipy import special

    return float(special.bdtr(count, total, share))


def least_where(
    function: Callable[[Any], float], start: Any, room: Callable[[Any], float]
) -> float:
    """The least that a function comes to where `room` is not below zero (Kraft's SLSQP)."""
    from scipy import optimize

    within = {"type": "ineq", "fun": room}
    result: Any = optimize.minimize(
        function, start, method="SLSQP", constraints=within, options={"ftol": 1e-9, "maxiter": 500}
    )
    return float(result.fun)


def fisher_p(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Chance that two sides, each so many hits of so many, differ as much where they do not
    (Fisher's exact test, two-sided)."""
    from scipy import stats

    table = [[first[0], first[1] - first[0]], [second[0], second[1] - second[0]]]
    result: Any = stats.fisher_exact(table)
    return float(result.pvalue)
