"""Every notebook runs to its end, and answers what README says it does: `make run-notebooks`."""

import re
from pathlib import Path

import pytest

from kit.bench.grid.stored_runs import list_runs
from make_report import NOTEBOOKS, answer, read, readme_answers, run

pytestmark = pytest.mark.timeout(3600)
"""One that hangs must not hold the run for good; how long a whole one takes is the machine's affair."""
MODELS = re.compile(r"MODELS = \(.*?\n\)", re.DOTALL)


@pytest.fixture(autouse=True)
def no_cell_is_played_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids lie beside the store: in an empty folder, what the code does today is played, not what it did once."""
    monkeypatch.setenv("KIT_STORE", str(tmp_path / "kit.db"))


def test_another_model_is_compared_by_editing_one_cell(tmp_path: Path) -> None:
    notebook = read(next(path for path in NOTEBOOKS if path.stem == "06_models"))
    [cell] = [cell for cell in notebook.cells if MODELS.search(cell.source)]
    models = 'MODELS = ("simulated-gpt-4.1-mini", "offline")'
    cell.source = MODELS.sub(models, cell.source).replace("EVERY = 1", "EVERY = 12")
    text = answer(run(notebook))
    runs, broken = list_runs([tmp_path / "grids"])
    assert {"06_models", "06_real"} <= set(runs) and not broken, (
        "the page Benchmarks shows what a notebook has played"
    )
    assert text.startswith(
        "Offline stand-in and simulated: beside gpt-4.1-mini, 0 of 1 models are better (its law allows none), "
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_answers_what_the_readme_says(path: Path) -> None:
    assert answer(run(read(path))) == readme_answers()[path.stem][1]
