"""The benchmarks page: verdicts in words, what a grid will ask for, a grid in a process of its own,
the page by a test driver."""

import json
import re
import sys
import time
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
from kit.bench.grid.forecast import EXAMPLE, forecast, pace
from kit.bench.grid.grid_file import read_grid
from kit.bench.grid.results import read_results
from kit.bench.grid.stored_runs import read_run
from kit.bench.scoring.run_case import turn_id
from kit.core.errors import DataError
from kit.ui.benchmarks import grid_process, launch
from kit.ui.benchmarks import page as benchmarks
from kit.ui.benchmarks.grid_runner import Grids, Job
from kit.ui.benchmarks.order import MOST_CELLS, Order, grid_files, order
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
    spec = read_grid(grid_files()["patterns_example"])
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


def test_a_grid_is_forecast_by_its_cells_and_the_turns_of_the_example(tmp_path: Path):
    seen = pace(EXAMPLE)
    spec = read_grid(
        grid(
            tmp_path,
            patterns=["direct", "a2a"],
            repeats=2,
            cases=[{"file": "data/cases/long.jsonl"}],
        )
    )
    asks = forecast(spec, seen)
    assert asks.cells == len(list(cells(spec))) and asks.turns == 4 * sum(
        len(case.turns) for case in spec.cases
    )
    assert asks.dollars == 0 and asks.seconds
    model = {"provider": "simulated", "law": {}, "price_in": 1.0, "price_out": 10.0}
    paid = forecast(
        read_grid(grid(tmp_path, patterns=["direct"], specs={"simulated-a": model})), seen
    )
    assert paid.dollars == pytest.approx(
        6 * (seen["direct"].tokens_in + 10 * seen["direct"].tokens_out) / 1e6
    )
    unknown = forecast(read_grid(grid(tmp_path, models=["gpt-4.1-mini"])), seen)
    assert (unknown.dollars, unknown.seconds) == (None, None), (
        "nobody knows its price, and it takes its own time"
    )


def test_a_grid_too_large_or_of_unknown_price_is_not_for_the_page(tmp_path: Path):
    few = order(grid(tmp_path))
    assert few.asks.cells == 6 and not few.paid and not few.too_large
    every = [{"file": "data/cases/single.jsonl"}]
    large = order(grid(tmp_path, cases=every, repeats=10))
    assert large.asks.cells > MOST_CELLS and large.too_large

    def paid(cases: int) -> Order:
        taken = [{"file": "data/cases/single.jsonl", "take": cases}]
        fields = {"models": ["gpt-4.1-mini"], "limits": {"dollars": 1.0}}
        return order(grid(tmp_path, cases=taken, **fields))

    assert paid(250).too_large and paid(250).paid and "past $1.00" in paid(250).announcement
    assert not paid(50).too_large


# a grid in a process of its own


def ended(grids: Grids, seconds: float = 600) -> Job:
    until = time.monotonic() + seconds
    while grids.job is None or not grids.job.over:
        assert time.monotonic() < until, grids.job
        time.sleep(0.02)
    return grids.job


def script(text: str) -> Grids:
    """Grids played by a few lines of Python in place of the process."""
    return Grids(
        [
            sys.executable,
            "-c",
            f"import json, sys\ndef say(**step): print(json.dumps(step), flush=True)\n{text}",
        ]
    )


def test_one_grid_is_played_at_a_time_and_ends_with_the_app(tmp_path: Path):
    grids = script("sys.stdin.read()\nsay(done=4, total=9, complete=False, dollars=0.5)")
    job = grids.start(tmp_path / "g.yaml", tmp_path / "first")
    with pytest.raises(DataError, match="one grid is played at a time: wait for first, or stop it"):
        grids.start(tmp_path / "g.yaml", tmp_path / "second")
    grids.close()
    assert ended(grids) is job
    assert (job.state, job.done, job.total, job.dollars) == ("stopped", 4, 9, 0.5)


@pytest.mark.parametrize(
    ("text", "state", "sentence"),
    [
        ("say(error='g.yaml:3: unknown model')\nsys.exit(2)", "failed", "g.yaml:3: unknown model"),
        (
            "raise MemoryError('no room')",
            "failed",
            "no room; start it again, finished cells are kept",
        ),
        (
            "say(done=1, total=2)\nsys.exit(9)",
            "failed",
            "ended (9): it said nothing; start it again",
        ),
        ("say(done=2, total=9, complete=False, dollars=1.0)", "stopped", "limit of dollars"),
        ("say(done=9, total=9, complete=True, dollars=0.0)", "complete", ""),
    ],
)
def test_however_a_process_ends_it_is_told_in_a_sentence(
    text: str, state: str, sentence: str, tmp_path: Path
):
    grids = script(text)
    grids.start(tmp_path / "g.yaml", tmp_path / "out")
    job = ended(grids)
    assert (
        job.state == state
        and sentence in job.message
        and "\n" not in job.message
        and "Traceback" not in job.message
    )


