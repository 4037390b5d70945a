"""An endpoint that is dead, limited or gone is no bad model: its cells are counted, never scored, and played again."""

import json
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.comparison import compare, summarise
from kit.bench.grid.failures import FAILURES, STREAK, error_of, failure_lines, read_failures
from kit.bench.grid.forecast import announce, most_calls
from kit.bench.grid.grid_file import GridSpec, read_grid
from kit.bench.grid.report import report
from kit.bench.grid.results import read_results
from kit.bench.grid.run import TRACES, Run, run_grid
from kit.bench.run_page.page import run_page
from kit.core.bodies.call import ModelPause
from kit.core.context import OPERATOR
from kit.experiment_kits import ExperimentKits
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.cli.test_cli import run as kit
from tests.grids.test_grid import ERRING, MIXED, OPENER, spec_of
from tests.kits import EMBEDDED
from tests.loopback_openai import Hang, Raw, Refuse, Reply, Say, loopback

pytestmark = [pytest.mark.realtime, pytest.mark.req("SAT-24")]

KEY = "sk-loopback-4711-secret"
CASES = 12
HELLO = Say(["Hello."])
LIMITED = (Refuse(429, "too many"), Refuse(429, "too many"))
"""The client asks twice."""


def grid_of(folder: Path, url: str, budget_ms: int = 10_000, **fields: Any) -> GridSpec:
    """The stand-in beside a model at this URL, on small talk that only they answer."""
    cases = [
        {
            "id": f"c{n:02}",
            "kind": "small_talk",
            "turns": [{"user": "hello", "expected_sub_agents": []}],
        }
        for n in range(CASES)
    ]
    (folder / "cases.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
    grid: dict[str, Any] = {
        "name": "small",
        "models": ["offline", "own"],
        "specs": {
            "own": {"provider": "openai", "base_url": url, "price_in": 1.0, "price_out": 1.0}
        },
        "cases": [{"file": "cases.jsonl"}],
        "sub_agents": "stubs",
        "scorers": ["exact"],
        "settings": {"quick": {"guards": {"fastpath": False}, "model_call_budget_ms": budget_ms}},
        "baseline": {"model": "offline"},
        "cluster": "cluster",  # the cases say hello alike, and count one by one all the same
        "limits": {"concurrency": 1},
        **fields,
    }
    path = folder / "small.yaml"
    path.write_text(json.dumps(grid))
    return read_grid(path)


def played(spec: GridSpec, folder: Path, **options: Any) -> tuple[Run, str]:
    opener = partial(open_kit, EMBEDDED.with_(openai_api_key=KEY))
    run = run_grid(spec, folder, opener, 1, **options)
    return run, report(spec, run)


def of_own(rows: list[dict[str, Any]]) -> list[str]:
    return [row["case"] for row in rows if row["model"] == "own"]


def test_an_endpoint_that_refuses_the_key_is_no_bad_model(tmp_path: Path):
    with loopback() as server:
        server.key = "another"
        run, text = played(grid_of(tmp_path, server.url), tmp_path / "out", traces=True)
        assert len(server.requests) == STREAK, "it is asked no further"
        assert (
            text.splitlines()[0]
            == f"# small: measured and offline stand-in; {STREAK} of 24 cells failed (auth {STREAK})"
        )
        assert f"model 'own' failed {STREAK} times for the same reason (auth)" in text
        assert f"- own: no verdict, {STREAK} of {STREAK} cells failed" in text
        assert "worse" not in text and "HTTP 401" in text and KEY not in text
        assert not of_own(read_results(tmp_path / "out")) and not run.complete
        server.key = None
        server.plays(*[HELLO] * CASES)
        again, text = played(grid_of(tmp_path, server.url), tmp_path / "out", traces=True)
    assert (again.before, again.done, again.complete) == (CASES, CASES, True), (
        "just what was missing is played"
    )
    with closing(SqliteStore(tmp_path / "out" / TRACES)) as traces:
        kept = traces.turns(limit=100)
    assert [turn.status for turn in kept] == ["ok"] * 2 * CASES, "a turn that was lost is replaced"
    assert "failed" not in text and not (tmp_path / "out" / FAILURES).exists()
    assert len(of_own(read_results(tmp_path / "out"))) == CASES


@pytest.mark.parametrize(
    ("scripts", "names"),
    [
        (
            [
                Refuse(404, "gone"),
                *[Refuse(500, "boom")] * 2,
                Raw("<html>gateway</html>", "text/html"),
                Say(["Hel"], broken=True),
                Refuse(400, "no such field"),
            ],
            ["not_found", "server", "server", "network", "kit"],
        ),
        ([Hang()], ["budget"]),
    ],
)
def test_every_way_to_lose_a_call_has_its_class(
    tmp_path: Path, scripts: list[Reply], names: list[str]
):
    with loopback() as server:
        server.plays(*scripts, *[HELLO] * (CASES - len(names)))
        budget_ms = 500 if names == ["budget"] else 10_000
        run, _ = played(
            grid_of(tmp_path, server.url, budget_ms, models=["own"], baseline={}), tmp_path / "out"
        )
    failures = read_failures(tmp_path / "out")
    assert sorted(failure["error_class"] for failure in failures) == sorted(names)
    scored = of_own(read_results(tmp_path / "out"))
    assert run.failed == len(names) and len(scored) == CASES - len(names)
    assert not {failure["case"] for failure in failures} & set(scored)


def test_what_a_model_did_not_tell_of_its_tokens_is_said_to_be_estimated(tmp_path: Path):
    untold = Say(["Hello!"], usage=(-1, -1))
    with loopback() as server:
        server.plays(*[HELLO] * (CASES - 2), untold, untold)
        _, text = played(grid_of(tmp_path, server.url, verdicts=["cost"]), tmp_path / "out")
    line = f"own: in 2 of {CASES} turns the model did not tell what it used."
    assert line in text and "offline: in" not in text
    assert line in run_page(tmp_path / "out")


def test_seconds_that_an_endpoint_made_its_caller_wait_are_told_apart_from_the_models_own(
    tmp_path: Path,
):
    refused = (Refuse(429, "too many", 0.6), HELLO)
    with loopback() as server:
        server.plays(*refused, *[HELLO] * (CASES - 3), *refused, Refuse(500, "boom"), HELLO)
        _, text = played(
            grid_of(tmp_path, server.url, verdicts=["seconds"]), tmp_path / "out", traces=True
        )
    line = f"own: in 3 of {CASES} turns a model call waited"
    assert line in text and "offline: in" not in text
    assert line in run_page(tmp_path / "out")
    pauses = [row["paused"] for row in read_results(tmp_path / "out") if "paused" in row]
    assert len(pauses) == 3 and sorted(pauses)[1] >= 0.6
    with closing(SqliteStore(tmp_path / "out" / TRACES)) as traces:
        turns = [traces.events(turn.id, OPERATOR) for turn in traces.turns(limit=100)]
    reasons = [
        event.body.reason
        for events in turns
        for event in events
        if isinstance(event.body, ModelPause)
    ]
    assert sorted(reasons) == ["HTTP 429", "HTTP 429", "HTTP 500"]


def test_what_a_failed_cell_has_cost_counts_against_the_limit(tmp_path: Path):
    with loopback() as server:
        server.plays(*[Say(["Hel"], broken=True)] * CASES)
        spec = grid_of(
            tmp_path,
            server.url,
            models=["own"],
            baseline={},
            limits={"concurrency": 1, "dollars": 1e-3},
        )
        run, text = played(spec, tmp_path / "out")
    assert (
        run.dollars >= 1e-3
        and run.failed < CASES
        and "the limit of 0.001 dollars is reached" in text
    )


def test_another_endpoint_is_another_model_and_the_way_back_plays_nothing(
    tmp_path: Path,
):
    def run(url: str) -> Run:
        spec = grid_of(tmp_path, url)
        own: dict[str, Any] = {**spec.grid.specs["own"]}
        own.pop("base_url")
        kits = ExperimentKits(
            Settings(store=":memory:", pace=0.0, openai_base_url=url, openai_api_key=KEY)
        )
        return run_grid(
            grid_of(tmp_path, url, specs={"own": own}).at(kits.access), tmp_path / "out", kits, 1
        )

    with loopback() as first, loopback() as second:
        first.plays(*[HELLO] * CASES)
        second.plays(*[HELLO] * CASES)
        runs = [run(first.url), run(second.url), run(first.url)]
    assert [one.done for one in runs] == [2 * CASES, CASES, 0]


def test_a_recording_that_holds_refused_calls_is_mended_by_a_refresh(tmp_path: Path):
    command = (
        "grid",
        str(tmp_path / "small.yaml"),
        "--out",
        str(tmp_path / "out"),
        "--cassette",
        str(tmp_path / "calls.jsonl"),
    )
    with loopback() as server:
        grid_of(tmp_path, server.url)
        server.plays(Refuse(500, "boom"), Refuse(500, "boom"), *[HELLO] * CASES)
        results = [kit(*command, *option) for option in (["--record"], [], ["--refresh"])]
        asked = len(server.requests)
    heads = [result.stdout.partition("\n")[0] for result in results]
    failed = "# small: measured and offline stand-in; 1 of 24 cells failed (server 1)"
    assert heads == [failed, failed, "# small: measured and offline stand-in"]
    assert asked == CASES + 2, "just that call was made again"


def test_what_it_may_ask_for_at_most_is_said_before_the_first_call(tmp_path: Path):
    with loopback() as server:
        server.key = "another"
        limits: dict[str, Any] = {"concurrency": 1, "dollars": 5}
        spec = grid_of(tmp_path, server.url, limits=limits)
        result = kit(
            "grid", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "out"), "--workers", "1"
        )
    calls = CASES * most_calls(spec, spec.decks["deck", "quick"])
    sentence = f"At most {CASES} turns of real models and {calls} calls of theirs, each sent twice where it fails"
    assert result.stderr.startswith(
        f"{sentence}; about $0.17 for all of it; no case is begun past $5.00, and at most 2 cells more are played then.\n"
    )
    assert result.returncode == 1 and result.stdout.startswith(
        "# small: measured and offline stand-in; 5 of 24 cells failed"
    )


