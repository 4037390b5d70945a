"""A grid as an experiment: its traces are kept, and in Opik it is a data set, an experiment for
each way, scores and verdicts.

With the real SDK against a loopback stub of the REST API, in a process of its own; the tests read what arrived.
"""

import json
import logging
import socket
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.bench.grid.experiment import data_set
from kit.bench.grid.grid import CaseFile
from kit.bench.grid.grid_file import GridSpec, read_grid
from kit.bench.grid.report import compare_run
from kit.bench.grid.results import read_results
from kit.bench.grid.run import RESULTS, TRACES, run_grid
from kit.bench.scoring.run_case import turn_id
from kit.cli import main
from kit.experiment_kits import ExperimentKits, trace_home
from kit.home import HOME
from kit.settings import Settings
from studies.loopback_opik import OpikStub, opik_stub
from tests.grids.test_grid import OPENER
from tests.pages import flat_page
from tests.sinks.test_opik_sink import LISTEN, apart

PLAY = """
import io, json, os, sys
from contextlib import redirect_stdout
from pathlib import Path
from kit import ExperimentKits, Settings, trace_home
from kit.bench.grid.experiment import experiment
from kit.bench.grid.grid_file import read_grid
from kit.cli import main

path, folder, live, refusing = sys.argv[1:]

def told(url, work):
    os.environ["OPIK_URL_OVERRIDE"] = url
    with redirect_stdout(io.StringIO()) as said:
        work()
    return said.getvalue()

def notebook():
    settings = Settings.read().with_(pace=0.0)
    print(trace_home(settings))
    experiment(read_grid(Path(path)), Path(folder), ExperimentKits(settings))

def command():
    assert main(["grid", path, "--out", folder, "--workers", "1"]) == 0

report = {"first": told(live, notebook), "second": told(live, command), "refused": told(refusing, command)}
from opik.url_helpers import get_experiment_url_by_id
report["page"] = get_experiment_url_by_id("DATASET", "EXPERIMENT", live, "default")
report["outside"] = sorted(outside)
print(json.dumps(report))
"""


@dataclass(frozen=True)
class Sent:
    """What one process reported that played the grid twice, and what the stub has after each time."""

    spec: GridSpec
    folder: Path
    stub: OpikStub
    report: dict[str, Any]
    stderr: str
    rows: list[dict[str, Any]]


def gateway(folder: Path) -> Path:
    """The committed grid on fewer cases, and on some with two turns."""
    grid = yaml.safe_load((HOME / "data" / "grids" / "gateway.yaml").read_text())
    grid["cases"] = [
        {"file": "data/cases/mixed.jsonl", "take": 2},
        {"file": "data/cases/partial.jsonl", "take": 1},
        {"file": "data/cases/injection.jsonl", "every": 32},
        {"file": "data/cases/switches.jsonl", "every": 28},
    ]
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(grid))
    return path


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Generator[Sent]:
    path = gateway(tmp_path_factory.mktemp("grid"))
    folder = path.parent / "out"
    with opik_stub() as stub, opik_stub() as refusing:
        refusing.refuses = True
        run = apart(LISTEN + PLAY, str(path), str(folder), stub.url, refusing.url, home=path.parent)
        assert run.returncode == 0, run.stdout + run.stderr
        report = json.loads(run.stdout.splitlines()[-1])
        yield Sent(read_grid(path), folder, stub, report, run.stderr, read_results(folder))


def trace_ids(sent: Sent) -> dict[str, dict[str, Any]]:
    """Trace id in Opik -> the row of the grid that it is of."""
    rows = {turn_id(row["cell"], row["turn"]): row for row in sent.rows}
    return {key: rows[trace["metadata"]["turn_id"]] for key, trace in sent.stub.traces.items()}


@pytest.mark.pages
@pytest.mark.req("SAT-22")
def test_what_the_page_says_of_the_gateway_is_what_its_whole_grid_reports(tmp_path: Path):
    spec = read_grid(HOME / "data" / "grids" / "gateway.yaml")
    run_grid(spec, tmp_path, OPENER, 1)
    ways, verdicts = compare_run(spec, tmp_path)
    page = flat_page("bench.md")
    missing = [line for line in map(str, [*ways, *verdicts]) if line not in page]
    assert not missing, (
        "docs/bench.md quotes other figures than `python -m kit grid data/grids/gateway.yaml` writes"
    )


def test_the_cases_are_one_data_set_and_sending_them_again_adds_nothing(sent: Sent):
    assert list(sent.stub.datasets) == list(sent.stub.items) == [data_set(sent.spec.grid.cases)]
    (items,) = sent.stub.items.values()
    by_case = {item["case"]: item for item in items.values()}
    assert len(items) == len(by_case) == len(sent.spec.cases)
    for case in sent.spec.cases:
        assert by_case[case.id]["input"] == [ask.user for ask in case.turns]
        expected = [list(ask.expected) for ask in case.turns if not ask.skip]
        assert by_case[case.id]["expected_output"] == expected


