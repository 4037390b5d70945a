"""Scored rows into verdicts: every way beside the baseline, paired by item, corrected for their
number, each as one sentence.

A row is a dict: `case`, `scorer`, `value`, and what tells ways apart, such as `model` and
`pattern`; `repeat`, `turn` and `domain` where there are several. Rows without a value are
undecided: where one way decides a case and the other does not, a verdict has to hold whatever the
missing value is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from operator import attrgetter

import numpy as np

from kit.bench.grid.failures import CellCount, CellEnds, obstacle, way_name, way_of
from kit.bench.grid.results import Row
from kit.bench.scoring.scorers import COSTS
from kit.bench.statistics.always_valid import any_look_p, any_look_reach
from kit.bench.statistics.clusters import share_of_sums
from kit.bench.statistics.difference import (
    Difference,
    all_or_nothing,
    difference_of,
    holm,
    holm_levels,
    items_ahead,
    mid_p,
)
from kit.bench.statistics.means import (
    ANYTHING,
    DIFFERENCES_OF_SCORES,
    SCORES,
    Range,
    mean_of_sums,
)
from kit.bench.statistics.measures import PEER_MEASURES
from kit.bench.statistics.power import items_for_reach
from kit.bench.statistics.sign_flips import PValue, sign_flip_test
from kit.bench.statistics.verdict import (
    POINTS,
    TENTH,
    Margin,
    Verdict,
    amount,
    is_score,
    margin_of,
    possible,
    sample_words,
)
from kit.core.display.count import many
from kit.core.errors import DataError, nearest
from kit.core.value import Value
from kit.metrics.estimate import LEVEL, Estimate, normal_reach

Clusters = Mapping[str, str]
"""Case -> the cluster it belongs to; cases that are not in it are each their own."""
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
AT_PLAN = 0.8
"""The part of the chance of a false claim that the look at the planned size may spend. All other
looks together spend what is left, so that the whole stays what it was (docs/statistics.md)."""
FEWEST_EQUIVALENT = 60
"""Cases, or clusters, from which on two ways may be equivalent by a measure without bounds. Of fewer, what
happens in one case of twenty may not be among them, and no interval knows of it (docs/statistics.md)."""
NO_CLUSTERS: Clusters = {}


@dataclass(slots=True)
class CaseTally:
    """What one way scored on one case, by one scorer, over its repeats and turns."""

    total: float = 0.0
    count: int = 0
    undecided: int = 0
    lost: int = 0
    binary: bool = True

    def add(self, row: Row) -> None:
        value = row["value"]
        if value is not None:
            self.total += float(value)
            self.count += 1
            self.binary = self.binary and value in (0, 1)
        elif row.get("lost"):
            self.lost += 1
        else:
            self.undecided += 1

    def mean_between(self, missing: int, within: Range) -> tuple[float, float]:
        """The mean had each missing value been the least, and the greatest there can be."""
        if not missing:
            # Of what has no bound, nothing times infinity would be no number.
            mean = self.total / self.count
            return mean, mean
        count = self.count + missing
        low = (self.total + missing * within.low) / count
        high = (self.total + missing * within.high) / count
        return low, high


Tallies = dict[str, CaseTally]
"""Case -> its tally: all that is kept of rows while many are compared."""


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
        notes = ""
        if self.undecided:
            notes = f", {self.undecided} undecided"
        if self.failed:
            notes += f" of the completed; {many(self.failed, 'turn')} failed"
        if self.bounds is not None:
            low, high = self.bounds
            notes += f": {low:.3f} of all, {low:.3f} to {high:.3f} had they been wrong or right"
        figure = f"{self.estimate.basis} = {self.estimate:{_digits(self.scorer)}}"
        return f"{way_name(self.way.values())}, {self.scorer}: {figure}{notes}"


def _digits(scorer: str) -> str:
    """How a figure is written: a turn may cost a hundredth of a cent."""
    return ".6f" if scorer == "cost" else ".3f"


class Comparison(Value):
    """One way beside the baseline, by one scorer."""

    scorer: str
    baseline: dict[str, str]
    way: dict[str, str]
    before: Estimate
    after: Estimate
    difference: Difference
    """With an interval as wide as the correction for all comparisons and looks asks, and as what is
    missing on one side leaves open."""
    p: PValue
    """McNemar's mid-p by item; of other scores, and of clusters, that of a sign-flip test; the
    greater of the two that what is missing leaves open. Where the sample is not the planned one
    it is the p-value that holds at every look."""
    adjusted: PValue
    """The same, corrected by Holm for all comparisons made together."""
    verdict: Verdict
    reason: str = ""
    """Why there is no verdict, in words."""
    planned: bool
    """Whether the sample is the one that was planned, so that the verdict is that of a single look."""
    margin: float
    """The difference that `cases` is about; what "equivalent" means where one was stated."""
    cases: int | None
    """How many cases such a difference takes, 8 times in 10; None where nothing tells."""
    one_sided: int = 0
    """Cases of which one side is undecided or failed, in whole or in part, and the other is not."""
    ahead: tuple[int, int]
    """On how many of the cases that both sides decide the baseline is ahead, and the way."""

    @property
    def settled(self) -> bool:
        return self.verdict in ("better", "worse", "equivalent")

    @property
    def words(self) -> str:
        """The verdict in words, with what it leaves possible and what would settle it."""
        if self.verdict == "no verdict":
            return f"no verdict, {self.reason}"
        if self.verdict == "equivalent":
            return f"equivalent within {amount(self.margin, self.scorer)}"
        if self.verdict == "cannot tell":
            left = possible(self.difference, self.scorer)
            takes = sample_words(self.cases, self.difference.n, self.margin, self.scorer)
            return f"cannot tell: {'; '.join(filter(None, (left, takes)))}"
        return self.verdict

    @property
    def missing(self) -> str:
        """The cases that only one side decides, in words; empty where there are none."""
        if not self.one_sided:
            return ""
        return f"{many(self.one_sided, 'case')} decided on one side only, taken either way"

    def __str__(self) -> str:
        digits = _digits(self.scorer)
        figure = f"{way_name(self.way.values())} {self.after.value:{digits}}"
        ways = f"{figure} against {way_name(self.baseline.values())} {self.before.value:{digits}}"
        if self.verdict == "no verdict":
            return f"{self.scorer}: {ways} of the completed: {self.words}"
        figures = f"{ways}; difference {self.difference:+{digits}}, {self.difference.basis}"
        if self.missing:
            figures += f", {self.missing}"
        chance = f"{self.adjusted} after Holm"
        if not self.planned:
            chance += ", at any look"
        return f"{self.scorer}: {figures}; {chance}: {self.words}"


def summarise(
    rows: Iterable[Row], by: Sequence[str] = WAYS, *, clusters: Clusters = NO_CLUSTERS
) -> list[Summary]:
    """Every way by every scorer, with an interval that takes a case's repeats and turns for one
    item, and the cases of a cluster for one cluster, in order of scorer and way."""
    summaries: list[Summary] = []
    for way in _ways_of(rows, by):
        for scorer, tallies in way.tallies.items():
            summary = _summary(way.names, scorer, tallies, clusters)
            if summary is not None:
                summaries.append(summary)
    # Sorting keeps the order of the ways of one scorer.
    return sorted(summaries, key=attrgetter("scorer"))


def _summary(
    way: dict[str, str], scorer: str, tallies: Tallies, clusters: Clusters
) -> Summary | None:
    """One way by one scorer; None where nothing was decided."""
    every = CaseTally()
    for tally in tallies.values():
        every.total += tally.total
        every.count += tally.count
        every.undecided += tally.undecided
        every.lost += tally.lost
    if not every.count:
        return None
    bounds: tuple[float, float] | None = None
    if every.lost and is_score(scorer):
        bounds = every.mean_between(every.lost, SCORES)
    return Summary(
        way=way,
        scorer=scorer,
        estimate=_estimate(tallies, scorer, clusters),
        undecided=every.undecided,
        failed=every.lost,
        bounds=bounds,
    )


def comparable(
    ways: Sequence[dict[str, str]], baseline: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The pairs of a baseline and a way beside it, by their names."""
    bases = [way for way in ways if is_of(way, baseline)]
    for base in bases:
        # What the baseline leaves open has to agree between the two.
        free = {axis: name for axis, name in base.items() if axis not in baseline}
        for way in ways:
            # A whole system stands on no axis but that of its name, and agrees with everything.
            own_axes = {axis: name for axis, name in free.items() if name and way[axis]}
            if way not in bases and is_of(way, own_axes):
                yield base, way


