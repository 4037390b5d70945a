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


def wrong_answers(cell: Cell) -> list[Question]:
    return [question for question, holds in cell.judgement.answers.items() if not holds]


@pytest.mark.parametrize(
    ("system", "scenario", "question"),
    [("spending", "raises", "cost"), ("leaving", "hangs", "running")],
)
def test_what_a_system_does_beside_its_answer_is_seen(
    system: str, scenario: str, question: Question
):
    (cell,) = cells_of(f"{SYSTEMS}:{system}", scenario)
    assert question in wrong_answers(cell), cell


def test_a_system_that_is_right_passes_and_one_that_asks_nobody_is_void():
    for cell in cells_of(f"{SYSTEMS}:right", "raises", "cancelled", "says_nothing", "all_fail"):
        assert cell.judgement.verdict == "pass", cell
    (cell,) = cells_of(f"{SYSTEMS}:constant", "raises")
    assert cell.judgement.verdict == "void"


def test_the_kit_owns_up_where_its_model_claims_that_all_is_well_and_goes_on_once_it_was_killed():
    kit = f"{ADAPTERS / 'subagent_kit.py'}:system"
    raises, killed = cells_of(kit, "raises", "killed", best=True)
    assert raises.judgement.verdict == killed.judgement.verdict == "pass", (raises, killed)
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


@pytest.mark.parametrize(
    ("framework", "verdicts"),
    [
        ("langchain", {"all_well": "pass", "refuses": "fail"}),
        ("pydantic_ai", {"all_well": "pass"}),
        ("agents", {"all_well": "pass"}),
    ],
)
def test_each_example_of_the_page_is_a_system_that_can_be_played(
    framework: str, verdicts: dict[str, str], tmp_path: Path
):
    """The page shows anybody's own system in the words of three frameworks. Nothing looks at what its model writes."""
    page = (HOME / "docs" / "conformance.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (example,) = [code for code in examples if re.search(rf"^from {framework}\b", code, re.M)]
    (tmp_path / "mine.py").write_text(example)
    result = play_system(
        f"{tmp_path / 'mine.py'}:system",
        [*verdicts],
        ["claiming"],
        configurations=[False],
        patience=120.0,
    )
    found = {cell.scenario: cell.judgement.verdict for cell in result.cells}
    assert found == verdicts, result.cells


def test_what_runs_in_a_foreign_environment_needs_the_standard_library_alone():
    code = f"import sys; sys.path.insert(0, {str(HOME)!r}); import kit.conformance.stage"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
