"""What the bench takes from SciPy and statsmodels, with plain types; both load slowly, so on first use."""

from typing import Any

from kit.core.extra import require
from kit.metrics.estimate import LEVEL

require("bench", "scipy", "statsmodels")


def student_reach(freedom: float, level: float = LEVEL) -> float:
    """How many standard errors a two-sided interval of Student's law with so many degrees of
    freedom reaches to either side."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + level) / 2))


def binomial_share(count: int, total: int, share: float) -> float:
    """Chance of at most `count` hits of `total`, each with the same chance."""
    from scipy import special

    return float(special.bdtr(count, total, share))


def fisher_p(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Chance that two sides, each so many hits of so many, differ as much where they do not
    (Fisher's exact test, two-sided)."""
    from scipy import stats

    result: Any = stats.fisher_exact([[hits, total - hits] for hits, total in (first, second)])
    return float(result.pvalue)