def compare(
    rows: Iterable[Row],
    baseline: Mapping[str, str],
    by: Sequence[str] = WAYS,
    *,
    planned: int | None = None,
    margin: Margin | None = None,
    clusters: Clusters = NO_CLUSTERS,
    lower: Collection[str] = (),
) -> list[Comparison]:
    """Every other way beside the baseline, by every scorer, over the cases decided on both sides.

    `baseline` names the way to compare with, such as {"pattern": "mediated"}; a column of `by` it
    leaves out must agree between the two that are compared. `planned`: how many plays of each way
    (cases times repeats) were planned before the first was looked at; on another number, and where
    none was planned, a verdict holds however often one looks, and takes more cases. `margin`: the
    difference that is too small to matter; without it no two ways are called equivalent. `lower`:
    scorers beside LOWER of which less is better. Where too many cells failed there is no verdict.
    Raises DataError where no row is of the baseline.
    """
    ways = _ways_of(rows, by)
    if not any(is_of(way.names, baseline) for way in ways):
        name = way_name(baseline.values())
        labels = [way_name(way.names.values()) for way in ways]
        raise DataError(f"no row is of the baseline {name!r}: {nearest(name, sorted(set(labels)))}")
    pairs: list[_Pair] = []
    of_names = {tuple(way.names.values()): way for way in ways}
    for base_names, way_names in comparable([way.names for way in ways], baseline):
        base = of_names[tuple(base_names.values())]
        way = of_names[tuple(way_names.values())]
        for scorer in base.tallies:
            pair = _Pair(
                scorer,
                base,
                way,
                clusters,
                planned,
                margin_of(scorer, margin),
                less_is_better=scorer in LOWER or scorer in lower,
            )
            if pair.gains:
                pairs.append(pair)
    # All verdicts are corrected together, so none is settled before the last p-value is known.
    p_values = [_p_value(pair, len(pairs)) for pair in pairs]
    chances = {index: p.value for index, p in enumerate(p_values)}
    adjusted = holm(chances)
    levels = holm_levels(chances)
    verdicts: list[Comparison] = []
    for index, pair in enumerate(pairs):
        p = p_values[index]
        verdicts.append(_settle(pair, p, adjusted[index], levels[index], len(pairs)))
    return verdicts


