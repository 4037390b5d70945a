"""Two stored runs are compared by case, and only where both had the same cases and the same judges."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.run import PROVENANCE
from kit.bench.grid.run_pair import compare_runs, describe_runs
from kit.core.errors import DataError
from kit.home import HOME
from tests.cli.test_cli import refused
from tests.cli.test_cli import run as kit
from tests.grids.test_grid import MIXED, play, spec_of

pytestmark = pytest.mark.req("SAT-24")


def stored(folder: Path, name: str, **fields: Any) -> Path:
    """A run with these fields, in a folder of its own."""
    (folder / name).mkdir()
    play(
        spec_of(folder / name, **{"cases": [MIXED], "sub_agents": "stubs", **fields}),
        folder / name / "out",
    )
    return folder / name / "out"


def test_runs_over_the_same_cases_are_paired_by_case(tmp_path: Path):
    law = {"latency": {"median": 1.0, "sigma": 0.4}, "drop": 0.9, "under_report": 1.0}
    specs = {"simulated-bad": {"provider": "simulated", "law": law}}
    good = stored(tmp_path, "good")
    bad = stored(tmp_path, "bad", models=["simulated-bad"], specs=specs)
    (one,) = compare_runs(good, bad)
    assert one.verdict == "worse" and one.difference.n == 8 and one.way == {"run": "after"}
    printed = kit("compare", str(good), str(bad), "--by", "exact", "--by", "seconds")
    names = [line.partition(":")[0] for line in printed.stdout.splitlines()]
    assert printed.returncode == 0 and names == ["before", "after", "exact", "seconds"]
    assert "simulated; virtual time, sub-agents: stubs" in printed.stdout
    example = str(HOME / "data" / "grids" / "patterns_example.yaml")
    for command in (("compare", str(good), str(bad)), ("grid", example)):
        misspelt = kit(*command, "--margin", "exat=0.1")
        refused(misspelt, "margin of 'exat', which is not compared: did you mean 'exact'")
        for points in ("5", "exact=1"):
            refused(kit(*command, "--margin", points), "'exact'", "write 0.05 for 5 points")
    with pytest.raises(DataError, match=r"write 0\.05 for 5 points"):
        compare_runs(good, bad, margin={"exact": 5})


def test_runs_whose_figures_are_of_another_sort_say_so_beside_their_verdicts(tmp_path: Path):
    simulated = stored(tmp_path, "simulated", models=["simulated-test"])
    stand_in = stored(tmp_path, "stand_in", models=["offline"], sub_agents="cards")
    text = json.loads((stand_in / PROVENANCE).read_text())
    text["runs"]["1"]["clock"] = "real"
    (stand_in / PROVENANCE).write_text(json.dumps(text))
    lines = describe_runs(simulated, stand_in)
    assert "simulated; virtual time" in lines[0] and "offline stand-in; real time" in lines[1]
    assert [line.rpartition(" are no comparison")[0].split()[0] for line in lines[2:]] == [
        "Simulated",
        "Seconds",
        "The",
    ]


def test_other_cases_other_judges_and_other_ways_are_refused(tmp_path: Path):
    few = [{**MIXED, "every": 80}]
    whole = stored(tmp_path, "whole", cases=few)
    old = tmp_path / "old"
    shutil.copytree(whole, old)
    text = json.loads((old / PROVENANCE).read_text())
    del text["runs"]["1"]["inputs"]["judges"]
    (old / PROVENANCE).write_text(json.dumps(text))
    for other, sentence in (
        (stored(tmp_path, "part"), "cannot be compared: they were played over other case files"),
        (stored(tmp_path, "judged", cases=few, scorers=["exact", "strict"]), "other judges"),
        (
            stored(tmp_path, "both", cases=few, patterns=["mediated", "direct"]),
            r"the runs have other patterns, \['mediated'\] and \['direct', 'mediated'\]",
        ),
        (old, "judges .* and unknown"),
    ):
        with pytest.raises(DataError, match=sentence):
            compare_runs(whole, other)
