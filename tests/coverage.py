"""`python -m tests.coverage [--quick]`: how often printed intervals hold the truth, and how often a
comparison claims what is not so, on simulated ways of known truth.

Prints a line for each setting and exits with 1 where one breaks its bar by more than two standard
errors: an interval at 95 % holds the truth at least 92 times in 100, and of a hundred sets of
comparisons at most 5 hold a false claim, whatever was lost, undecided, repeated or looked at again.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np

from kit.bench.case import Ask, Case
from kit.bench.drift import measure_drift
from kit.bench.grid.comparison import Clusters, Comparison, compare
from kit.bench.grid.provenance import equal_messages
from kit.bench.routing_report import RoutedTurn
from kit.bench.scoring.agreement import agreement
from kit.bench.scoring.labelling_sheet import Item, Label
from kit.bench.statistics.clusters import share_of_sums, sum_clusters
from kit.bench.statistics.difference import difference_of, newcombe
from kit.bench.statistics.means import SCORES, mean_of
from kit.metrics.estimate import wilson

HOLDS = 0.92
CLAIMS = 0.05
FULL = 1_000
QUICK = 150
Random = np.random.Generator
Row = dict[str, Any]


class Setting(NamedTuple):
    """One simulation: each try says whether the interval held the truth, or a false claim was made."""

    name: str
    holds: bool
    """True for an interval, which is to hold the truth; False for a claim that is not to be made."""
    play: Callable[[Random], bool]
    cost: int = 1
    """A setting that takes long is tried so many times less often."""


class Found(NamedTuple):
    setting: Setting
    share: float
    tries: int

    @property
    def error(self) -> float:
        return sqrt(self.bar * (1 - self.bar) / self.tries)

    @property
    def bar(self) -> float:
        return HOLDS if self.setting.holds else CLAIMS

    @property
    def breaks(self) -> bool:
        if self.setting.holds:
            return self.share < self.bar - 2 * self.error
        return self.share > self.bar + 2 * self.error

    def __str__(self) -> str:
        sign = ">=" if self.setting.holds else "<="
        mark = "BREACH" if self.breaks else "ok"
        return f"{self.setting.name:72} {self.share:7.1%} {sign} {self.bar:.0%}  {self.tries:6,} tries  {mark}"


def play(setting: Setting, tries: int, seed: int = 5) -> Found:
    """The share of tries that held, or that claimed."""
    tries = max(20, tries // setting.cost)
    random = np.random.default_rng(seed)
    hits = sum(setting.play(random) for _ in range(tries))
    return Found(setting, hits / tries, tries)


# intervals


def share_holds(items: int, truth: float, random: Random) -> bool:
    return not wilson(int((random.random(items) < truth).sum()), items).excludes(truth)


def shares_differ_holds(items: int, random: Random) -> bool:
    """Two shares of different items."""
    first, second = (int((random.random(items) < truth).sum()) for truth in (0.9, 0.8))
    return not newcombe((first, items), (second, items)).excludes(-0.1)


def cluster_share_holds(
    groups: int, sizes: str, alike: float, truth: float, random: Random
) -> bool:
    """Outcomes of clusters; `alike`: the correlation within one."""
    each = np.full(groups, 5) if sizes == "equal" else random.integers(1, 12, groups)
    odds = (1 - alike) / alike
    shares = random.beta(truth * odds, (1 - truth) * odds, groups)
    names = np.repeat(np.arange(groups), each)
    outcomes = random.random(len(names)) < shares[names]
    found = share_of_sums(*sum_clusters(outcomes.tolist(), names.tolist()))
    return not found.excludes(truth)


def mean_holds(
    draw: Callable[[Random, int], Any], truth: float, items: int, random: Random
) -> bool:
    return not mean_of(draw(random, items).tolist()).excludes(truth)


ORDINAL = (0.0, 0.25, 0.5, 0.75, 1.0)
NEAR_CEILING = (0.02, 0.03, 0.05, 0.15, 0.75)


def ordinal_holds(items: int, random: Random) -> bool:
    """A judge of five marks, most of them the best."""
    values = random.choice(ORDINAL, items, p=NEAR_CEILING)
    truth = float(np.dot(ORDINAL, NEAR_CEILING))
    return not mean_of(values.tolist(), within=SCORES).excludes(truth)


def cluster_mean_holds(groups: int, random: Random) -> bool:
    """Costs of cases that come in clusters of unequal size."""
    names = np.repeat(np.arange(groups), random.integers(1, 8, groups))
    own = random.lognormal(0, 0.5, groups)[names]
    values = own * random.lognormal(0, 0.5, len(names))
    return not mean_of(values.tolist(), names.tolist()).excludes(exp(0.25))


def paired_shares_hold(items: int, only_first: float, only_second: float, random: Random) -> bool:
    drawn = random.choice(3, items, p=(only_first, only_second, 1 - only_first - only_second))
    gains = {str(place): float(one == 1) - float(one == 0) for place, one in enumerate(drawn)}
    return not difference_of(gains).excludes(only_second - only_first)


def paired_scores_hold(items: int, random: Random) -> bool:
    """Three repeats of each case, whose difficulty both ways share."""
    truth = random.beta(4, 1, items)
    first, second = ((random.random((items, 3)) < truth[:, None]).mean(axis=1) for _ in range(2))
    gains = {str(place): float(gain) for place, gain in enumerate(second - first)}
    return not difference_of(gains).excludes(0.0)


def three_times_slower_holds(items: int, random: Random) -> bool:
    seconds = random.lognormal(0, 1, items)
    rows = [*_rows("base", seconds, "seconds"), *_rows("slow", 3 * seconds, "seconds")]
    (found,) = compare(rows, {"model": "base"}, ("model",), planned=items)
    return not found.difference.excludes(2 * exp(0.5))


def kappa_holds(
    items: int, sensitivity: float, specificity: float, good: float, random: Random
) -> bool:
    labels = random.random(items) < good
    drawn = random.random(items)
    verdicts = np.where(labels, drawn < sensitivity, drawn >= specificity)
    if len(set(labels.tolist())) < 2:
        return True  # refused: nothing is printed
    passed = good * sensitivity + (1 - good) * (1 - specificity)
    agreed = good * sensitivity + (1 - good) * specificity
    by_chance = good * passed + (1 - good) * (1 - passed)
    found = agreement(labels.tolist(), verdicts.tolist())
    return not found.excludes((agreed - by_chance) / (1 - by_chance))


# claims


def equal_ways_claim(ways: int, items: int, random: Random) -> bool:
    rows = [
        row
        for way in range(ways + 1)
        for row in _rows(f"way {way}", random.random(items) < 0.8, "exact")
    ]
    return _claims(compare(rows, {"model": "way 0"}, ("model",), planned=items))


def equal_seconds_claim(items: int, random: Random) -> bool:
    rows = [
        row
        for way in range(4)
        for row in _rows(f"way {way}", random.lognormal(0, 1, items), "seconds")
    ]
    return _claims(compare(rows, {"model": "way 0"}, ("model",), planned=items))


def eight_looks_claim(first: int, planned: int | None, scorer: str, random: Random) -> bool:
    """Whoever is told how many cases a difference takes plays as many, at most twice as many as
    before, and looks again."""
    most = 4_000
    if scorer == "exact":
        drawn: Any = (random.random((2, most)) < 0.75).astype(float)
    else:
        drawn = random.lognormal(0, 0.5, (2, most))
    items = first
    for _ in range(8):
        rows = [
            *_rows("base", drawn[0, :items], scorer),
            *_rows("other", drawn[1, :items], scorer),
        ]
        (found,) = compare(rows, {"model": "base"}, ("model",), planned=planned)
        if found.verdict in ("better", "worse"):
            return True
        items = min(most, max(items + 10, min(found.cases or 0, 2 * items)))
    return False


def lost_cells_claim(items: int, random: Random) -> bool:
    """Each way loses 1.9 % of its cells: the one those it would have right, the other those it would not."""
    before, after = (random.random(items) < 0.8 for _ in range(2))
    lost = int(0.019 * items)
    rows = [
        *_rows("base", before, "exact", lost=np.flatnonzero(before)[:lost]),
        *_rows("other", after, "exact", lost=np.flatnonzero(~after)[:lost]),
    ]
    return _claims(compare(rows, {"model": "base"}, ("model",), planned=items))


def undecided_cells_claim(items: int, random: Random) -> bool:
    """One of two equal ways calls nobody on seven in ten of the cases that it would err on."""
    before, after = (random.random(items) < 0.8 for _ in range(2))
    silent = np.flatnonzero(~after & (random.random(items) < 0.7))
    rows = [
        *_rows("base", before, "precision"),
        *_rows("other", after, "precision", undecided=silent),
    ]
    return _claims(compare(rows, {"model": "base"}, ("model",), planned=items))


def cluster_claims(clusters: int, each: int, random: Random) -> bool:
    """Ways that are equal over all there is, each with its luck on a whole cluster."""
    names = np.repeat(np.arange(clusters), random.integers(1, 2 * each, clusters))
    luck = random.beta(2, 1, (2, clusters))[:, names]
    outcomes = random.random(luck.shape) < luck
    belongs = {str(case): f"cluster {name}" for case, name in enumerate(names)}
    return _claims(_two(outcomes, belongs))


def duplicates_claim(random: Random) -> bool:
    """Twenty messages, each under ten ids, of which a way says the same each time."""
    outcomes = np.repeat(random.random((2, 20)) < 0.7, 10, axis=1)
    return _claims(_two(outcomes, equal_messages(_TWENTY_TEN_TIMES)))


def equivalence_claims(items: int, only_second: float, random: Random) -> bool:
    """The difference is the margin itself: no equivalence."""
    margin = 0.05
    drawn = random.choice(
        3, items, p=(only_second - margin, only_second, 1 - 2 * only_second + margin)
    )
    rows = [*_rows("base", drawn == 0, "exact"), *_rows("other", drawn == 1, "exact")]
    (found,) = compare(rows, {"model": "base"}, ("model",), planned=items, margin=margin)
    return found.verdict == "equivalent"


def rarely_slower_claims(items: int, scatter: float, random: Random) -> bool:
    """One case in twenty takes four seconds more, on the mean twice the margin; all others take as much,
    give or take the scatter."""
    seconds = np.full(items, 2.0)
    slower = random.normal(2.0, scatter, items) + 4.0 * (random.random(items) < 0.05)
    rows = [*_rows("base", seconds, "seconds"), *_rows("other", slower, "seconds")]
    margin = {"seconds": 0.1}
    (found,) = compare(rows, {"model": "base"}, ("model",), planned=items, margin=margin)
    return found.verdict == "equivalent"


def drift_claims(random: Random) -> bool:
    """Eight verticals, of which none has drifted."""
    names = [f"vertical-{place}" for place in range(8)]
    evaluated = [
        RoutedTurn(
            query="q",
            expected=(name,) if random.random() < 0.85 else ("other",),
            called=(name,),
        )
        for name in names
        for _ in range(100)
    ]
    sheet: list[Item] = []
    for name in names:
        for place in range(40):
            agents = (name,) if random.random() < 0.85 else ("other",)
            label = Label(turn_id=f"{name}-{place}", agents=agents)
            sheet.append(
                Item(turn_id=label.turn_id, strata=(name,), message="m", reply="r", label=label)
            )
    return any(row.significant for row in measure_drift(sheet, evaluated))


_TWENTY_TEN_TIMES = [
    Case(
        id=str(10 * message + copy),
        kind="single",
        domain="shop",
        turns=(Ask(user=f"message {message}", expected=("shop",)),),
    )
    for message in range(20)
    for copy in range(10)
]


def _two(outcomes: Any, clusters: Clusters) -> list[Comparison]:
    rows = [*_rows("base", outcomes[0], "exact"), *_rows("other", outcomes[1], "exact")]
    return compare(
        rows, {"model": "base"}, ("model",), planned=outcomes.shape[1], clusters=clusters
    )


def _claims(found: Sequence[Comparison]) -> bool:
    return any(one.verdict in ("better", "worse") for one in found)


def _rows(
    way: str,
    values: Any,
    scorer: str,
    *,
    lost: Sequence[int] | Any = (),
    undecided: Sequence[int] | Any = (),
) -> Iterator[Row]:
    """Tidy rows of one way, a case each."""
    gone = {int(case) for case in lost}
    silent = {int(case) for case in undecided}
    for case, value in enumerate(values):
        row: Row = {"model": way, "case": str(case), "scorer": scorer, "value": float(value)}
        if case in gone:
            row.update(value=None, lost=True)
        elif case in silent:
            row.update(value=None)
        yield row


def _rarely_slower(random: Random, items: int) -> Any:
    """Two seconds, give or take a tenth, and one time in twenty four more."""
    return random.normal(2, 0.1, items) + 4.0 * (random.random(items) < 0.05)


LAWS: Mapping[str, tuple[Callable[[Random, int], Any], float]] = {
    "log-normal, sigma 1": (lambda random, n: random.lognormal(0, 1, n), exp(0.5)),
    "log-normal, sigma 0.5": (lambda random, n: random.lognormal(0, 0.5, n), exp(0.125)),
    "exponential": (lambda random, n: random.exponential(1, n), 1.0),
    "normal": (lambda random, n: random.normal(0, 1, n), 0.0),
}


JUDGES = (
    (0.97, 0.97, 0.5),
    (0.9, 0.9, 0.5),
    (0.9, 0.6, 0.8),
    (0.99, 0.99, 0.3),
    (0.9, 0.9, 0.1),
    (1.0, 0.4, 0.5),
    (1.0, 0.2, 0.5),
    (1.0, 0.14, 0.65),
    (0.4, 1.0, 0.5),
)
"""How many of the good replies a judge passes, how many of the others it fails, and how many are good; the
last four are lenient or strict."""


def settings() -> Iterator[Setting]:
    """All of them, intervals first."""
    yield from _shares()
    yield from _means()
    yield from _pairs()
    yield from _claim_settings()


def _shares() -> Iterator[Setting]:
    for items, truth in ((10, 0.5), (20, 0.7), (50, 0.9), (60, 0.94), (200, 0.97)):
        yield Setting(f"share, {items} items, {truth}", True, partial(share_holds, items, truth))
    for items in (20, 100):
        name = f"two shares of {items} items each"
        yield Setting(name, True, partial(shares_differ_holds, items))
    for groups in (3, 8, 20, 40):
        for sizes in ("equal", "unequal"):
            for alike in (0.1, 0.5):
                for truth in (0.5, 0.9, 0.97):
                    name = f"share, {groups} clusters of {sizes} size, alike {alike}, {truth}"
                    check = partial(cluster_share_holds, groups, sizes, alike, truth)
                    yield Setting(name, True, check)
    for items in (20, 60, 200):
        for rates in JUDGES:
            name = f"kappa, {items} labels, {rates[0]} passed, {rates[1]} failed, {rates[2]} good"
            yield Setting(name, True, partial(kappa_holds, items, *rates), cost=2)


def _means() -> Iterator[Setting]:
    for law, (draw, truth) in LAWS.items():
        for items in (4, 5, 10, 20, 50):
            name = f"mean of {items}, {law}"
            yield Setting(name, True, partial(mean_holds, draw, truth, items))
    for items in (60, 200):
        name = f"mean of {items}, one in 20 takes 4 s more"
        yield Setting(name, True, partial(mean_holds, _rarely_slower, 2.2, items))
    for items in (5, 10, 20, 50):
        name = f"mean of {items} marks near the ceiling"
        yield Setting(name, True, partial(ordinal_holds, items))
    for groups in (20, 40):
        name = f"mean of costs in {groups} clusters of unequal size"
        yield Setting(name, True, partial(cluster_mean_holds, groups))


def _pairs() -> Iterator[Setting]:
    for items in (10, 20, 50, 150):
        for shares in ((0.01, 0.01), (0.05, 0.05), (0.1, 0.1), (0.0, 0.05), (0.1, 0.2)):
            name = f"paired shares, {items} items, {shares[0]} and {shares[1]} differ"
            yield Setting(name, True, partial(paired_shares_hold, items, *shares))
    for items in (10, 30):
        name = f"paired scores of {items} items, three repeats"
        yield Setting(name, True, partial(paired_scores_hold, items))
    for items in (10, 20, 50):
        name = f"three times the seconds, {items} items, log-normal, sigma 1"
        yield Setting(name, True, partial(three_times_slower_holds, items))


def _claim_settings() -> Iterator[Setting]:
    for ways, items in ((1, 50), (6, 60), (20, 60)):
        name = f"{ways} equal ways, {items} cases"
        yield Setting(name, False, partial(equal_ways_claim, ways, items), cost=1 + ways // 10)
    for items in (10, 20, 50):
        name = f"3 ways of equal seconds, {items} cases"
        yield Setting(name, False, partial(equal_seconds_claim, items), cost=2)
    for first, planned in ((30, None), (30, 30), (60, 60), (60, 240)):
        for scorer in ("exact", "seconds"):
            plan = "nothing planned" if planned is None else f"{planned} planned"
            name = f"eight looks at {scorer}, first at {first} cases, {plan}"
            check = partial(eight_looks_claim, first, planned, scorer)
            yield Setting(name, False, check, cost=4)
    for items in (500, 2_000):
        name = f"equal ways lose 1.9 % of {items} cells, right ones here, wrong ones there"
        yield Setting(name, False, partial(lost_cells_claim, items), cost=1 + items // 500)
    for items in (100, 400):
        name = f"equal ways, one undecided where it errs, {items} cases"
        yield Setting(name, False, partial(undecided_cells_claim, items), cost=2)
    for clusters in (10, 40):
        name = f"equal ways, {clusters} clusters of cases"
        yield Setting(name, False, partial(cluster_claims, clusters, 5))
    yield Setting("equal ways, 20 messages under 10 ids each", False, duplicates_claim)
    for items, share in ((60, 0.05), (150, 0.05), (400, 0.05), (400, 0.1), (1_000, 0.1)):
        name = f"called equivalent at the margin, {items} cases, {share} differ"
        yield Setting(name, False, partial(equivalence_claims, items, share), cost=1 + items // 500)
    for items in (10, 20, 60, 100):
        for scatter in (0.0, 0.02):
            name = f"called equivalent within 0.1 s, {items} cases, one in 20 takes 4 s more, scatter {scatter}"
            yield Setting(name, False, partial(rarely_slower_claims, items, scatter))
    yield Setting("drift of one of 8 verticals, none drifted", False, drift_claims, cost=4)


def main(tries: int) -> int:
    """Prints every setting; returns 1 where one breaks its bar."""
    broken = 0
    for setting in settings():
        found = play(setting, tries)
        broken += found.breaks
        print(found, flush=True)
    print(f"{broken} settings break their bar" if broken else "every setting keeps its bar")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(QUICK if "--quick" in sys.argv else FULL))
