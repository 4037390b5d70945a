"""A project of one's own: written by one command, found by all others, and what is not installed is named."""

import ast
import asyncio
import json
import os
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest

from kit.settings import HOME, Settings
from tests.cli.test_cli import Result, refused, run
from tests.forks import printed_by

QUESTION = "Which laptop does Ana have, and which room is free on Friday?"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as `new` writes it, and the folder worked in."""
    monkeypatch.chdir(tmp_path)
    assert run("new", "helpdesk").returncode == 0
    monkeypatch.chdir(tmp_path / "helpdesk")
    return tmp_path / "helpdesk"


def here(*arguments: str) -> Result:
    """The command with nothing in the environment that says where things are."""
    return run(*arguments, KIT_STORE="")


def test_cards_are_measured_by_the_projects_own_deck_and_cases(project: Path):
    routed = here("cards", "routing")
    assert f"dialogues of {project}/cases.jsonl over 2 cards of {project}/deck" in routed.stdout
    assert "rewards" not in routed.stdout, "the demo's cards are not these"
    trial = here("cards", "promote", "rooms")
    assert f"rooms on offline stand-in, over {project}/cases.jsonl" in trial.stdout
    assert "no case goes over to 'rooms' from another agent" in trial.stdout
    assert "0 of 0" not in trial.stdout and trial.returncode == 1
    assert here("route", "--out", "predictions.jsonl").returncode == 0
    lines = (project / "predictions.jsonl").read_text().splitlines()
    called = {name for line in lines for name in json.loads(line)["called"]}
    assert called == {"devices", "rooms"}


def test_a_tool_that_is_changed_answers_as_changed(project: Path):
    tools = project / "deck" / "tools.py"
    tools.write_text(tools.read_text().replace("Model 14", "Model 18"))
    assert "Model 18" in here("ask", QUESTION).stdout


def test_a_question_asked_again_has_the_same_answer_and_one_about_another_has_its_own(
    project: Path,
):
    for question, answer in [
        ("Which laptop does Ana have?", "Ana has Model 14"),
        ("Which laptop does Ana have?", "Ana has Model 14"),
        ("Which laptop does Ben have?", "Ben has Model 16"),
        ("And Ana?", "Ana has Model 14"),
    ]:
        assert answer in here("ask", question).stdout, question


def test_why_a_tool_failed_stands_on_stderr_and_never_in_the_answer(project: Path):
    tools = project / "deck" / "tools.py"
    tools.write_text(tools.read_text().replace("LAPTOPS.get(owner.lower(), ", "({}['owner'], "))
    asked = here("ask", "Which laptop does Ana have?")
    assert asked.stderr.splitlines() == [
        "tool 'find_laptop' of devices: exception: KeyError: 'owner'"
    ]
    assert "KeyError" not in asked.stdout


def test_an_endpoint_alone_is_enough_for_a_new_project(project: Path):
    asked = run("ask", "--json", QUESTION, KIT_STORE="", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert asked.returncode == 1 and '"model":"local"' in asked.stdout, asked.stderr


def test_a_turn_that_waits_for_its_user_ends_with_a_code_of_its_own_and_the_line_that_answers(
    project: Path,
):
    deck = project / "deck" / "deck.yaml"
    deck.write_text(
        deck.read_text().replace("  find_room:", "  find_laptop: {confirm: true}\n  find_room:")
    )
    asked = here("ask", "Which laptop does Ana have?")
    assert asked.returncode == 3 and "Model 14" not in asked.stdout and asked.stderr == ""
    hint = asked.stdout.splitlines()[-1].removeprefix("answer with: ").removesuffix(" (or --no)")
    answered = here(*hint.removeprefix("python -m kit ").split())
    assert answered.returncode == 0 and "Model 14" in answered.stdout


def test_a_project_is_found_from_the_folders_inside_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "data").mkdir()
    monkeypatch.chdir(project / "data")
    settings = Settings.read({})
    assert (settings.deck, settings.data) == (project / "deck", project / "data")
    assert (
        settings.store == str(project / ".kit" / "kit.db")
        and settings.grids == project / ".kit" / "grids"
    )


def test_what_the_environment_names_goes_before_the_project(project: Path, tmp_path: Path):
    settings = Settings.read(
        {"KIT_DECK": "cards/manga", "KIT_STORE": str(tmp_path / "other" / "kit.db")}
    )
    assert (
        settings.deck == HOME / "cards" / "manga" and settings.grids == tmp_path / "other" / "grids"
    )


def test_a_shipped_deck_is_found_from_anywhere_by_the_name_that_the_readme_uses(
    project: Path,
):
    assert run("check", "cards/outlets").returncode == 0
    (project / "cards" / "outlets").mkdir(parents=True)  # one of that name here goes first
    assert "cards/outlets/deck.yaml" in run("ask", "hello", KIT_DECK="cards/outlets").stderr


def test_outside_of_a_project_the_demo_answers_and_no_grid_is_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert Settings.read({}).deck == HOME / "cards" / "consumer"
    refused(run("grid"), "name the grid's file")


@pytest.mark.parametrize(
    ("argv", "begin"),
    [
        (["venv/bin/subagent-kit", "ask"], "subagent-kit"),
        (["streamlit/__main__.py", "run"], "python -m kit"),
    ],
)
def test_hints_name_the_command_as_it_was_called(
    argv: list[str], begin: str, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", ["python", *argv])
    assert f"  {begin} check\n  {begin} app\n" in run("new", "another").stdout
    monkeypatch.chdir(project.parent)
    refused(run("grid"), f"a project that `{begin} new` made")


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
            ("OPENAI_BASE_URL without KIT_MODEL", "'local'", "give it an entry"),
        ),
        ({"KIT_MODEL": "gpt-4.1-mimi"}, ("KIT_MODEL=gpt-4.1-mimi", "did you mean 'gpt-4.1-mini'?")),
    ],
)
def test_a_model_that_no_entry_describes_is_named_with_the_fix(
    environment: dict[str, str], words: tuple[str, ...], project: Path
):
    models = project / "models.yaml"
    models.write_text(models.read_text().partition("local:")[0])
    refused(run("ask", "hello", KIT_STORE="", **environment), *words)


@pytest.mark.parametrize(
    ("name", "words"), [("there", "is there already"), ("x.y", "is no name"), ("a b", "is no name")]
)
def test_a_project_is_not_written_over_anything(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    refused(run("new", name), words)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_the_project_s_own_test_passes(project: Path):
    with mock.patch.dict(os.environ, clear=True):
        tests = runpy.run_path(str(project / "test_project.py"))
        played = [test() for name, test in tests.items() if name.startswith("test_")]
    assert played


def test_the_notebook_of_the_project_runs(project: Path, capsys: pytest.CaptureFixture[str]):
    assert here("grid").returncode == 0
    names: dict[str, object] = {}
    with asyncio.Runner() as runner:
        for cell in json.loads((project / "notebook.ipynb").read_text())["cells"]:
            if cell["cell_type"] == "code":
                cell_code = compile(
                    "".join(cell["source"]), "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                )
                if (step := eval(cell_code, names)) is not None:
                    runner.run(step)
    text = capsys.readouterr().out
    assert "Model 14" in text and "('devices', 'rooms')" in text and "1.0" in text


def test_a_kit_that_opens_says_in_one_line_how_to_read_the_warnings_of_its_deck(
    project: Path, caplog: pytest.LogCaptureFixture
):
    assert here("ask", "hello").returncode == 0 and not [
        one for one in caplog.records if one.name == "kit.deck"
    ]
    card = project / "deck" / "rooms.yaml"
    card.write_text(
        "id: rooms\ndescription: Knows the rooms.\nmodel: offline\nprompt_blocks: [rooms]\n"
    )
    assert here("ask", "hello").returncode == 0
    (record,) = (one for one in caplog.records if one.name == "kit.deck")
    line, _, hint = record.getMessage().partition("; to read: ")
    assert line == "the deck has 1 warning" and hint == f"python -m kit check {project / 'deck'}"
    assert "rooms.yaml" in run(*hint.split()[3:]).stdout


HIDDEN = """
import io, sys
from contextlib import redirect_stderr
for name in ("a2a", "matplotlib", "opentelemetry", "opik", "pandas", "scipy", "statsmodels", "streamlit", "uvicorn"):
    sys.modules[name] = None
from kit.cli import main
for command in (["verdict", "a", "b"], ["ask", "--pattern", "a2a", "hi"], ["app"], ["grid", "data/grids/patterns_small.yaml"]):
    assert main(command) == 2, command
import asyncio, os
from kit import KitError, Settings, open_kit
async def opened(**settings):
    try:
        async with open_kit(Settings(store=":memory:", model="offline", **settings)):
            pass
    except KitError as error:
        print(error, file=sys.stderr)
asyncio.run(opened(otlp_endpoint="http://127.0.0.1:9"))
asyncio.run(opened(opik_url="http://127.0.0.1:9/api"))
try:
    import kit.bench.charts
except KitError as error:
    print(error, file=sys.stderr)
"""


def test_a_missing_extra_is_named_with_the_line_that_installs_it(tmp_path: Path):
    done = printed_by(HIDDEN, [], {"PATH": os.environ["PATH"], "KIT_STORE": ":memory:"}, tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    lines = done.stderr.splitlines()
    extras = ("bench", "a2a", "app", "bench", "otlp", "opik", "bench")
    assert [line.rpartition("; ")[2] for line in lines] == [
        f"run: pip install 'subagent-kit[{extra}]'" for extra in extras
    ]
