"""The command line as a person meets it: steps and an answer, or one sentence and exit code 2; never a traceback."""

import io
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from kit.cli import main
from kit.settings import HOME
from kit.worlds.__main__ import main as serve_worlds
from tests.forks import exit_code

MIXED = "my receipt didn't scan, how many points do I have, and find coffee deals"


@dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, stdin: str = "", **environ: str) -> Result:
    """The command in this process: an exception that escapes it fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(
            os.environ, {"KIT_STORE": ":memory:", "KIT_PACE": "0", **environ}, clear=True
        ),
        mock.patch("sys.stdin", io.StringIO(stdin)),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(arguments)
    return Result(code, out.getvalue(), err.getvalue())


def type_command(arguments: tuple[str, ...], environ: Mapping[str, str], folder: Path) -> None:
    """The command in a process of its own, where nobody catches what it logs; its two streams become files."""
    # A shell that runs this suite in the background has its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with (
        mock.patch.dict(
            os.environ, {"KIT_STORE": ":memory:", "KIT_PACE": "0", **environ}, clear=True
        ),
        (folder / "stdout").open("w", buffering=1) as out,
        (folder / "stderr").open("w", buffering=1) as err,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(arguments)
    sys.exit(code)


def process(folder: Path, *arguments: str, **environ: str) -> Result:
    """What the command prints as a process of its own."""
    code = exit_code(type_command, arguments, environ, folder, seconds=120)
    return Result(code, (folder / "stdout").read_text(), (folder / "stderr").read_text())


def refused(result: Result, *words: str) -> None:
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr and result.stderr.startswith("kit: ")
    for word in words:
        assert word in result.stderr


def test_ask_tells_preamble_steps_and_answer_in_that_order():
    result = run("ask", MIXED)
    assert result.returncode == 0 and result.stderr == ""
    told = result.stdout
    assert (
        told.index("Let me") < told.index("rewards: asked") < told.index("4,975 points")
        and "offline stand-in" in told
    )


def test_ask_json_is_one_event_a_line_and_the_reply_last():
    result = run("ask", "--json", MIXED)
    *events, reply = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert {outcome["agent"]: outcome["ok"] for outcome in reply["outcomes"]} == {
        "support": True,
        "rewards": True,
        "shop": True,
    }
    assert reply["text"] and reply["routing"]["intent_count"] == 3


@pytest.mark.parametrize(
    ("broken", "code", "strict_code"),
    [
        ((), 0, 0),
        (("--fault", "rewards=raise"), 0, 1),
        (("--cap", "2"), 0, 1),
    ],
    ids=["whole", "failed", "left out"],
)
def test_ask_ends_with_1_where_a_part_is_missing_and_only_if_it_is_strict(
    broken: tuple[str, ...], code: int, strict_code: int
):
    assert run("ask", MIXED, *broken).returncode == code
    assert run("ask", MIXED, *broken, "--strict").returncode == strict_code


def test_a_question_may_come_from_standard_input():
    assert "help" in run("ask", "-", stdin="hello\n").stdout


def test_an_unusable_message_gets_a_plain_word():
    result = run("ask", "\x07\x1b")
    assert "didn't catch" in result.stdout and "Could not answer after" in result.stdout
    assert result.returncode == 1


@pytest.mark.parametrize("cap", ["0", "9", "two"])
def test_a_cap_is_one_to_eight(cap: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        main(["ask", "find coffee deals", "--cap", cap])
    assert stopped.value.code == 2
    assert f"argument --cap: {cap!r} is no cap: give 1 to 8" in capsys.readouterr().err


def test_the_shipped_deck_passes_its_check_without_a_warning():
    chosen = run("check", str(HOME / "cards" / "consumer"), KIT_MODEL="offline")
    assert "KIT_MODEL=offline is not looked at" in chosen.stdout
    result = run("check", str(HOME / "cards" / "consumer"))
    assert "KIT_MODEL" not in result.stdout
    assert result.returncode == 0 and "9 cards" in result.stdout and "0 warnings" in result.stdout
    assert "30000 ms a turn, 10000 ms a model call of the orchestrator" in result.stdout


def test_broken_yaml_and_unknown_ids_are_named_with_file_and_line(tmp_path: Path):
    import shutil

    shutil.copytree(HOME / "cards", tmp_path / "cards")
    shop = tmp_path / "cards" / "consumer" / "shop.yaml"
    shop.write_text(shop.read_text().replace("search_offers", "serch_offers"))
    (tmp_path / "cards" / "consumer" / "play.yaml").write_text("id: [unclosed\n")
    result = run("check", str(tmp_path / "cards" / "consumer"))
    refused(result, "shop.yaml:", "search_offers", "play.yaml:")
    listed = run("check", str(tmp_path / "cards" / "consumer"), "--json")
    findings = [json.loads(line) for line in listed.stdout.splitlines()]
    assert listed.returncode == 2 and listed.stderr == ""
    assert {finding["kind"] for finding in findings} == {"fault"}
    assert any("shop.yaml:" in finding["where"] for finding in findings)
    for finding in findings:
        assert f"  - {finding['where']}: {finding['words']}" in result.stderr.splitlines()


def test_missing_data_says_how_to_make_it(tmp_path: Path):
    refused(run("ask", "find coffee", KIT_DATA=str(tmp_path)), "make_data.py")


def test_a_store_that_cannot_be_written_says_what_to_do(tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    refused(run("ask", "find coffee", KIT_STORE=str(tmp_path / "file" / "kit.db")), "kit.db")
    (tmp_path / "broken.db").write_text(
        "not a database, and long enough to be looked at as one" * 40
    )
    refused(run("ask", "find coffee", KIT_STORE=str(tmp_path / "broken.db")), "choose another file")


def test_a_setting_that_cannot_be_used_names_its_variable():
    refused(run("ask", "find coffee", KIT_PACE="quick"), "KIT_PACE='quick'")
    refused(
        run("ask", "find coffee", OPENAI_BASE_URL="127.0.0.1:8080/v1"),
        "OPENAI_BASE_URL='127.0.0.1:8080/v1' cannot be used",
    )


def test_a_port_that_is_taken_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setattr(sys, "argv", ["kit.worlds", "--port", port])
        assert serve_worlds() == 2
    assert "is already taken" in capsys.readouterr().err


def test_the_card_schema_is_for_editors():
    schema = json.loads(run("cards", "schema").stdout)
    for name, part in [("AgentCard", schema), *schema["$defs"].items()]:
        for field_name, field in part["properties"].items():
            assert field.get("description"), f"{name}.{field_name}"


def test_route_writes_one_prediction_a_turn(tmp_path: Path):
    agents = [
        ("Hotels_4", "Find and book hotels and rooms."),
        ("rain?", "The weather: rain, sun, temperature."),
    ]
    catalog = tmp_path / "catalog.json"
    catalog.write_text(json.dumps({"sub_agents": [{"id": i, "description": d} for i, d in agents]}))
    turns = [
        {"user": "book a hotel room in Leeds", "assistant": "Which dates?"},
        {"user": "and will it rain there?"},
    ]
    (tmp_path / "cases.jsonl").write_text(json.dumps({"id": "d1", "turns": turns}) + "\n")
    out = tmp_path / "pred.jsonl"
    result = run(
        "route", str(tmp_path / "cases.jsonl"), "--catalog", str(catalog), "--out", str(out)
    )
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines == [
        {"id": "d1", "turn": 0, "called": ["Hotels_4"]},
        {"id": "d1", "turn": 1, "called": ["rain?"]},
    ]


def test_a_case_file_to_route_names_known_agents_and_is_not_empty(tmp_path: Path):
    cases = tmp_path / "cases.jsonl"
    known = {"id": "1", "user": "my points", "expected_sub_agents": ["rewards"]}
    unlabelled = {"id": "2", "user": "my points", "expected_sub_agents": None}
    otherwise = {"id": "4", "user": "my points", "expected_sub_agents": {"intent": 3}}
    unknown = {"id": "3", "user": "my points", "expected_sub_agents": ["rewardz"]}
    arguments = ("route", str(cases), "--out", str(tmp_path / "out.jsonl"))
    cases.write_text("".join(json.dumps(case) + "\n" for case in (known, unlabelled, otherwise)))
    assert run(*arguments).stdout.startswith("3 turns routed")
    cases.write_text("".join(json.dumps(case) + "\n" for case in (known, unknown)))
    refused(run(*arguments), "cases.jsonl:2: unknown agent 'rewardz': did you mean 'rewards'?")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1
    cases.write_text("\n")
    refused(run(*arguments), "cases.jsonl holds no case", '{"id": "coffee-1", "user": ')
    refused(run(*arguments, "--catalog", str(cases)), "catalogue")
    refused(run("route", str(tmp_path / "none.jsonl"), *arguments[2:]), "none.jsonl")


def test_what_a_deck_has_none_of_is_named_with_the_place_for_it():
    surface = run("ask", "hello", "--surface", "foo")
    refused(surface, "unknown surface 'foo'", "this deck has none", "topologies", "deck.yaml")
    decide = run("evolve", "decide", "rewards")
    refused(decide, "'rewards' has no new version", "rewards.next.yaml")
    refused(run("evolve", "decide", "rewardz"), "unknown card 'rewardz': did you mean 'rewards'?")


@pytest.mark.parametrize("arguments", [("report", "nope"), ("verdict", "kit", "kit")], ids=" ".join)
def test_a_folder_that_no_grid_wrote_is_said_to_be_that(arguments: tuple[str, ...]):
    words = (
        "no folder is called nope" if "nope" in arguments else "no grid wrote its results to kit"
    )
    result = run(*arguments)
    refused(result, words, "name the folder of a run", ".kit/grids")
    assert "again" not in result.stderr


@pytest.mark.parametrize("command", [("monitor", "--once"), ("data", "metrics")])
def test_a_store_that_is_not_there_is_not_watched_as_one_where_all_is_quiet(
    command: tuple[str, str], tmp_path: Path
):
    store = tmp_path / "none.db"
    refused(run(*command, KIT_STORE=str(store)), "there is no store at", "correct KIT_STORE")
    assert not store.exists()
