"""The folder of a grid's run is a log like any other: two of them get a verdict, paired by case."""

from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.report import axes, rows_by_way
from kit.bench.grid.results import read_results
from kit.bench.logs.log_verdict import compare_logs
from kit.bench.logs.reading import read_log
from kit.core.errors import DataError
from kit.home import HOME
from tests.cli.test_cli import run as kit
from tests.grids.test_grid import MIXED, play, spec_of

pytestmark = pytest.mark.req("SAT-24")
RUNS = sorted(path for path in (HOME / "data" / "results" / "reference").iterdir() if path.is_dir())
FEW = {"file": MIXED["file"], "every": 80}
LAW = {"latency": {"median": 1.0, "sigma": 0.4}, "drop": 0.9, "under_report": 1.0}
BAD = {
    "models": ["simulated-bad"],
    "specs": {"simulated-bad": {"provider": "simulated", "law": LAW}},
}


def stored(folder: Path, name: str, **fields: Any) -> str:
    """A run with these fields, in a folder of its own."""
    (folder / name).mkdir()
    spec = spec_of(folder / name, **{"cases": [FEW], "sub_agents": "stubs", **fields})
    play(spec, folder / name / "out")
    return str(folder / name / "out")


def test_runs_over_the_same_cases_are_paired_by_case(tmp_path: Path):
    good = stored(tmp_path, "good", cases=[MIXED])
    bad = stored(tmp_path, "bad", cases=[MIXED], **BAD)
    printed = kit("verdict", good, bad, "--by", "exact")
    names = [line.partition(":")[0] for line in printed.stdout.splitlines()]
    assert printed.returncode == 0 and names[:2] == ["simulated-test", "simulated-bad"]
    assert names[-1] == "exact" and ": worse (" in printed.stdout
    assert "paired by 8 items" in printed.stdout and "at any look" not in printed.stdout
    assert "subagent-kit, simulated, virtual time, sub-agents: stubs" in printed.stdout
    (timed,) = compare_logs(read_log(good), read_log(bad), ["seconds"]).comparisons
    assert timed.before.value > 0


def test_a_way_is_named_where_a_run_has_several(tmp_path: Path):
    run = stored(tmp_path, "both", patterns=["mediated", "direct"])
    first, second = (read_log(f"{run}#simulated-test / {way}") for way in ("mediated", "direct"))
    (one,) = compare_logs(first, second, ["exact"]).comparisons
    assert one.way == {"log": "simulated-test / direct"}
    with pytest.raises(DataError, match=r"holds 2 systems: name one, as in .*#simulated-test / "):
        read_log(run)


def test_a_run_brings_its_own_margin_and_what_it_is_compared_by(tmp_path: Path):
    fields = {"cases": [MIXED], "margin": {"exact": 0.9}, "verdicts": ["exact", "ttft"]}
    first, second = (read_log(stored(tmp_path, name, **fields)) for name in ("one", "other"))
    verdict = compare_logs(first, second)
    (own,) = verdict.comparisons
    assert own.scorer == "exact" and own.verdict == "equivalent"
    assert verdict.uncompared == ("ttft: no verdict, it is compared within one grid alone",)
    (given,) = compare_logs(first, second, ["exact"], margin=0.001).comparisons
    assert given.verdict == "cannot tell", "a margin that is named takes the place of its own"


def test_models_clocks_and_sub_agents_of_another_sort_are_said_to_be_no_comparison(tmp_path: Path):
    virtual = read_log(stored(tmp_path, "virtual"))
    real = read_log(
        stored(tmp_path, "real", models=["offline"], sub_agents="cards", hop="loopback")
    )
    models, clock, sub_agents = compare_logs(virtual, real, ["seconds"]).logs[2:]
    assert models.startswith("Simulated models") and models.endswith("no comparison.")
    assert clock == "Seconds of virtual and of real time are no comparison."
    assert sub_agents.startswith(
        "The sub-agents were played otherwise: tokens, dollars and seconds"
    )
    assert len(compare_logs(virtual, virtual, ["seconds"]).logs) == 2


@pytest.mark.req("S-9")
@pytest.mark.parametrize("folder", RUNS, ids=lambda path: path.name)
def test_a_run_of_an_earlier_version_gets_a_verdict(folder: Path):
    rows = read_results(folder)
    ways = list(rows_by_way(rows, axes(rows)))
    first, second = (f"{folder}#{way}" for way in ways[:2])
    printed = kit("verdict", first, second, "--by", "exact", "--by", "seconds")
    assert printed.returncode == 0 and "sub-agents: unknown" in printed.stdout, printed.stderr
    assert "seconds: " in printed.stdout


def test_other_plays_than_were_planned_are_held_to_the_test_of_any_look(tmp_path: Path):
    first, second = (read_log(stored(tmp_path, name, planned=3)) for name in ("one", "other"))
    verdict = compare_logs(first, second, ["exact"])
    assert not verdict.comparisons[0].planned
    assert "4 plays of it, where 3 was planned" in verdict.logs[0]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cases": [MIXED]}, "are not logs of the same samples"),
        ({"scorers": ["exact", "strict"]}, "exact was scored by another set-up"),
    ],
    ids=["cases", "judges"],
)
def test_other_cases_and_other_judges_are_refused(
    fields: dict[str, Any], sentence: str, tmp_path: Path
):
    whole = read_log(stored(tmp_path, "whole"))
    other = read_log(stored(tmp_path, "other", **fields))
    with pytest.raises(DataError, match=sentence):
        compare_logs(whole, other, ["exact"])
