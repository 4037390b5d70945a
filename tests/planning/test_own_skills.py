"""A skill service of a project's own, as docs/plans.md shows it: planned over, refused in words, resumed, forgotten."""

import re
from pathlib import Path

import pytest

from kit.runtime.act_ledger import DECLINED
from tests.cli.test_cli import Result, run

ROOT = Path(__file__).resolve().parents[2]
BOTH_LABELS = """    - request: Print the labels of {first} and of {second}
      steps:
        - {task: "Print the label of {first}", skills: [label_print], shape: {printed: string}}
        - {task: "Print the label of {second}", skills: [label_print], shape: {printed: string}}
"""
PAGE = (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")


@pytest.fixture
def deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The deck of a new project with the files of the page, as they stand there."""
    monkeypatch.chdir(tmp_path)
    assert run("new", "laboratory").returncode == 0
    monkeypatch.chdir(tmp_path / "laboratory")
    folder = tmp_path / "laboratory" / "deck"
    section = PAGE.partition("## A skill service of your own\n")[2].partition("\n## ")[0]
    texts = re.findall(r"```(?:python|yaml)\n(.*?)```", section, re.S)
    for name, text in zip(
        ("skills.py", "settings", "planner.yaml", "executor.yaml"), texts, strict=True
    ):
        (folder / name).write_text(text)
    settings = folder / "deck.yaml"
    settings.write_text(
        re.sub(r"(?m)^tools:.*\n", "", settings.read_text()) + (folder / "settings").read_text()
    )
    return folder


def plan(message: str, *options: str) -> Result:
    return run("ask", *options, "--pattern", "plan_execute", message, KIT_STORE="")


def change(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_the_service_of_the_page_is_planned_over_as_it_is_written(deck: Path) -> None:
    checked = run("check", KIT_STORE="")
    assert (
        "0 warnings" in checked.stdout
        and f"skill service runs python skills.py in {deck}" in checked.stdout
    )
    asked = plan("List the samples of maize")
    assert "s-001" in asked.stdout and "s-002" not in asked.stdout and asked.stderr == ""
    (plan_id,) = re.findall(r"· (plan_\w+)$", asked.stdout, re.M)
    again = run("resume", plan_id, KIT_STORE="")
    assert (
        again.returncode == 0
        and "s-001" in again.stdout
        and "This plan had already ended" in again.stdout
    )
    assert run("data", "forget", "visitor", KIT_STORE="").returncode == 0


def test_what_a_service_lacks_is_named_on_stderr_and_never_in_the_answer(deck: Path) -> None:
    change(deck / "skills.py", '"output_schema": tool.output_schema', '"more": 1')
    asked = plan("List the samples of maize")
    words = "sample_list: .*output_schema: Field required"
    assert re.search(words, asked.stderr) and "plan: insufficient: " in asked.stderr, asked.stderr
    assert asked.returncode == 1, "nothing of the message was answered"
    assert "None" not in asked.stderr
    assert "errors.pydantic.dev" not in asked.stderr and "infeasible" not in asked.stdout


def test_cards_of_a_plan_without_their_tools_are_told_where_these_come_from(deck: Path) -> None:
    change(deck / "deck.yaml", ", kit.planning.tools:TOOLS", "")
    checked = run("check", KIT_STORE="")
    assert checked.returncode == 2
    assert (
        "unknown tool 'submit_plan'" in checked.stderr
        and "`tools: [kit.planning.tools:TOOLS]` in deck.yaml" in checked.stderr
    )


@pytest.mark.req("K-12", "AS-21")
def test_each_question_of_a_plan_is_answered_by_the_line_below_it_and_a_no_alarms_nobody(
    deck: Path,
) -> None:
    settings = deck / "deck.yaml"
    settings.write_text(settings.read_text() + BOTH_LABELS)
    change(settings, "  find_room:", "  call_skill: {confirm: true}\n  find_room:")
    lines = [answer_line(plan("Print the labels of s-001 and of s-002"))]
    again = run("resume", lines[0], "--yes", KIT_STORE="")
    lines.append(answer_line(again))
    assert lines[0] != lines[1]
    refused = run("resume", lines[0], "--yes", KIT_STORE="")
    assert refused.returncode == 2 and "s-002" in refused.stderr and lines[1] in refused.stderr
    declined = run("resume", lines[1], "--no", KIT_STORE="")
    assert declined.returncode == 0 and "label of s-001" in declined.stdout
    assert f"Print the label of s-002: {DECLINED}" in declined.stdout, declined.stdout
    watched = run("monitor", "--once", KIT_STORE="")
    assert watched.returncode == 0 and "ALERT" not in watched.stdout, watched.stdout
    assert "Steps that failed: label_print                   0% " in watched.stdout


def answer_line(asked: Result) -> str:
    """Returns the turn that is named by the line which says how a question is answered."""
    assert asked.returncode == 3, asked.stdout + asked.stderr
    return re.findall(r"^answer with: .* resume (\w+) --yes \(or --no\)$", asked.stdout, re.M)[0]
