"""Scored rows into verdicts: every way beside the baseline, paired by item, corrected for their
number, each as one sentence.

A row is a dict: `case`, `scorer`, `value`, and what tells ways apart, such as `model` and
`pattern`; `repeat`, `turn` and `domain` where there are several. Rows without a value are
undecided: they are left out and counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import pstdev
from typing import Any, Literal

import numpy as np

from kit.bench.grid.failures import CellCount, CellEnds, obstacle
from kit.bench.grid.results import MEASURES, PEER_MEASURES
from kit.bench.scoring.scorers import COSTS
from kit.bench.statistics.clusters import clustered
from kit.bench.statistics.difference import (
    Difference,
    Scores,
    by_item,
    holm,
    holm_levels,
    mcnemar_of,
    paired_difference,
)
from kit.bench.statistics.means import SEED, bootstrap_mean
from kit.bench.statistics.power import more_items
from kit.core.display.count import many
from kit.core.errors import DataError, nearest
from kit.core.value import Value
from kit.metrics.estimate import LEVEL, Estimate

Row = Mapping[str, Any]
Score = tuple[str, float]
"""A case, and what one of its turns scored: all that is kept of a row while many are compared."""
WAYS = ("model", "pattern")
"""Columns that tell ways apart, unless others are named."""
LOWER = COSTS | {
    "seconds",
    "ttft",
    "routing_seconds",
    "input_tokens",
    "output_tokens",
    "cost",
    *PEER_MEASURES,
}
"""Of these less is better."""
QUALITY = "response_quality"
"""The scorer that a card's threshold is about."""
FLIPS = 10_000


class Summary(Value):
    """One way by one scorer."""

    way: dict[str, str]
    scorer: str
    estimate: Estimate
    undecided: int = 0
    failed: int = 0
    """Turns that infrastructure lost; the estimate is of the others."""
    bounds: tuple[float, float] | None = None
    """What the figure would be if each failed turn had been 0, or 1: the lower end is the share of all turns."""

    def __str__(self) -> str:
        rest = f", {self.undecided} undecided" if self.undecided else ""
        if self.failed:
            rest += f" of the completed; {many(self.failed, 'turn')} failed"
        if self.bounds is not None:
            rest += (
                f": {self.bounds[0]:.3f} of all, {self.bounds[0]:.3f} to "
                f"{self.bounds[1]:.3f} had they been wrong or right"
            )
        return f"{_label(self.way)}, {self.scorer}: {self.estimate}{rest}"


class Comparison(Value):
    """One way beside the baseline, by one scorer."""

    scorer: str
    baseline: dict[str, str]
    way: dict[str, str]
    before: Estimate
    after: Estimate
    difference: Difference
    """With an interval as wide as the correction for all comparisons asks."""
    p: float
    """McNemar's mid-p by item; of scores between 0 and 1 that of a sign-flip test."""
    adjusted: float
    """The same, corrected by Holm for all comparisons made together."""
    verdict: Literal["better", "worse", "not distinguishable", "no verdict"]
    more: int | None
    """Items still needed, if the difference stays as seen; 0 when settled, None where no difference is seen."""
    obstacle: str = ""
    """Why there is no verdict."""

    def __str__(self) -> str:
        verdict: str = self.verdict
        if self.verdict == "not distinguishable":
            verdict += (
                f"; needs about {self.more:,} more items"
                if self.more
                else "; no difference was seen that more items would settle"
            )
        ways = f"{_label(self.way)} {self.after.value:.3f} against {_label(self.baseline)} {self.before.value:.3f}"
        if self.obstacle:
            return f"{self.scorer}: {ways} of the completed: no verdict, {self.obstacle}"
        return f"{self.scorer}: {ways}; {self.difference}; p = {self.adjusted:.3g} after Holm: {verdict}"


