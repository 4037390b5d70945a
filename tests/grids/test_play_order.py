"""In which order the cells of a grid are played, and what a run that stops leaves behind."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.failures import STREAK, read_failures
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.results import read_results
from kit.bench.grid.run import RESULTS, run_grid
from tests.grids.test_failed_cells import CASES, HELLO, grid_of, played
from tests.grids.test_grid import OPENER, spec_of
from tests.loopback_openai import Refuse, loopback

PRICED = {
    "provider": "simulated",
    "law": {"tokens": {"median": 100}},
    "price_in": 0.0,
    "price_out": 1000.0,
}


def priced(folder: Path, dollars: float | None, concurrency: int = 1, **fields: Any) -> GridSpec:
    """Two ways that cost something, over an eighth of the mixed requests."""
    return spec_of(
        folder,
        models=["simulated-dear", "simulated-test"],
        specs={"simulated-test": PRICED, "simulated-dear": {**PRICED, "price_out": 3000.0}},
        patterns=["direct"],
        sub_agents="stubs",
        cases=[{"file": "data/cases/mixed.jsonl", "every": 8}],
        limits={"dollars": dollars, "concurrency": concurrency},
        **fields,
    )


def cases_by_model(folder: Path) -> dict[str, list[str]]:
    cases: dict[str, list[str]] = defaultdict(list)
    for row in read_results(folder):
        cases[row["model"]].append(row["case"])
    return cases


def test_the_cases_of_a_run_that_stopped_are_drawn_by_the_seed_and_are_not_the_first_of_the_file(
    tmp_path: Path,
):
    drawn: dict[int, list[str]] = {}
    for seed in (7, 8):
        spec = priced(tmp_path, 2.0, seed=seed)
        run_grid(spec, tmp_path / str(seed), OPENER, 1)
        drawn[seed] = cases_by_model(tmp_path / str(seed))["simulated-dear"]
        again = tmp_path / f"{seed}-again"
        run_grid(spec, again, OPENER, 1)
        assert (again / RESULTS).read_bytes() == (tmp_path / str(seed) / RESULTS).read_bytes()
        first = sorted(case.id for case in spec.cases)[: len(drawn[seed])]
        assert drawn[seed] != first, "a part of the file in its order may be all of one kind"
    assert drawn[7] != drawn[8]


# endpoints that cannot answer


def two_models(folder: Path, alive: str, other: str, **limits: Any) -> GridSpec:
    spec = {"provider": "openai", "price_in": 1.0, "price_out": 1.0}
    specs = {"own": {**spec, "base_url": alive}, "other": {**spec, "base_url": other}}
    return grid_of(
        folder,
        alive,
        models=["own", "other"],
        specs=specs,
        baseline={"model": "own"},
        limits={"concurrency": 1, **limits},
    )


@pytest.mark.realtime
@pytest.mark.req("SAT-24")
def test_a_port_where_nothing_listens_is_asked_five_times_and_the_other_models_are_played_on(
    tmp_path: Path,
):
    with loopback() as gone:
        nothing_listens = gone.url
    with loopback() as server:
        server.answer = lambda _: HELLO
        run, text = played(two_models(tmp_path, server.url, nothing_listens), tmp_path / "out")
    failures = read_failures(tmp_path / "out")
    assert [failure["error_class"] for failure in failures] == ["network"] * STREAK
    assert len(cases_by_model(tmp_path / "out")["own"]) == CASES and not run.complete
    assert f"model 'other' failed {STREAK} times for the same reason (network)" in text
    assert f"stopped early, {CASES - STREAK} cells are missing" in text


@pytest.mark.realtime
@pytest.mark.req("SAT-24")
def test_failures_that_are_not_in_a_row_end_nothing(tmp_path: Path):
    with loopback() as server:
        refused = Refuse(401, "not now")
        server.plays(*[*[refused] * (STREAK - 1), HELLO] * CASES)
        spec = grid_of(tmp_path, server.url, models=["own"], baseline={})
        run, text = played(spec, tmp_path / "out")
    assert run.failed > STREAK and "stopped early" not in text
