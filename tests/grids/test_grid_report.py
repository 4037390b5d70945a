"""What a grid shows: its command, its report, its rows, and what a cell costs."""

import json
import re
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.report import compare_run, report
from kit.bench.grid.results import read_results
from kit.bench.grid.run import Bar, run_grid
from kit.bench.run_page.page import run_page
from kit.cli import main
from kit.home import HOME
from tests.grids.test_grid import MIXED, OPENER, play, spec_of, write


def test_the_command_reports_every_simulated_figure_as_such_and_is_quiet_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(
        tmp_path,
        models=["simulated-test", "offline"],
        baseline={"model": "simulated-test"},
        sub_agents="stubs",
    )
    for played in ("16 cells played, 0 were there", "0 cells played, 16 were there"):
        assert main(["grid", str(path), "--out", str(tmp_path / "out")]) == 0
        out, err = capsys.readouterr()
        assert played in out and err == ""
    assert out.startswith("# small: offline stand-in and simulated\n")
    told = [line for line in out.splitlines() if line.startswith("- ")]
    assert (
        len(told) == 3
        and "simulated-test" in told[1]
        and "paired by 8 items" in told[2]
        and "after Holm" in told[2]
    )
    assert (tmp_path / "out" / "report.md").read_text() in out
    assert {row["kind"] for row in read_results(tmp_path / "out")} == {
        "simulated",
        "offline stand-in",
    }


def test_the_bar_is_one_line_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Bar() as bar:
        for done in (1, 50, 100):
            bar(done, 100)
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1 and shown.endswith("\n") and "100 of 100 cells" in shown