class Standing(Value):
    """One vertical's quality against its own threshold."""

    vertical: str
    estimate: Estimate
    threshold: float

    @property
    def passes(self) -> bool:
        """The figure as measured decides, as for a promotion; the interval says how sure that is."""
        return self.estimate.value >= self.threshold

    @property
    def sure(self) -> bool:
        return self.estimate.excludes(self.threshold)

    def __str__(self) -> str:
        verdict = ("reached" if self.passes else "missed") + (
            "" if self.sure else " (not for certain)"
        )
        return f"{self.vertical}, {QUALITY}: {self.estimate}, {self.threshold:g} {verdict}"


def summarise(rows: Iterable[Row], by: Sequence[str] = WAYS) -> list[Summary]:
    """Every way by every scorer, with an interval that takes a case's repeats and turns for one
    item, in order of way."""
    groups: dict[tuple[str, ...], list[Score]] = defaultdict(list)
    failed, undecided = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in rows:
        key = (row["scorer"], *(str(row.get(name, "")) for name in by))
        if row["value"] is not None:
            groups[key].append((row["case"], row["value"]))
        else:
            (failed if row.get("lost") else undecided)[key] += 1
    return [
        _summary(dict(zip(by, key[1:], strict=True)), key[0], scores, undecided[key], failed[key])
        for key, scores in sorted(groups.items())
    ]


def _summary(
    way: dict[str, str], scorer: str, scores: Sequence[Score], undecided: int, failed: int
) -> Summary:
    figure, bounds = estimate(scores), None
    if failed and scorer not in MEASURES:
        right, count = figure.value * len(scores), len(scores) + failed
        bounds = (right / count, (right + failed) / count)
    return Summary(
        way=way, scorer=scorer, estimate=figure, undecided=undecided, failed=failed, bounds=bounds
    )


