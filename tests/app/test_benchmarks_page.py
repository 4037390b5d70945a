"""The benchmarks page: verdicts in words, what a grid will cost, the page by a test driver."""

import json
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from streamlit.testing.v1 import AppTest

from kit.bench.grid.cell import cells
from kit.bench.grid.comparison import compare, summarise
from kit.bench.grid.forecast import EXAMPLE, forecast, tokens_of
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.results import read_results
from kit.bench.grid.stored_runs import read_run
from kit.bench.scoring.run_case import turn_id
from kit.cli import main
from kit.home import HOME
from kit.ui.benchmarks import page as benchmarks
from kit.ui.benchmarks.tables import csv_of
from kit.ui.benchmarks.verdict import headline, lines
from tests.app.rooms import app_over, room, shown
from tests.pages import unescaped


def rows(scorer: str = "exact", **ways: Sequence[float]) -> list[dict[str, Any]]:
    """Tidy rows: pattern -> a value for each case."""
    return [
        {
            "model": "simulated-a",
            "pattern": name,
            "case": str(case),
            "scorer": scorer,
            "value": value,
        }
        for name, values in ways.items()
        for case, value in enumerate(values)
    ]


def said(told: list[dict[str, Any]]) -> str:
    cases = len({row["case"] for row in told})
    found = compare(told, {"pattern": "base"}, ["pattern"], planned=cases)
    return headline(found, "base", "simulated")


# the verdict, in two sentences


def test_a_better_way_is_named_with_its_difference_and_interval():
    told = rows(base=[0.0, 1.0] * 30, fair=[0.0, 1.0, 1.0, 1.0] * 15, good=[1.0] * 60)
    counts = "By messages routed exactly right (simulated), beside base: 2 better."
    best = "good is better than base: 100.0 % against 50.0 %, a difference of +50.0 points [+3"
    assert said(told).startswith(f"{counts} {best}") and "60" in said(told)
    by = ["pattern"]
    base, *_, good = lines(summarise(told, by), compare(told, {"pattern": "base"}, by))
    assert (base.value, base.difference, base.verdict) == ("50.0 %", "", "baseline")
    assert (good.interval, good.verdict) == ("94.0 to 100.0 %", "better")


def test_ways_that_came_out_alike_are_neither_called_equal_nor_beyond_telling():
    told = said(rows(base=[1.0] * 20, same=[1.0] * 20))
    assert told.endswith("points either way are possible.") and "takes about" in told
    alike = rows(base=[1.0] * 400, same=[1.0] * 400)
    found = compare(alike, {"pattern": "base"}, ["pattern"], planned=400, margin=0.02)
    assert "same is equivalent to base within 2 points" in headline(found, "base", "simulated")
    assert "nothing to compare" in headline([], "base", "simulated")
    alone = headline([], "one", "simulated", summarise(rows(one=[1.0] * 40), ["pattern"]))
    assert "one is the only way here (simulated): 100.0 %, 95 % interval 91.2 to 100.0 %" in alone
    told = rows("seconds", base=[2.0] * 20, same=[2.0] * 20)
    assert said(told).endswith("paired by 20 items; p = 1 (corrected). Any difference is possible.")
    alike = "the same in each; up to 14 % of all may differ, by any amount"
    assert f"a difference of +0.00 s ({alike}), paired" in said(told)
    by = ["pattern"]
    line = lines(summarise(told, by), compare(told, {"pattern": "base"}, by))[1]
    assert (line.interval, line.verdict) == (f"none: {alike}", "cannot tell")


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


def choose(page: AppTest, label: str, value: Any) -> AppTest:
    return next(one for one in page.selectbox if one.label == label).set_value(value).run()


def test_a_run_is_a_verdict_a_table_figures_and_an_origin_and_says_what_its_figures_are(
    page: AppTest,
):
    page.query_params["run"] = "reference/patterns_example"
    told = shown(page.run())
    sentences = [
        one.value
        for one in page.markdown
        if one.value.startswith("By messages routed exactly right")
    ]
    assert (
        len(sentences) == 1
        and "(simulated)" in unescaped(sentences[0])
        and "difference of 5 points takes about" in unescaped(sentences[0])
    )
    ways = read_grid(HOME / "data/grids/patterns_example.yaml").grid.patterns
    assert (
        all(f'data-way="{way}"' in told for way in ways)
        and "All figures are simulated" in told
        and "Holm" in told
    )
    assert told.count("simulated") > 10
    drawn = re.findall(r'<img src="data:image/svg[^"]*" alt="([^"]*)"', told)
    assert len(drawn) == 3 and all("simulated" in words for words in drawn)
    spent = re.findall(r'<th scope="row">monolith</th>((?:<td>[^<]*</td>)+)', told)[-1]
    assert re.findall(r"<td>([^<]*)</td>", spent)[-1] == "not known", "no price is known"
    (made,) = read_run(EXAMPLE).runs
    assert json.loads(page.json[0].value) == made and len(page.get("download_button")) == 2
    told = unescaped(shown(choose(page, "By", "seconds")))
    assert "monolith is better than mediated" in told
    assert " is worse than " in unescaped(shown(choose(page, "Beside", 4)))
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
    assert "4 cases, 8 turns" in shown(page.run())
    rows = read_results(folder)
    chosen_way = page.selectbox(key="bench-way-few").value
    way = [row for row in rows if row["pattern"] == chosen_way]
    table: Any = choose(page, "By", "seconds").dataframe[0].value
    assert sorted(table["Case"]) == sorted(row["case"] for row in way) and len(way) == 4
    page.query_params["cell"] = turn_id(way[0]["cell"], way[0]["turn"])
    assert shown(page.run()).count('<section class="canvas"') == 1
    page.query_params["run"] = "reference/patterns_example"
    row = read_results(EXAMPLE)[0]
    page.query_params["cell"] = turn_id(row["cell"], row["turn"])
    assert "No trace of this turn is kept" in shown(page.run())
