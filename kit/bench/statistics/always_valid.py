"""A test, and an interval, that stay right however often one looks at a growing sample.

The mixture of likelihood ratios over a normal law (Robbins 1970; Johari, Koomen, Pekelis and Walsh
2022, "Always valid inference"), with the sum of squares that the data themselves have in place of a
known variance: for differences that are as likely to point either way this is exact at any number
of looks (de la Pena, Klass and Lai 2004, "Self-normalized processes"; Howard, Ramdas, McAuliffe and
Sekhon 2021), for others asymptotically (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024,
"Time-uniform central limit theory and asymptotic confidence sequences").
"""

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np

MIXTURE = 0.32
"""Variance of the mixing law. It is best at some 25 items that differ, and at 10 or at 400 of them
the bound lies less than a tenth higher. It is fixed: one chosen from the data would not be valid."""


def any_look_p(gains: Sequence[float]) -> float:
    """How odd so uneven a sum of differences is, at whichever of any number of looks it is seen."""
    differing = np.array(gains, dtype=float)
    differing = differing[differing != 0]
    if not differing.size:
        return 1.0
    deviations = float(differing.sum()) ** 2 / float(np.square(differing).sum())
    grown = MIXTURE * differing.size
    return min(1.0, sqrt(grown + 1) * exp(-deviations * grown / (2 * (grown + 1))))


def any_look_reach(differing: int, level: float) -> float:
    """How many standard errors an interval reaches to either side that holds at every look at once."""
    grown = MIXTURE * max(1, differing)
    return sqrt(2 * (grown + 1) / grown * log(sqrt(grown + 1) / (1 - level)))