def test_a_limit_of_dollars_that_an_unknown_price_takes_no_part_in_is_said(tmp_path: Path):
    url, said = (
        "http://127.0.0.1:9/v1",
        "without a price, and counted as nothing there: own (set price_in and price_out, or limits.unpriced).",
    )
    specs = {"own": {"provider": "openai", "base_url": url}}
    for limits, is_said in (
        ({"dollars": 5}, True),
        ({"dollars": 5, "unpriced": [1, 2]}, False),
        ({}, False),
    ):
        assert (
            announce(grid_of(tmp_path, url, specs=specs, limits=limits)).endswith(said) == is_said
        )


def test_no_turn_makes_more_calls_than_is_said(tmp_path: Path):
    law = {**ERRING, "over_trigger": 0.5}
    specs = {"simulated-test": {"provider": "simulated", "law": law}}
    fields: dict[str, Any] = {
        "patterns": "all",
        "specs": specs,
        "cases": [{**MIXED, "every": 160}],
    }
    spec = spec_of(tmp_path, **fields)
    run_grid(spec, tmp_path / "out", OPENER, 1)
    most = max(row["model_calls"] for row in read_results(tmp_path / "out"))
    assert 3 < most <= most_calls(spec, spec.decks["deck", "wide"])


# the arithmetic


