"""Rows become verdicts that are right as often as they say, and sentences a person can act on."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from kit.bench.grid.comparison import Comparison, compare, summarise
from kit.bench.statistics.sign_flips import sign_flip_test
from kit.bench.statistics.verdict import possible
from kit.core.errors import DataError
from tests.pages import flat_page

Row = dict[str, Any]


def simulated(
    pattern: str,
    truth: float,
    seed: int,
    cases: int = 120,
    repeats: int = 1,
    scorer: str = "mixed_exact",
) -> Iterator[Row]:
    """Rows of a Bernoulli model of known truth."""
    drawn = np.random.default_rng(seed).random((cases, repeats)) < truth
    for case in range(cases):
        for repeat in range(repeats):
            way = {"model": "simulated", "pattern": pattern}
            yield {
                **way,
                "case": f"c{case}",
                "repeat": repeat,
                "scorer": scorer,
                "value": float(drawn[case, repeat]),
            }


def test_a_difference_that_is_there_is_called_better_and_in_one_sentence():
    rows = [*simulated("mediated", 0.7, 1), *simulated("direct", 0.92, 2)]
    (found,) = compare(rows, {"pattern": "mediated"}, planned=120)
    assert found.verdict == "better" and found.settled and not found.difference.low <= 0
    assert str(found) in flat_page("statistics.md"), (
        f"docs/statistics.md quotes another sentence than: {found}"
    )
    (back,) = compare(rows, {"pattern": "direct"})
    assert back.verdict == "worse" and back.difference.value == -found.difference.value


def paired(
    first: Sequence[float | None], second: Sequence[float | None], scorer: str = "exact"
) -> list[Row]:
    """Rows of two ways on the same cases."""
    return [
        {"model": way, "case": f"c{case}", "scorer": scorer, "value": value}
        for way, values in (("base", first), ("other", second))
        for case, value in enumerate(values)
    ]


def beside_base(
    first: Sequence[float | None],
    second: Sequence[float | None],
    scorer: str = "exact",
    **options: Any,
) -> Comparison:
    """The second of two ways beside the first."""
    (found,) = compare(paired(first, second, scorer), {"model": "base"}, ("model",), **options)
    return found


@pytest.mark.req("K-17")
def test_a_difference_that_thirty_cases_hide_and_three_hundred_show_is_never_called_none():
    """The first thirty of these cases came out alike: that is no reason to say that more would not help."""
    base = [1.0] * 300
    other = [1.0] * 30 + [0.0, *[1.0] * 9] * 27
    few = beside_base(base[:30], other[:30], planned=30)
    many = beside_base(base, other, planned=300)
    assert (few.verdict, many.verdict) == ("cannot tell", "worse")
    assert few.difference.low < many.difference.value, "what three hundred show was left possible"
    assert (
        possible(few.difference, few.scorer) in str(few)
        and few.cases is not None
        and few.cases > 30
    )


def test_ways_are_equivalent_only_within_a_stated_margin_and_only_when_all_of_the_interval_is():
    alike = [1.0, 0.0] * 200
    unstated = beside_base(alike, alike, planned=400)
    stated = beside_base(alike, alike, planned=400, margin=0.05)
    narrow = beside_base(alike, alike, planned=400, margin=0.001)
    few = beside_base(alike[:20], alike[:20], margin=0.05)
    assert stated.verdict == "equivalent" and str(stated).endswith("equivalent within 5 points")
    assert stated.difference.low > -0.05 and stated.difference.high < 0.05 and stated.settled
    assert unstated.verdict == narrow.verdict == few.verdict == "cannot tell"


def test_what_a_way_does_not_decide_is_named_and_gives_no_verdict_by_its_absence():
    """The other way calls nobody wherever it would have erred: of what it decides all is right."""
    base = [1.0, 1.0, 1.0, 0.0] * 25
    silent: list[float | None] = [1.0, 1.0, None, None] * 25
    found = beside_base(base, silent, "precision", planned=100)
    assert found.after.value == 1.0 and found.verdict == "cannot tell"
    assert found.one_sided == 50 and "50 cases decided on one side only" in str(found)
    assert found.difference.low < -0.2 and found.difference.high > 0.2
    summary = summarise(paired(base, silent, "precision"), ("model",))[1]
    assert (summary.undecided, summary.estimate.n) == (50, 50)
    assert str(summary).endswith(", 50 undecided")
    few: list[float | None] = [0.0, 0.0, 0.0, 0.0] * 24 + [0.0, 0.0, None, 0.0]
    worse = beside_base(base, few, "precision", planned=100)
    assert worse.verdict == "worse" and worse.one_sided == 1, "one case cannot turn it round"


def test_six_hundred_ways_that_are_each_three_times_slower_are_all_called_so():
    """So many comparisons ask for p-values that ten thousand flips could not show."""
    generator = np.random.default_rng(3)
    seconds = generator.lognormal(0, 0.4, 30)
    rows = [
        {"model": f"m{way}", "case": f"c{case}", "scorer": "seconds", "value": value}
        for way in range(601)
        for case, value in enumerate(seconds * (1 if way == 0 else 3))
    ]
    found = compare(rows, {"model": "m0"}, ("model",), planned=30)
    assert {one.verdict for one in found} == {"worse"} and len(found) == 600


def test_a_p_value_below_what_the_flips_can_show_is_printed_as_such():
    generator = np.random.default_rng(4)
    gains = [*generator.normal(1, 1, 60).tolist(), -0.1]
    shown = sign_flip_test(gains)
    assert shown.is_bound and str(shown).startswith("p < ") and shown.value <= 1e-4
    assert not sign_flip_test([0.5] * 10).is_bound
    found = beside_base([0.0] * 61, gains, "seconds", planned=61)
    assert "; p < " in str(found) and "p = " not in str(found)


def test_of_a_dozen_items_every_flip_is_counted():
    gains = [float(size) for size in range(1, 13)]
    gains[4] = -5.0
    gains[2] = -3.0
    sums = [sum(map(float.__mul__, signs, gains)) for signs in product((1.0, -1.0), repeat=12)]
    as_odd = sum(abs(one) >= sum(gains) for one in sums)
    shown = sign_flip_test(gains)
    assert shown.value == as_odd / 4096 and not shown.is_bound


def test_an_interval_of_few_pairs_of_shares_ends_at_one_and_that_of_seconds_does_not():
    def way(pattern: str, scorer: str, values: tuple[float, ...]) -> Iterator[Row]:
        yield from (
            {"model": "m", "pattern": pattern, "case": f"c{n}", "scorer": scorer, "value": v}
            for n, v in enumerate(values)
        )

    for scorer, reach in (("exact", 1.0), ("seconds", np.inf)):
        rows = [
            *way("a", scorer, (0.0, 0.0, 0.0, 1.0)),
            *way("b", scorer, (1.0,) * 4),
            *way("c", scorer, (1.0,) * 4),
        ]
        ends = [found.difference.high for found in compare(rows, {"pattern": "a"})]
        assert all(0.75 < end <= reach for end in ends) and (max(ends) > 1.0) == (reach > 1.0), ends


@pytest.mark.req("K-17")
def test_an_interval_leaves_zero_out_only_beside_a_verdict():
    """Ten ways with gaps of every size: what is not told apart after the correction does not look
    so by its interval."""
    rows = [
        row for way in range(10) for row in simulated(f"p{way:02}", 0.5 + 0.05 * way, 10 + way, 100)
    ]
    verdicts = compare(rows, {"pattern": "p00"})
    assert {one.verdict for one in verdicts} == {"better", "cannot tell"}
    assert [one.difference.excludes(0.0) for one in verdicts] == [
        one.verdict == "better" for one in verdicts
    ]


def test_a_baseline_nobody_ran_is_named_with_those_that_were():
    with pytest.raises(DataError, match=r"no row is of the baseline 'medaited': did you mean"):
        compare(list(simulated("mediated", 0.9, 1)), {"pattern": "medaited"}, by=("pattern",))


def test_an_answer_that_is_played_again_and_again_counts_once():
    def rows(way: str, right: int, times: int) -> list[Row]:
        common = {"model": way, "scorer": "exact"}
        return [
            {**common, "case": f"c{n}", "repeat": r, "value": float(n < right)}
            for n in range(20)
            for r in range(times)
        ]

    first, again = (
        compare([*rows("a", 14, times), *rows("b", 8, times)], {"model": "a"}, by=("model",))
        for times in (1, 10)
    )
    assert (first[0].difference, first[0].p) == (again[0].difference, again[0].p)


def test_an_interval_beside_which_nothing_can_be_told_holds_no_difference_at_all():
    """Some cost less, each by more: odd by the interval of a mean, and not by the test of any look."""
    costs = [0.0125] * 39
    steps = [1 + case % 9 for case in range(14)]
    less = [0.0125 - 0.0004 * step for step in steps] + [0.0125] * 25
    (found,) = compare(paired(costs, less, "cost"), {"model": "base"}, planned=20)
    assert found.verdict == "cannot tell" and found.adjusted.value > 0.05
    assert found.difference.low < 0 == found.difference.high
    assert "lower is possible" in str(found)