def _estimate(tallies: Tallies, scorer: str, clusters: Clusters) -> Estimate:
    """A share where every value is yes or no, else a mean; cases, or their clusters, are the items."""
    sums: dict[str, float] = defaultdict(float)
    sizes: dict[str, float] = defaultdict(float)
    binary = is_score(scorer)
    for case, tally in tallies.items():
        if tally.count:
            cluster = clusters.get(case, case)
            sums[cluster] += tally.total
            sizes[cluster] += tally.count
            binary = binary and tally.binary
    every_sum = np.array(list(sums.values()))
    every_size = np.array(list(sizes.values()))
    if binary:
        return share_of_sums(every_sum, every_size)
    estimate = mean_of_sums(every_sum, every_size, within=_range_of(scorer))
    if scorer in LOWER and isfinite(estimate.low):
        # No turn takes less than no time, or costs less than nothing.
        estimate = estimate.replace(low=max(0.0, estimate.low))
    return estimate


@dataclass
class _WayRows:
    """The rows of one way."""

    names: dict[str, str]
    tallies: dict[str, Tallies] = field(default_factory=dict[str, Tallies])
    """Scorer -> what it scored by it."""
    ends: CellEnds = field(default_factory=dict[tuple[object, object], bool])

    @cached_property
    def count(self) -> CellCount:
        """How many cells it has, and how many of them failed; read once all rows are in."""
        return CellCount.of(self.ends)