def compare(
    rows: Iterable[Row],
    baseline: Mapping[str, str],
    by: Sequence[str] = WAYS,
    scorers: Sequence[str] | None = None,
    *,
    seed: int = SEED,
) -> list[Comparison]:
    """Every other way beside the baseline, by every scorer, over the cases decided on both sides.

    `baseline` names the way to compare with, such as {"pattern": "mediated"}; a column of `by` it
    leaves out must agree between the two that are compared. Where too many cells failed there is no
    verdict. Raises DataError where no row is of the baseline.
    """
    ways: dict[tuple[str, ...], dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    ends: dict[tuple[str, ...], CellEnds] = defaultdict(dict)
    for row in rows:
        names = tuple(str(row.get(name, "")) for name in by)
        ends[names][row["case"], row.get("repeat")] = bool(row.get("lost"))
        if scorers is None or row["scorer"] in scorers:
            scores = ways[names][row["scorer"]]
            if row["value"] is not None:
                scores.append((row["case"], row["value"]))
    counts = {names: CellCount.of(own) for names, own in ends.items()}
    way_of = {names: dict(zip(by, names, strict=True)) for names in ways}
    bases = [
        names
        for names, way in way_of.items()
        if all(way.get(key) == str(value) for key, value in baseline.items())
    ]
    if not bases:
        name, existing = _label(baseline), sorted({_label(way) for way in way_of.values()})
        raise DataError(f"no row is of the baseline {name!r}: {nearest(name, existing)}")
    free = [name for name in by if name not in baseline]
    jobs = [
        (scorer, (way_of[base], ways[base][scorer]), (way_of[way], ways[way][scorer]))
        for base in sorted(bases)
        for way in sorted(set(ways) - set(bases))
        if all(way_of[base][name] == way_of[way][name] for name in free)
        for scorer in ways[base]
        if _cases(ways[base][scorer]) & _cases(ways[way][scorer])
    ]
    comparisons = [_compare_pair(*job, seed, len(jobs)) for job in jobs]
    chances = {str(place): comparison.p for place, comparison in enumerate(comparisons)}
    corrections = zip(
        comparisons, holm(chances).values(), holm_levels(chances).values(), strict=True
    )
    return [_settle(comparison, p, level, counts) for comparison, p, level in corrections]


def standings(rows: Iterable[Row], thresholds: Mapping[str, float]) -> list[Standing]:
    """Every vertical's quality against its own threshold; a row's `domain` is its vertical."""
    scores: dict[str, list[Score]] = defaultdict(list)
    for row in rows:
        if row["scorer"] == QUALITY and row["value"] is not None:
            scores[row.get("domain", "")].append((row["case"], row["value"]))
    return [
        Standing(vertical=vertical, estimate=estimate(scores[vertical]), threshold=threshold)
        for vertical, threshold in thresholds.items()
        if vertical in scores
    ]


def estimate(scores: Sequence[Score]) -> Estimate:
    """A share where every value is yes or no, else a mean; cases are the items."""
    values, cases = [float(value) for _, value in scores], [case for case, _ in scores]
    if set(values) <= {0.0, 1.0}:
        return clustered([value == 1.0 for value in values], cases)
    return bootstrap_mean(values, cases)


def sign_flip_test(gains: Sequence[float], seed: int = SEED) -> float:
    """How odd a mean gain this far from zero would be if each item's sign were a coin (Fisher 1935, sign-flip test)."""
    sizes, counts = np.unique(np.abs(np.asarray(gains, dtype=float)), return_counts=True)
    heads = np.random.default_rng(seed).binomial(counts, 0.5, size=(FLIPS, len(counts)))
    sums = np.abs((2 * heads - counts) @ sizes)
    return float((1 + np.sum(sums >= abs(sum(gains)) - 1e-9)) / (1 + FLIPS))


Side = tuple[dict[str, str], list[Score]]


def _compare_pair(scorer: str, first: Side, second: Side, seed: int, count: int) -> Comparison:
    """One of `count` comparisons; what follows from the others is put in later."""
    common = _cases(first[1]) & _cases(second[1])
    before, after = ([score for score in side[1] if score[0] in common] for side in (first, second))
    scores = _by_case(before), _by_case(after)
    gains, difference = by_item(*scores), paired_difference(*scores, seed=seed)
    whole = all(gain in (-1.0, 0.0, 1.0) for gain in gains.values())
    p = mcnemar_of(gains).mid_p if whole else sign_flip_test(list(gains.values()), seed)
    return Comparison(
        scorer=scorer,
        baseline=first[0],
        way=second[0],
        before=estimate(before),
        after=estimate(after),
        difference=difference,
        p=p,
        adjusted=p,
        verdict="not distinguishable",
        more=more_items(difference, pstdev(gains.values()), level=1 - (1 - LEVEL) / count),
    )


def _settle(
    comparison: Comparison,
    adjusted: float,
    level: float,
    counts: Mapping[tuple[str, ...], CellCount],
) -> Comparison:
    difference = comparison.difference.at(level)
    if (
        comparison.scorer not in MEASURES
    ):  # scores are 0 to 1, and a wider interval does not know it
        ends = {"low": max(-1.0, difference.low), "high": min(1.0, difference.high)}
        difference = difference.model_copy(update=ends)
    update: dict[str, Any] = {"adjusted": adjusted, "difference": difference}
    why = obstacle(
        counts[tuple(comparison.baseline.values())], counts[tuple(comparison.way.values())]
    )
    if why:
        update |= {"verdict": "no verdict", "more": None, "obstacle": why}
    elif adjusted < 1 - LEVEL and difference.excludes(0.0):
        ahead = (comparison.difference.value > 0) != (comparison.scorer in LOWER)
        update |= {"verdict": "better" if ahead else "worse", "more": 0}
    return comparison.model_copy(update=update)


def _by_case(scores: Iterable[Score]) -> Scores:
    values: dict[str, list[float]] = defaultdict(list)
    for case, value in scores:
        values[case].append(float(value))
    return values


def _cases(scores: Iterable[Score]) -> set[str]:
    return {case for case, _ in scores}


def _label(way: Mapping[str, str]) -> str:
    return " / ".join(str(value) for value in way.values() if value) or "(all)"
