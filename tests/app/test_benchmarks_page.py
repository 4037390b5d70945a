"""The benchmarks page: verdicts in words, what a grid will cost, the page by a test driver."""

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from streamlit.testing.v1 import AppTest

from kit.bench.grid.cell import cells
from kit.bench.grid.forecast import EXAMPLE, forecast, tokens_of
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.results import read_results
from kit.bench.grid.stored_runs import read_run
from kit.bench.scoring.run_case import turn_id
from kit.cli import main
from kit.home import HOME
from kit.ui.benchmarks import page as benchmarks
from kit.ui.benchmarks.page import csv_of
from tests.app.rooms import app_over, room, shown
from tests.pages import unescaped

# what is kept, and what a grid will ask for


def test_the_example_holds_every_pattern_on_the_same_cases_and_is_simulated():
    run = read_run(EXAMPLE)
    spec = read_grid(HOME / "data/grids/patterns_example.yaml")
    assert run.complete and run.cells == len(list(cells(spec))) and run.kinds == ("simulated",)
    assert (run.baseline, list(run.verdicts)) == (spec.grid.baseline, list(spec.grid.verdicts))
    frame = pd.read_csv(StringIO(csv_of(EXAMPLE).decode()))
    assert set(frame["kind"]) == {"simulated"} and len(frame) == run.cells


def grid(folder: Path, **fields: Any) -> Path:
    path = folder / "grid.yaml"
    asked = {
        "name": "few",
        "models": ["simulated-a"],
        "specs": {"simulated-a": {"provider": "simulated", "law": {}}},
    }
    path.write_text(
        yaml.safe_dump(
            {**asked, "cases": [{"file": "data/cases/mixed.jsonl", "take": 6}], **fields}
        )
    )
    return path


def test_the_dollars_of_a_grid_are_those_of_the_turns_of_the_example(tmp_path: Path):
    seen = tokens_of(EXAMPLE)
    simulated = read_grid(grid(tmp_path, patterns=["direct", "a2a"], repeats=2))
    assert forecast(simulated, seen) == 0
    model = {"provider": "simulated", "law": {}, "price_in": 1.0, "price_out": 10.0}
    priced = read_grid(grid(tmp_path, patterns=["direct"], specs={"simulated-a": model}))
    turn = seen["direct"]
    assert forecast(priced, seen) == pytest.approx(6 * (turn.reads + 10 * turn.writes) / 1e6)
    unpriced = read_grid(grid(tmp_path, models=["gpt-4.1-mini"]))
    assert forecast(unpriced, seen) is None


# figures


# the page


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(tmp_path / "kit.db", monkeypatch):
        yield room("benchmarks")


def test_a_run_is_a_verdict_a_table_figures_and_an_origin_and_says_what_its_figures_are(
    page: AppTest,
):
    page.query_params["run"] = "reference/patterns_example"
    told = shown(page.run())
    assert "The figures are simulated: no claim about a real model follows from them." in told
    assert "6 cannot be told apart." in told and "a2a cannot be told apart from mediated" in told
    assert "a difference of 5 points takes about 1,058 cases" in unescaped(told)
    ways = read_grid(HOME / "data/grids/patterns_example.yaml").grid.patterns
    assert all(f'<tr><th scope="row">{way}</th><td>exact</td>' in told for way in ways)
    assert "Holm" in told and "seconds (less is better)" in told
    drawn = re.findall(r'<img src="data:image/svg[^"]*" alt="([^"]*)"', told)
    assert len(drawn) == 3 and all("simulated" in words for words in drawn)
    spent = re.findall(
        r'<th scope="row">monolith</th>((?:\s*<td class="number">[^<]*</td>)+)', told
    )[-1]
    assert re.findall(r">([^<]+)</td>", spent)[-1] == "not known", "no price is known"
    (made,) = read_run(EXAMPLE).runs
    assert json.loads(page.json[0].value) == made and len(page.get("download_button")) == 2
    assert "monolith is better than mediated" in told
    assert told.index("monolith is better than") < told.index("a2a is worse than")
    assert "Planned: 67 plays of each way." in told
    page.query_params["run"] = "nowhere"
    assert "There is no such run here" in shown(page.run())


def test_broken_and_unfinished_runs_are_told_in_a_sentence(
    page: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(benchmarks, "HOME", tmp_path)
    told = shown(page.run())
    assert "There is none yet" in told and "kit grid FILE.yaml --traces` plays one" in told
    foreign = tmp_path / "grids" / "foreign"
    foreign.mkdir(parents=True)
    (foreign / "results.jsonl").write_text("")
    (foreign / "provenance.json").write_text('{"runs": {}}')
    said = json.loads((EXAMPLE / "provenance.json").read_text())
    said["grid"]["played"] = 100
    text = (EXAMPLE / "results.jsonl").read_text().splitlines(keepends=True)
    for name, lines_of in (("half", text[:100]), ("none", []), ("torn", [*text[:3], '{"cell'])):
        folder = tmp_path / "grids" / name
        folder.mkdir(parents=True)
        (folder / "provenance.json").write_text(json.dumps(said))
        (folder / "timings.jsonl").write_text("")
        (folder / "results.jsonl").write_text("".join(lines_of))
    for name, words in (
        ("half", "Stopped early: 100 of 469 cells"),
        ("none", "Nothing of this run was played"),
        ("torn", "results.jsonl:4: no line of a grid"),
    ):
        page.query_params["run"] = name
        told = shown(page.run())
        assert words in told
        assert "foreign/provenance.json: no provenance of a grid; run the grid again" in told


def test_the_turns_of_a_run_are_listed_by_way_and_one_is_opened(page: AppTest, tmp_path: Path):
    file = grid(
        tmp_path,
        models=["simulated-gpt-5.4-nano"],
        specs={},
        patterns=["mediated", "supervisor"],
        cases=[{"file": "data/cases/mixed.jsonl", "take": 4}],
        baseline={"pattern": "mediated"},
        verdicts=["exact", "seconds"],
    )
    folder = tmp_path / "grids" / "few"
    assert main(["grid", str(file), "--out", str(folder), "--traces"]) == 0
    page.query_params["run"] = "few"
    assert "4 cases were put to 2 ways, 8 scored turns" in shown(page.run())
    rows = read_results(folder)
    chosen_way = page.selectbox(key="bench-way-few").value
    way = [row for row in rows if row["pattern"] == chosen_way]
    table: Any = page.dataframe[0].value
    assert sorted(table["Case"]) == sorted(row["case"] for row in way) and len(way) == 4
    page.query_params["cell"] = turn_id(way[0]["cell"], way[0]["turn"])
    assert shown(page.run()).count('<section class="canvas"') == 1
    page.query_params["run"] = "reference/patterns_example"
    row = read_results(EXAMPLE)[0]
    page.query_params["cell"] = turn_id(row["cell"], row["turn"])
    assert "No trace of this turn is kept" in shown(page.run())