def _ways_of(rows: Iterable[Row], by: Sequence[str]) -> list[_WayRows]:
    """The ways, in order of their names."""
    ways: dict[tuple[str, ...], _WayRows] = {}
    for row in rows:
        names = way_of(row, by)
        way = ways.get(names)
        if way is None:
            way = ways[names] = _WayRows(dict(zip(by, names, strict=True)))
        way.ends[row["case"], row.get("repeat")] = bool(row.get("lost"))
        tallies = way.tallies.setdefault(row["scorer"], {})
        tallies.setdefault(row["case"], CaseTally()).add(row)
    return [way for _, way in sorted(ways.items())]


def is_of(names: Row, wanted: Mapping[str, str]) -> bool:
    """Whether a row, or a way, has these names."""
    return all(names.get(axis) == str(name) for axis, name in wanted.items())


class _Pair:
    """Two ways by one scorer, what was laid down about their comparison before it was made, and
    their differences by case."""

    def __init__(
        self,
        scorer: str,
        baseline: _WayRows,
        way: _WayRows,
        clusters: Clusters,
        planned: int | None,
        margin: float | None,
        *,
        less_is_better: bool,
    ):
        self.scorer = scorer
        self.baseline = baseline
        self.way = way
        self.clusters = clusters
        self.margin = margin
        self.before = baseline.tallies[scorer]
        self.after = way.tallies.get(scorer, {})
        self.is_planned = len(baseline.ends.keys() & way.ends.keys()) == planned
        """Whether the sample is the planned one, so that the verdict is that of a single look."""
        self.spends = 1.0
        """The part of the chance of a false claim that this look may spend."""
        if planned is not None:
            self.spends = AT_PLAN if self.is_planned else 1 - AT_PLAN
        self.less_is_better = less_is_better
        self.gains: dict[str, float] = {}
        """Of the cases that both sides decide."""
        self.one_sided = 0
        self.lowest: dict[str, float] = {}
        self.highest: dict[str, float] = {}
        """The same and those of which only one side is known, had all that is missing spoken against
        the way, and for it."""
        self._find_differences()

    def _find_differences(self) -> None:
        within = self._range_of_missing()
        for case in sorted(self.before.keys() & self.after.keys()):
            first = self.before[case]
            second = self.after[case]
            if first.count and second.count:
                self.gains[case] = second.total / second.count - first.total / first.count
            # What neither side decides is no part of the question; what infrastructure took may be.
            missing_before = first.lost + max(0, first.undecided - second.undecided)
            missing_after = second.lost + max(0, second.undecided - first.undecided)
            if not first.count + missing_before or not second.count + missing_after:
                continue
            if missing_before or missing_after:
                self.one_sided += 1
                least, greatest = first.mean_between(missing_before, within)
                low, high = second.mean_between(missing_after, within)
                self.lowest[case] = low - greatest
                self.highest[case] = high - least
            else:
                self.lowest[case] = self.highest[case] = self.gains[case]

    def _range_of_missing(self) -> Range:
        """Between which figures a missing value lies: of what has no bound, those that were seen."""
        means: list[float] = []
        for tally in (*self.before.values(), *self.after.values()):
            if tally.count:
                means.append(tally.total / tally.count)
        if means and not is_score(self.scorer):
            return Range(min(means), max(means))
        return _range_of(self.scorer)

    def cluster_of(self, case: str) -> str:
        return self.clusters.get(case, case)

    def difference(self, gains: Mapping[str, float]) -> Difference:
        """The mean of these differences, with the interval of a single look."""
        within = DIFFERENCES_OF_SCORES if is_score(self.scorer) else ANYTHING
        return difference_of(gains, clusters=self.clusters or None, within=within)

    def estimate(self, tallies: Tallies) -> Estimate:
        """What one side scored on the cases that both decide."""
        cases = {case: tallies[case] for case in self.gains}
        return _estimate(cases, self.scorer, self.clusters)

    def reach(self, level: float) -> float:
        """How many standard errors an interval reaches at this level, for the part this look may spend."""
        level = 1 - (1 - level) * self.spends
        if self.is_planned:
            return normal_reach(level)
        differing = {self.cluster_of(case) for case, gain in self.gains.items() if gain}
        return any_look_reach(len(differing), level)


def _range_of(scorer: str) -> Range:
    if is_score(scorer):
        return SCORES
    return ANYTHING