def test_a_bad_grid_is_one_sentence_of_its_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert grid_process.main(str(grid(tmp_path, patterns=["mediatd"])), str(tmp_path / "out")) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert "grid.yaml:" in json.loads(line)["error"] and "did you mean 'mediated'" in line


def test_a_grid_whose_stdin_has_ended_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The stdin of a test has ended."""
    assert grid_process.main(str(grid(tmp_path)), str(tmp_path / "out")) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert json.loads(last)["complete"] is False


# figures


# the page


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    with app_over(tmp_path / "kit.db", monkeypatch):
        yield room("benchmarks")
    launch.open_grids.clear()


def choose(page: AppTest, label: str, value: Any) -> AppTest:
    return next(one for one in page.selectbox if one.label == label).set_value(value).run()


def press(page: AppTest, key: str) -> AppTest:
    return next(one for one in page.button if one.key == key).click().run()


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
    ways = read_grid(grid_files()["patterns_example"]).grid.patterns
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
    assert "There is none yet" in shown(page.run())
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


def test_a_grid_is_started_stopped_resumed_and_seen_from_the_page(
    page: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cases = [{"file": "data/cases/mixed.jsonl", "take": 4}]
    file = grid(
        tmp_path,
        models=["simulated-gpt-5.4-nano"],
        specs={},
        patterns=["mediated", "supervisor"],
        cases=cases,
        baseline={"pattern": "mediated"},
        verdicts=["exact", "seconds"],
    )
    odd = tmp_path / "odd.yaml"
    odd.write_text("models: [nobody]\ncases: [{file: data/cases/mixed.jsonl}]\n")
    monkeypatch.setattr(launch, "grid_files", lambda: {"odd": odd, "few": file})
    # Nothing is played of the first, which waits for its stop.
    waits = script(
        "say(done=0, total=8)\nsys.stdin.read()\nsay(done=0, total=8, complete=False, dollars=0)"
    )
    monkeypatch.setattr(launch, "Grids", lambda: waits)
    page.session_state["bench-view"] = "Start a grid"
    assert "unknown model 'nobody'" in unescaped(page.run().error[0].value)
    told = shown(choose(page, "Grid", "few"))
    assert "**8 cells**, 8 turns; about" in told and r"\$0: its models are simulated" in told
    grids = launch.open_grids()
    press(page, "bench-start")
    assert "One grid is played at a time" in shown(page)
    press(page, "bench-stop")
    job = ended(grids)
    assert (
        job.state == "stopped"
        and "was stopped: " in shown(page.run())
        and "goes on from there" in shown(page)
    )
    # As the app starts it, but not at the pace of what lets everything else go first.
    start = f"import sys\nfrom {grid_process.__name__} import main\nsys.exit(main(*sys.argv[1:3]))"
    monkeypatch.setattr(grids, "_command", [sys.executable, "-c", start])
    press(page, "bench-again")
    again = ended(grids)
    assert again is not job and (again.state, again.done, again.total) == ("complete", 8, 8)
    assert "is done: 8 of 8 cells are played" in shown(page.run())
    press(page, "bench-see")
    assert "4 cases, 8 turns" in shown(page) and page.query_params["run"] in (
        job.name,
        [job.name],
    )
    kept = read_run(tmp_path / "grids" / job.name)
    assert kept.complete and (kept.folder / "report.md").exists()
    rows = read_results(kept.folder)
    way = [
        row for row in rows if row["pattern"] == page.selectbox(key=f"bench-way-{job.name}").value
    ]
    table: Any = choose(page, "By", "seconds").dataframe[0].value
    assert sorted(table["Case"]) == sorted(row["case"] for row in way) and len(way) == 4
    page.query_params["cell"] = turn_id(way[0]["cell"], way[0]["turn"])
    assert shown(page.run()).count('<section class="canvas"') == 1
    page.query_params["run"] = "reference/patterns_example"
    row = read_results(EXAMPLE)[0]
    page.query_params["cell"] = turn_id(row["cell"], row["turn"])
    assert "No trace of this turn is kept" in shown(page.run())