def test_the_harness_adds_little_to_a_turn_as_a_command_says_that_plays_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Python calls, which no other work on the machine can change."""
    path = write(tmp_path, cases=[{**MIXED, "every": 20}], sub_agents="stubs")
    assert main(["grid", str(path), "--cost", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    costs = re.search(r"turn +([\d,]+) calls .* harness +(\d+) calls", printed)
    assert costs and 100 < int(costs[2]) < 420 < int(costs[1].replace(",", ""))
    assert not (tmp_path / "out").exists()


@pytest.mark.req("PC1-S9.3-3")
def test_a_report_on_quality_sets_every_vertical_against_its_own_threshold(tmp_path: Path):
    quality: dict[str, Any] = {
        "scorers": ["exact", "response_quality"],
        "verdicts": ["response_quality"],
    }
    spec = spec_of(tmp_path, cases=[{"file": "data/cases/single.jsonl", "every": 40}], **quality)
    run, rows = play(spec, tmp_path / "out")
    lines = report(spec, run).partition("## Against the cards' own thresholds\n\n")[2].splitlines()
    assert len(lines) == len(spec.grid.patterns) * len(
        {row["domain"] for row in rows} & set(spec.deck.cards)
    )
    assert all(
        ", response_quality: " in line and (" reached" in line or " missed" in line)
        for line in lines
    )


def test_a_report_holds_of_a_turn_no_more_than_its_scores(tmp_path: Path):
    """A sample of `python -m tests.grid_growth`, which reports a hundred thousand cells in 300 MB."""
    spec = read_grid(HOME / "data" / "grids" / "patterns_example.yaml")
    spec = replace(spec, grid=spec.grid.model_copy(update={"verdicts": ("exact",)}))
    text = (
        HOME / "data" / "results" / "reference" / "patterns_example" / "results.jsonl"
    ).read_text()
    peaks = list[int]()
    for size in (3, 1, 3):  # the first brings what is imported and kept for good
        (tmp_path / "results.jsonl").write_text(text * size)
        tracemalloc.start()
        compare_run(spec, tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[2] - peaks[1]) / (2 * len(text.splitlines())) < 700


def small_talk(folder: Path, *messages: str) -> dict[str, Any]:
    """Fields of a grid of two patterns, with a case for each message; the first half is of one domain."""
    cases: list[dict[str, Any]] = []
    for n, message in enumerate(messages):
        ask = {"user": message, "expected_sub_agents": []}
        domain = "greeting" if 2 * n < len(messages) else "parting"
        cases.append({"id": f"c{n:02}", "kind": "small_talk", "domain": domain, "turns": [ask]})
    (folder / "talk.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
    return {
        "models": ["offline"],
        "specs": {},
        "cases": [{"file": "talk.jsonl"}],
        "patterns": ["mediated", "direct"],
        "sub_agents": "stubs",
        "baseline": {"pattern": "mediated"},
    }


def test_a_grid_that_grows_in_its_folder_keeps_its_first_plan_and_is_tested_for_any_look(
    tmp_path: Path,
):
    messages = [f"hello number {n}" for n in range(12)]
    texts: list[str] = []
    for size in (6, 12):
        spec = spec_of(tmp_path, **small_talk(tmp_path, *messages[:size]))
        texts.append(report(spec, run_grid(spec, tmp_path / "out", OPENER, 1)))
    assert all("Planned: 6 plays of each way." in text for text in texts)
    looks = [", at any look" in text for text in texts]
    assert looks == [False, True]


def test_cases_that_ask_the_same_or_are_of_one_domain_count_as_one_cluster(tmp_path: Path):
    messages = ["hello", "Hello", "good morning", "good morning", "bye", "bye"]
    talk = small_talk(tmp_path, *messages)
    warning = "6 cases ask what another asks, in the same words (such as 'c00')"

    def told(**fields: Any) -> str:
        spec = spec_of(tmp_path, **talk, **fields)
        return report(spec, run_grid(spec, tmp_path / "out", OPENER, 1))

    text = told()
    assert "paired by 6 items in 3 clusters" in text and warning in text
    text = told(cluster="domain")
    assert "paired by 6 items in 2 clusters" in text and warning not in text
    # Whoever names a field of their own is taken at their word.
    text = told(cluster="cluster")
    assert "paired by 6 items;" in text and warning not in text


@pytest.mark.req("SAT-24")
def test_a_fault_that_was_asked_for_and_never_happened_voids_its_cell(tmp_path: Path):
    faults = {
        "none": [],
        "down": ["rewards=down"],
        "crash": ["rewards=raise"],
        "slow": ["orchestrator=slow_drip:0.1"],
    }
    spec = spec_of(
        tmp_path, patterns=["mediated", "monolith"], faults=faults, verdicts=["exact", "seconds"]
    )
    _, rows = play(spec, tmp_path / "out")
    happens = {"down": "rewards=error_envelope", "crash": "rewards=raise"}
    voids: Counter[tuple[str, str]] = Counter()
    for row in rows:
        void = row.get("void")
        if row["pattern"] == "mediated":
            hits = row["fault"] not in happens or "rewards" in row["called"]
            assert void == (None if hits else f"{happens[row['fault']]} never happened")
        if void:
            voids[row["fault"], row["pattern"]] += 1
            assert set(row["scores"].values()) == {None}
    assert 0 < voids["crash", "mediated"] < len(spec.cases)
    assert voids["crash", "monolith"] == len(spec.cases), "it asks nobody"
    ways, _ = compare_run(spec, tmp_path / "out")
    crash = {"fault": "crash", "pattern": "mediated"}.items()
    (seconds,) = [way for way in ways if way.scorer == "seconds" and crash <= way.way.items()]
    assert seconds.undecided == voids["crash", "mediated"]


@pytest.mark.req("SAT-24")
def test_a_way_in_which_no_fault_could_happen_says_so_in_the_report_and_on_its_page(tmp_path: Path):
    line = "monolith / broken: no verdict, rewards=raise never happened"
    # The second time every cell is there, and the report alone is another one.
    for baseline in ({}, {"pattern": "mediated"}):
        spec = spec_of(
            tmp_path,
            patterns=["mediated", "monolith"],
            faults={"none": [], "broken": ["rewards=raise"]},
            baseline=baseline,
        )
        text = report(spec, run_grid(spec, tmp_path / "out", OPENER, 1))
        assert f"- simulated-test / {line}\n" in text and "## Against \n" not in text
        assert f"<p>{line}.</p>" in run_page(tmp_path / "out")