def _p_value(pair: _Pair, comparisons: int) -> PValue:
    """The greater of the p-values at both ends of what is missing, over the part this look may spend."""
    ends = [pair.gains]
    if pair.one_sided:
        ends = [pair.lowest, pair.highest]
        if sum(pair.lowest.values()) < 0 < sum(pair.highest.values()):
            return PValue(value=1.0)
    tests = [_test(pair, gains, comparisons) for gains in ends]
    worst = max(tests, key=lambda p: p.value)
    return PValue(value=min(1.0, worst.value / pair.spends), is_bound=worst.is_bound)


def _test(pair: _Pair, gains: Mapping[str, float], comparisons: int) -> PValue:
    sums: dict[str, float] = defaultdict(float)
    for case, gain in gains.items():
        sums[pair.cluster_of(case)] += gain
    if not pair.is_planned:
        return PValue(value=any_look_p(list(sums.values())))
    if len(sums) == len(gains) and all_or_nothing(gains):
        return PValue(value=mid_p(gains))
    return sign_flip_test(list(sums.values()), comparisons=comparisons)


def _settle(pair: _Pair, p: PValue, adjusted: float, level: float, comparisons: int) -> Comparison:
    """The comparison with its verdict, given what Holm's correction makes of its p-value."""
    reach = pair.reach(level)
    fixed_size = pair.difference(pair.gains)
    difference = fixed_size.reaching(reach)
    low = difference.low
    high = difference.high
    if pair.one_sided:
        low = min(low, pair.difference(pair.lowest).reaching(reach).low)
        high = max(high, pair.difference(pair.highest).reaching(reach).high)
    if adjusted >= 1 - LEVEL:
        # The test finds nothing odd in no difference at all, so the interval cannot rule it out.
        low = min(low, 0.0)
        high = max(high, 0.0)
    difference = difference.model_copy(update={"low": low, "high": high})
    if is_score(pair.scorer):
        difference = difference.of_scores
    baseline = pair.estimate(pair.before)
    margin = pair.margin or _usual_margin(pair.scorer, baseline.value)
    cases: int | None = None
    if margin and isfinite(fixed_size.deviation) and fixed_size.deviation > 0:
        alone = 1 - (1 - LEVEL) / comparisons
        cases = items_for_reach(margin, fixed_size.deviation, pair.reach(alone))
        if pair.margin and not is_score(pair.scorer):
            cases = max(cases, FEWEST_EQUIVALENT)
    reason = obstacle(pair.baseline.count, pair.way.count)
    baseline_ahead, way_ahead = items_ahead(pair.gains)
    ahead = (baseline_ahead, way_ahead)
    if pair.less_is_better:
        # Whoever has less is ahead.
        ahead = (way_ahead, baseline_ahead)
    return Comparison(
        scorer=pair.scorer,
        baseline=pair.baseline.names,
        way=pair.way.names,
        before=baseline,
        after=pair.estimate(pair.after),
        difference=difference,
        p=p,
        adjusted=p.model_copy(update={"value": adjusted}),
        verdict="no verdict" if reason else _verdict(pair, difference, adjusted),
        reason=reason,
        planned=pair.is_planned,
        margin=margin,
        cases=cases,
        one_sided=pair.one_sided,
        ahead=ahead,
    )


def _verdict(pair: _Pair, difference: Difference, adjusted: float) -> Verdict:
    # The interval has to agree with the test: it also holds what missing cells leave open. Differences
    # that are all alike have none, and are odd by the test alone.
    agrees = difference.excludes(0.0) or difference.may_differ is not None
    if adjusted < 1 - LEVEL and agrees:
        ahead = (difference.value > 0) != pair.less_is_better
        if ahead:
            return "better"
        return "worse"
    margin = pair.margin
    items = len(set(map(pair.cluster_of, pair.gains)))
    enough = is_score(pair.scorer) or items >= FEWEST_EQUIVALENT
    if margin and enough and -margin < difference.low and difference.high < margin:
        return "equivalent"
    return "cannot tell"


def _usual_margin(scorer: str, baseline_value: float) -> float:
    """The difference that sample sizes are given for where none is stated."""
    if is_score(scorer):
        return POINTS
    return TENTH * abs(baseline_value)
