"""Cap, race, capacity and a full store at scale: each held against what arithmetic or a bar says must come out."""

import math
import random
from pathlib import Path
from statistics import NormalDist

import pytest

from kit.core.simulation import Law, LogNormal
from studies import capacity
from studies.racing import PricedModel, Traffic, monthly_figures, play_races
from tests.growth import fill, measure


@pytest.mark.req("SO-15")
def test_race_at_scale_is_the_faster_of_two_laws_for_two_bills():
    law = Law(latency=LogNormal(median=2.0, sigma=0.5), tokens=LogNormal(median=50))
    priced = {"a": PricedModel(law=law, price_in=1.0, price_out=10.0)}
    traffic = Traffic(users=1_200_000, messages=10, share=0.5, busiest=0.1, reads=1000)
    runs = play_races(
        {"delegate": ("a",), "race": ("a", "a")}, priced, reads=traffic.reads, messages=150
    )
    alone, race = monthly_figures(runs, traffic)
    assert traffic.a_month == 6e6
    # 1,000 tokens read at a dollar and 50 written at ten dollars a million are 0.0015 dollars a call
    assert alone.dollars.value == alone.most.value == pytest.approx(9000)
    assert 15_000 < race.dollars.value < race.most.value == pytest.approx(18_000), (
        "the stopped one is paid for, as far as it came at least"
    )
    for share, found in ((0.5, race.p50), (0.95, race.p95)):
        faster = 2.0 * math.exp(0.5 * NormalDist().inv_cdf(1 - math.sqrt(1 - share)))
        assert found.low <= faster <= found.high
    assert race.p95.high < alone.p95.low
    whole = sum(run.seconds for run in runs if run.way == "race") / 150
    assert race.calls_at_once == pytest.approx(2 * 6e6 / 30 * 0.1 / 3600 * whole)


@pytest.mark.req("SO-15")
def test_the_long_turns_of_many_users_are_counted_although_they_are_watched_for_a_moment():
    law = Law(latency=LogNormal(median=1.4, sigma=0.35), tokens=LogNormal(median=60))
    # A core that computes next to nothing delays nobody, however many there are.
    load = capacity.Load(law=law, cpu=1e-6, pause=60.0)
    draws = random.Random(3)

    def seconds() -> float:
        calls = [law.latency.quantile(draws.random()) for _ in range(4)]
        return calls[0] + max(calls[1:3]) + calls[3]

    turns = sorted(seconds() for _ in range(20_000))
    many = capacity.level(load, users=15_000, turns=300)
    assert many.p95.low <= turns[19_000] <= many.p95.high
    assert many.p50.low <= turns[10_000] <= many.p50.high


@pytest.mark.realtime
def test_lists_a_trace_and_metrics_of_a_full_store_are_read_at_once_and_no_loop_waits(
    tmp_path: Path,
):
    """A sample of `make sweeps`, which reads a store of a hundred thousand turns."""
    fill(tmp_path / "kit.db", 3_000)
    sums, *readings = measure(tmp_path / "kit.db")
    assert len(readings) >= 8 and sums.cpu < 1.0
    # The dearest takes 0.05 s of CPU, on a busy machine twice that. Whatever reads the whole store takes more than this.
    assert {figure.name: figure.cpu for figure in readings if figure.cpu > 0.2} == {}
    assert {figure.name: figure.gap for figure in (sums, *readings) if figure.gap > 0.1} == {}