def test_each_way_is_one_experiment_whose_items_lead_to_traces_with_the_scores_of_the_grid(
    sent: Sent,
):
    of = trace_ids(sent)
    assert len(of) == len(sent.rows) == len(sent.stub.links), (
        "every turn once, though it was sent twice"
    )
    (items,) = sent.stub.items.values()
    for link in sent.stub.links.values():
        row = of[link["trace_id"]]
        assert items[link["dataset_item_id"]]["case"] == row["case"]
        made = sent.stub.experiments[link["experiment_id"]]
        assert made["metadata"]["pattern"] == row["pattern"]
    assert len(sent.stub.experiments) == 2
    assert set(sent.stub.finished) == set(sent.stub.experiments)
    decided = {
        key: {name: value for name, value in row["scores"].items() if value is not None}
        for key, row in of.items()
    }
    assert sent.stub.scores == decided


def test_an_experiment_carries_verdict_interval_seed_revision_and_what_its_model_is(
    sent: Sent,
):
    ways, verdicts = compare_run(sent.spec, sent.folder)
    about = {made["metadata"]["pattern"]: made for made in sent.stub.experiments.values()}
    for pattern, made in about.items():
        data = made["metadata"]
        assert made["name"] == f"gateway · offline · {pattern} · offline stand-in"
        assert made["tags"] == ["gateway", "offline stand-in"]
        assert (data["kind"], data["seed"], data["clock"]) == ("offline stand-in", 7, "virtual")
        assert data["complete"] and [len(each.rstrip("+")) for each in data["revision"]] == [40]
    for way in ways:
        estimate = about[way.way["pattern"]]["metadata"]["estimates"][way.scorer]
        assert estimate["interval"] == [way.estimate.low, way.estimate.high]
    assert about["classifier_gateway"]["metadata"]["is_baseline"]
    said = {each["scorer"]: each for each in about["mediated"]["metadata"]["verdicts"]}
    for verdict in verdicts:
        each = said[verdict.scorer]
        assert (each["verdict"], each["says"]) == (verdict.verdict, str(verdict))
        assert each["interval"] == [verdict.difference.low, verdict.difference.high]


def test_the_link_is_printed_and_is_what_the_sdk_itself_would_give(sent: Sent):
    (dataset,) = sent.stub.datasets.values()
    made = list(sent.stub.experiments)
    several = "%5B%22" + "%22%2C%20%22".join(made) + "%22%5D"
    page = (
        sent.report["page"]
        .replace("DATASET", dataset["id"])
        .replace("%5B%22EXPERIMENT%22%5D", several)
    )
    told = f"Opik: {len(sent.rows)} turns as traces and experiments: {page}"
    first, second = sent.report["first"].splitlines(), sent.report["second"].splitlines()
    assert first[-1] == second[-1] == told and first[0].startswith("Traces: ")
    home = sent.stub.url.removesuffix("/api")
    assert first[1].startswith(f"Opik: copies of these turns at {home}/default/")
    # The copy goes nowhere else, and without a word of the SDK.
    assert sent.report["outside"] == ["127.0.0.1"]
    assert "OPIK" not in sent.stderr and "Traceback" not in sent.stderr


def test_a_server_that_refuses_changes_no_result_and_is_one_line(sent: Sent, tmp_path: Path):
    last = sent.report["refused"].splitlines()[-1]
    assert last.startswith("Opik: not everything arrived (ApiError") and str(sent.folder) in last
    run_grid(sent.spec, tmp_path, ExperimentKits(Settings(pace=0.0)), 1)
    assert (tmp_path / RESULTS).read_bytes() == (sent.folder / RESULTS).read_bytes()
    assert not (tmp_path / TRACES).exists(), "nobody asked for them"


def test_a_dead_server_is_said_once_and_the_grid_is_played(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
):
    grid = {
        "models": ["offline"],
        "sub_agents": "stubs",
        "cases": [{"file": "data/cases/mixed.jsonl", "take": 1}],
    }
    (tmp_path / "tiny.yaml").write_text(json.dumps(grid))
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(8)
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/api"
        monkeypatch.setenv("OPIK_URL_OVERRIDE", url)
        settings = Settings.read()
        with caplog.at_level(logging.WARNING, "kit.opik"):
            (_, said) = trace_home(settings).splitlines()
            assert said == f"Opik: {url} does not answer, nothing is sent."
            assert ExperimentKits(settings).opik() is None
            assert main(["grid", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "out")]) == 0
    assert len(caplog.records) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("Opik: no server answers. The traces are in ")
    assert read_results(tmp_path / "out")


def test_a_data_set_is_named_for_its_files_and_which_of_their_lines():
    for name, fields in {
        "mixed": {},
        "mixed[::4]": {"every": 4},
        "mixed[:5]": {"take": 5},
        "mixed[:20:4]": {"take": 5, "every": 4},
    }.items():
        file = CaseFile.model_validate({"file": "data/cases/mixed.jsonl", **fields})
        assert data_set([file]) == f"cases: {name}"
