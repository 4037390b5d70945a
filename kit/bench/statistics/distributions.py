"""What the bench takes from SciPy and statsmodels, with plain types; both load slowly, so on first use."""

from collections.abc import Sequence
from typing import Any

from kit.core.extra import require
from kit.metrics.estimate import LEVEL, normal_reach

require("bench", "scipy", "statsmodels")


def student_reach(freedom: int, level: float = LEVEL) -> float:
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


def kappa_of(table: Sequence[Sequence[int]]) -> tuple[float, float, float]:
    """Cohen's kappa of a square table of counts, and its large-sample interval (Fleiss, Cohen and Everitt 1969)."""
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    with np.errstate(
        invalid="ignore"
    ):  # it also tests against zero, which no agreement at all leaves undefined
        result: Any = cohens_kappa(np.asarray(table))
    half = normal_reach() * float(result.std_kappa)
    return (
        float(result.kappa),
        max(-1.0, float(result.kappa) - half),
        min(1.0, float(result.kappa) + half),
    )
