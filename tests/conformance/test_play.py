"""Systems are played in processes of their own: what each does wrong is seen, and what is right passes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit.cli import main
from kit.conformance.play import Cell, StageError, play_system
from kit.conformance.scenario import Question

HOME = Path(__file__).parents[2]
SYSTEMS = Path(__file__).parent / "systems.py"
ADAPTERS = HOME / "benchmarks" / "conformance" / "adapters"

pytestmark = pytest.mark.realtime


def cells_of(reference: str, *scenarios: str, best: bool = False) -> tuple[Cell, ...]:
    # A busy machine may take its time: only what hangs is late.
    result = play_system(reference, scenarios, ["claiming"], [best], patience=120.0)
    return result.cells


@pytest.mark.parametrize(
    ("system", "scenario", "question"),
    [("spending", "raises", "cost"), ("leaving", "hangs", "running")],
)
def test_what_a_system_does_beside_its_answer_is_seen(
    system: str, scenario: str, question: Question
):
    (cell,) = cells_of(f"{SYSTEMS}:{system}", scenario)
    assert not cell.judgement.answers[question], cell


def test_a_system_that_is_right_passes_and_one_that_asks_nobody_is_void():
    for cell in cells_of(f"{SYSTEMS}:right", "raises", "cancelled", "says_nothing", "all_fail"):
        assert cell.judgement.verdict == "pass", cell
    (cell,) = cells_of(f"{SYSTEMS}:constant", "raises")
    assert cell.judgement.verdict == "void"


def test_the_kit_goes_on_once_it_was_killed():
    (killed,) = cells_of(f"{ADAPTERS / 'subagent_kit.py'}:system", "killed", best=True)
    assert killed.judgement.verdict == "pass", killed
    asked = [child for child, event in killed.evidence.receipts if event == "asked"]
    assert asked.count("payments") == 1, "its act is done once"
    assert asked.count("hotels") == 2


def test_a_system_that_cannot_be_imported_says_why():
    with pytest.raises(StageError, match="has no attribute 'nobody'"):
        play_system(f"{SYSTEMS}:nobody", ["all_well"])
    with pytest.raises(StageError, match="names no file"):
        play_system("nowhere", ["all_well"])
    with pytest.raises(StageError, match=r"there is no file \./nope\.py"):
        play_system("./nope.py:x", ["all_well"])


def test_the_command_says_why_a_play_is_no_pass(capsys: pytest.CaptureFixture[str]):
    assert main(["conform", f"{SYSTEMS}:silent", "--only", "all_well,raises"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  fail  raises            does not say that hotels is missing" in lines
    assert lines[-1] == "2 of 4 plays pass"
    assert main(["conform", f"{SYSTEMS}:right", "--only", "all_well", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["verdict"] for cell in cells] == ["pass", "pass"]
    assert main(["conform", f"{SYSTEMS}:right", "--only", "all_wel"]) == 2
    assert "all_well" in capsys.readouterr().err


@pytest.mark.pages
@pytest.mark.parametrize(
    ("framework", "scenario", "verdict"),
    [
        ("langchain", "refuses", "fail"),
        ("pydantic_ai", "all_well", "pass"),
        ("agents", "all_well", "pass"),
    ],
)
def test_each_example_of_the_page_is_a_system_that_can_be_played(
    framework: str, scenario: str, verdict: str, tmp_path: Path
):
    """The page shows anybody's own system in the words of three frameworks. Nothing looks at what its model writes."""
    page = (HOME / "docs" / "conformance.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (example,) = [code for code in examples if re.search(rf"^from {framework}\b", code, re.M)]
    (tmp_path / "mine.py").write_text(example)
    (cell,) = cells_of(f"{tmp_path / 'mine.py'}:system", scenario)
    assert cell.judgement.verdict == verdict, cell


def test_what_runs_in_a_foreign_environment_needs_the_standard_library_alone():
    code = f"import sys; sys.path.insert(0, {str(HOME)!r}); import kit.conformance.stage"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
