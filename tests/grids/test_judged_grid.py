"""A grid's file names models that judge: their scores stand beside the rules', their cost apart; a
failed one scores nothing."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from kit.bench.grid.cell import cells
from kit.bench.grid.failures import read_failures
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.provenance import provenance
from kit.bench.grid.results import read_results
from kit.cli import main
from kit.core.errors import DataError
from kit.home import HOME
from kit.patterns import PATTERNS
from tests.grids.test_failed_cells import CASES, HELLO, grid_of, played
from tests.loopback_openai import JSON, Refuse, Reply, Say, loopback

pytestmark = [pytest.mark.realtime, pytest.mark.req("SAT-29")]

PARITY = HOME / "data" / "grids" / "parity.yaml"
PRICE = {"price_in": 100.0, "price_out": 1000.0}
VERDICT_COST = (11 * 100.0 + 7 * 1000.0) / 1e6
"""Of the tokens that the loopback server counts."""


def verdict(score: float) -> Say:
    return Say([json.dumps({"score": score, "why": "It says so."})])


def judged(folder: Path, url: str, judge: dict[str, Any] | None = None, **fields: Any) -> GridSpec:
    """The stand-in on small talk, judged by a model at this URL."""
    critic = {"provider": "openai", "base_url": url, **PRICE}
    kind = {"model": "critic", "rubric": "response_quality", "threshold": 0.75, **(judge or {})}
    usual: dict[str, Any] = {"models": ["offline"], "baseline": {}, "verdicts": ["kind"]}
    more: dict[str, Any] = {
        **usual,
        "specs": {"critic": critic},
        "judges": {"kind": kind},
        **fields,
    }
    return grid_of(folder, url, **more)


def parity(folder: Path, url: str, every: int) -> Path:
    """The shipped grid over some of its cases, with its models, the judge among them, at this URL."""
    grid: dict[str, Any] = yaml.safe_load(PARITY.read_text())
    models = {*grid["models"], *(judge["model"] for judge in grid["judges"].values())}
    grid["specs"] = {key: {"provider": "openai", "base_url": url, **PRICE} for key in models}
    grid["cases"][0]["every"] = every
    (folder / "parity.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    return folder / "parity.yaml"


def is_judge(request: JSON) -> bool:
    return "material to judge" in str(request["messages"][0]["content"])


def answer(request: JSON) -> Reply:
    """A model that says the same to everybody, and a judge that has an opinion of pictures."""
    if not is_judge(request):
        return Say(["Two coffee offers end today."])
    system, material = (str(message["content"]) for message in request["messages"])
    return verdict(1.0 if "keep the rules" in system or "[picture" in material else 0.5)


def test_one_command_plays_the_parity_set_over_all_patterns_with_its_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with loopback() as server:
        server.answer = answer
        assert (
            main(["grid", str(parity(tmp_path, server.url, 36)), "--out", str(tmp_path / "out")])
            == 0
        )
        said, rows = capsys.readouterr(), read_results(tmp_path / "out")
    calls = sum(map(is_judge, server.requests))
    assert {row["kind"] for row in rows} == {"measured"} and {
        row["pattern"] for row in rows
    } == set(PATTERNS)
    assert f"At most {len(rows)} turns of real models and" in said.err and calls == 2 * len(rows)
    assert f"and {calls} calls of judges (gpt-4.1-mini), each sent twice" in said.err
    for row in rows:
        is_image = row["domain"] == "image"
        assert (row["scores"]["quality"], row["scores"]["lawful"]) == (float(is_image), 1.0)
        assert row["verdicts"]["quality"]["score"] == (1.0 if is_image else 0.5)
        assert row["judges"]["cost"] == pytest.approx(2 * VERDICT_COST)
    assert "- quality: gpt-4.1-mini by response_quality 1, passed from 0.75" in said.out
    turns = (len(server.requests) - calls) * VERDICT_COST
    spent = f"${calls * VERDICT_COST:,.4f} beside ${turns:,.4f} for the turns"
    assert spent in said.out and "quality: gpt-5.4-nano / a2a" in said.out


WRONG: dict[str, tuple[tuple[Reply, ...], str, str]] = {
    "500": ((Refuse(500, "boom"), Refuse(500, "boom")), "server", "HTTP 500"),
    "prose": ((Say(["I like it."]),), "judge", "no verdict in 'I like it.'"),
}


@pytest.mark.req("SAT-24")
@pytest.mark.parametrize("name", WRONG)
def test_a_judge_that_fails_scores_nothing_and_its_cell_is_played_again(tmp_path: Path, name: str):
    script, error_class, words = WRONG[name]
    with loopback() as server:
        server.plays(verdict(1.0), *script, *[verdict(1.0)] * (CASES - 2))
        run, text = played(judged(tmp_path, server.url), tmp_path / "out")
        (failure,) = read_failures(tmp_path / "out")
        assert (
            run.failed == 1
            and f"1 of {CASES} cells failed ({error_class} 1)" in text.splitlines()[0]
        )
        assert failure["error_class"] == error_class and words in failure["error"]
        assert failure["error"].startswith("judge 'kind': ")
        assert len(read_results(tmp_path / "out")) == CASES - 1
        server.plays(verdict(0.0))
        again, text = played(judged(tmp_path, server.url), tmp_path / "out")
    assert (again.before, again.done, again.complete) == (CASES - 1, 1, True)
    spent = CASES + (error_class == "judge")
    assert again.dollars == pytest.approx(spent * VERDICT_COST), (
        "what a failed verdict cost stays spent"
    )
    assert f"- offline, kind: {CASES - 1} of {CASES} = " in text


@pytest.mark.req("SAT-24")
def test_a_failed_turn_is_not_judged(tmp_path: Path):
    with loopback() as model, loopback() as critic:
        model.plays(*[HELLO] * (CASES - 1), Refuse(500, "boom"), Refuse(500, "boom"))
        critic.answer = lambda _: verdict(1.0)
        specs = {
            "own": {"provider": "openai", "base_url": model.url},
            "critic": {"provider": "openai", "base_url": critic.url},
        }
        run, _ = played(judged(tmp_path, critic.url, models=["own"], specs=specs), tmp_path / "out")
    assert run.failed == 1 and len(critic.requests) == CASES - 1


def test_who_judges_by_what_belongs_to_the_key_of_a_cell_and_runs_by_other_judges_are_not_compared(
    tmp_path: Path,
):
    url = "http://127.0.0.1:9/v1"
    critic = {"provider": "openai", "base_url": url, **PRICE}
    changes: list[dict[str, Any]] = [
        {},
        {"judge": {"threshold": 0.5}},
        {"judge": {"rubric": "policy"}},
        {"specs": {"critic": {**critic, "params": {"temperature": 0}}}},
        {"judges": {}, "verdicts": ["exact"]},
    ]
    assert len({next(cells(judged(tmp_path, url, **change))).key for change in changes}) == len(
        changes
    )
    mild, stern = (judged(tmp_path, url, {"threshold": threshold}) for threshold in (0.5, 0.9))
    inputs, other = (cast("dict[str, str]", provenance(spec)["inputs"]) for spec in (mild, stern))
    assert inputs["cases"] == other["cases"] and inputs["judges"] != other["judges"]


def test_a_recording_holds_what_the_judges_said(tmp_path: Path):
    def play(*options: str) -> bytes:
        path = tmp_path / "small.yaml"
        assert (
            main(
                [
                    "grid",
                    str(path),
                    "--out",
                    str(tmp_path / "out"),
                    "--cassette",
                    str(tmp_path / "tape.jsonl"),
                    *options,
                ]
            )
            == 0
        )
        return (tmp_path / "out" / "results.jsonl").read_bytes()

    with loopback() as server:
        server.plays(*[verdict(number % 2 / 2) for number in range(CASES)])
        judged(tmp_path, server.url, {"threshold": None})
        first = play("--record")
        assert first == play() and len(server.requests) == CASES, "a replay asks nobody"
    rows = read_results(tmp_path / "out")
    assert {row["scores"]["kind"] for row in rows} == {0.0, 0.5}, "no threshold: the verdict itself"
    assert {row["verdicts"]["kind"]["why"] for row in rows} == {"It says so."}


@pytest.mark.parametrize(
    ("judge", "fault"),
    [
        ({"kind": {"model": "critik"}}, "unknown model 'critik': did you mean 'critic'"),
        ({"kind": {"model": "offline"}}, "'offline' is no language model: it has no verdict"),
        ({"kind": {"rubric": "response_qualty"}}, r"response_qualty\.md:1: cannot be read"),
        ({"exact": {}}, "'exact' is the name of a scorer or measure"),
    ],
)
def test_a_judge_that_cannot_be_is_one_sentence_with_its_line(
    tmp_path: Path, judge: dict[str, Any], fault: str
):
    usual = {"model": "critic", "rubric": "policy"}
    judges = {name: {**usual, **fields} for name, fields in judge.items()}
    with pytest.raises(DataError, match=rf"small\.yaml:1.*{fault}"):
        judged(tmp_path, "http://127.0.0.1:9/v1", judges=judges, verdicts=[*judges])


def test_a_deck_brings_rubrics_of_its_own(tmp_path: Path):
    judge = {"rubric": "comparison-quality", "threshold": None}
    spec = judged(tmp_path, "http://127.0.0.1:9/v1", judge, deck="cards/manga")
    assert "set side by side" in spec.rubrics["kind"].text
