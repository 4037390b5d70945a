"""What the bench takes from SciPy and statsmodels, with plain types; both load slowly, so on first use."""

from collections.abc import Sequence
from typing import Any


def normal_quantile(share: float) -> float:
    """Below which this share of a standard normal law lies."""
    from scipy import special

    return float(special.ndtri(share))


def normal_share(value: float) -> float:
    """Share of a standard normal law below a value."""
    from scipy import special

    return float(special.ndtr(value))


def t_quantile(share: float, freedom: int) -> float:
    """Below which this share of Student's law with so many degrees of freedom lies."""
    from scipy import special

    return float(special.stdtrit(freedom, share))


def binomial_share(count: int, total: int, share: float) -> float:
    """Chance of at most `count` hits of `total`, each with the same chance; `count` may be below 0."""
    from scipy import special

    return float(special.bdtr(count, total, share)) if count >= 0 else 0.0


def coin_tail(heads: int, tosses: int) -> tuple[float, float]:
    """Chance of at most, and of exactly, so many heads in tosses of a fair coin."""
    below = binomial_share(heads, tosses, 0.5)
    return below, below - binomial_share(heads - 1, tosses, 0.5)


def newcombe_bounds(a: tuple[int, int], b: tuple[int, int], level: float) -> tuple[float, float]:
    """Newcombe's interval of a difference of two independent shares, `b` less `a`; each is (right, total)."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    bounds: Any = confint_proportions_2indep(*b, *a, compare="diff", method="newcomb", alpha=1 - level)
    return float(bounds[0]), float(bounds[1])


def kappa_of(table: Sequence[Sequence[int]], level: float) -> tuple[float, float, float]:
    """Cohen's kappa of a square table of counts, and its large-sample interval (Fleiss, Cohen and Everitt 1969)."""
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    with np.errstate(invalid="ignore"):  # it also tests against zero, which no agreement at all leaves undefined
        result: Any = cohens_kappa(np.asarray(table))
    half = normal_quantile((1 + level) / 2) * float(result.std_kappa)
    return float(result.kappa), max(-1.0, float(result.kappa) - half), min(1.0, float(result.kappa) + half)