async def test_a_turn_that_was_late_is_no_bad_answer_even_if_its_model_calls_ended_well():
    """A slow tool can make it late. Whoever made it slow on purpose has the sample they wanted."""
    async with open_kit(EMBEDDED) as opened:
        reply = await opened.ask("hello", opened.session("s"))
    late = replace(reply, status="deadline")
    assert error_of([late], faults=False) == (
        "budget",
        "the turn took longer than the deck allows",
    )
    assert error_of([reply], faults=False) is error_of([late], faults=True) is None


def rows_of(way: str, right: int, wrong: int, failed: int) -> list[dict[str, Any]]:
    common = {"model": way, "scorer": "exact"}
    values: list[float | None] = [1.0] * right + [0.0] * wrong + [None] * failed
    return [
        {**common, "case": f"c{n}", "value": value, "lost": value is None}
        for n, value in enumerate(values)
    ]


def test_a_fiftieth_may_fail_and_no_more_and_not_on_one_side_only():
    def verdict(failed: int, of_base: int, cases: int) -> str:
        bad = rows_of("bad", 0, cases - failed, failed)
        (one,) = compare(
            [*rows_of("base", cases - of_base, 0, of_base), *bad], {"model": "base"}, by=("model",)
        )
        return one.verdict

    assert verdict(2, 2, 100) == verdict(1, 0, 100) == "worse"
    assert verdict(3, 2, 100) == "no verdict", "more than 2 %"
    assert verdict(10, 0, 500) == "no verdict", "2 % on one side, nothing on the other"
    assert verdict(10, 9, 500) == "worse"


def test_failed_turns_are_neither_right_nor_wrong_nor_undecided():
    (one,) = summarise(rows_of("own", 6, 2, 4), by=("model",))
    assert (one.estimate.right, one.estimate.n, one.failed, one.undecided) == (6, 8, 4, 0)
    assert one.bounds == (0.5, pytest.approx(10 / 12))


def test_an_error_of_several_lines_stays_one_item_of_the_report():
    error = "ValidationError: 1 validation error for Case\nid\n  Field required"
    (line,) = failure_lines([{"model": "own", "error_class": "kit", "error": error}] * 2, ["model"])
    assert (
        line == "own: kit 2, such as ValidationError: 1 validation error for Case id Field required"
    )
