"""The matrix tells a proven row from a failed and a missing one, and says no when a promise has lost its proof."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import matrix

PYPROJECT = """
[tool.pytest.ini_options]
addopts = ["--strict-markers", "--import-mode=importlib"]
markers = ["req(id, ...): rows", "pages: a stage"]
"""


ONE_OF_EACH = """
import pytest

@pytest.mark.req("A-1", "A-2")
@pytest.mark.parametrize("n", [1, 2])
def test_holds(n):
    assert n

@pytest.mark.req("A-2")
def test_breaks():
    assert False

@pytest.mark.req("A-3")
@pytest.mark.skip(reason="not here")
def test_waits():
    assert True

@pytest.fixture
def untidy():
    yield
    raise RuntimeError("left a mess")

@pytest.mark.req("A-4")
def test_leaves_a_mess(untidy):
    assert True

@pytest.mark.req("A-6")
@pytest.mark.xfail
def test_known_to_break():
    assert False
"""


def document(floor: int, *states: str) -> str:
    rows = "\n".join(
        f"| A-{number} | promise | kit/x.py | {state} |" for number, state in enumerate(states, 1)
    )
    return (
        f"The floor is **{floor}** proven rows. It only goes up.\n\n| id | promise | where | "
        f"state |\n|---|---|---|---|\n{rows}\n"
    )


class Project:
    """A repository of one test file, with the real matrix in it."""

    def __init__(self, root: Path, suite: str, text: str):
        self.root = root
        for folder in ("tests", "docs"):
            (root / folder).mkdir()
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "tests/__init__.py").touch()
        shutil.copy(matrix.__file__, root / "tests/matrix.py")
        self.suite = root / "tests/test_suite.py"
        self.suite.write_text(suite)
        (root / "docs/requirements.md").write_text(text)
        for path in root.rglob("*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("PYTEST")
        }
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        return subprocess.run(
            [sys.executable, *(command or ("-m", "tests.matrix"))],
            cwd=self.root, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip


def test_a_row_is_proven_only_when_all_its_tests_passed(tmp_path: Path):
    project = Project(tmp_path, ONE_OF_EACH, document(0, *["planned"] * 6))
    first = project.run().stdout
    said = first.splitlines()
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in said if line.startswith("A-")}
    assert rows == {
        "A-1": ["proven", "test_suite.py::test_holds x2"],
        "A-2": ["failed", "test_suite.py::test_holds x2, test_suite.py::test_breaks (failed)"],
        "A-3": ["missing", "test_suite.py::test_waits (skipped)"],
        "A-4": ["failed", "test_suite.py::test_leaves_a_mess (failed)"],
        "A-5": ["missing"],
        "A-6": ["missing", "test_suite.py::test_known_to_break (skipped)"],
    }
    assert said[-1] == "rows 6, proven 1"
    # Nothing has changed, so that nothing is run.
    unchanged = project.run().stdout
    assert unchanged.splitlines()[-1] == said[-1] and len(unchanged) < len(first)
    project.suite.write_text("import nowhere")
    broken = project.run()
    assert broken.returncode == 2 and "did not come to their end" in broken.stderr


def test_a_stage_that_runs_alone_is_not_taken_for_all_tests(tmp_path: Path):
    project = Project(tmp_path, ONE_OF_EACH, document(0, "planned"))
    project.run("-m", "pytest", "-q", "-p", "tests.matrix", "-m", "pages")
    assert not (tmp_path / ".kit" / "requirements.json").exists()


@pytest.mark.parametrize(
    ("row", "text", "fault"),
    [
        ("A-1", document(1, "done", "planned"), ()),
        ("A-1", document(0, "planned", "done"), ("A-2 is called done and is missing",)),
        ("A-9", document(0, "planned"), ("A-9 is no row of docs/requirements.md: test_holds",)),
        ("A-1", document(2, "done", "planned"), ("1 rows are proven, the floor is 2",)),
    ],
    ids=["at the floor", "done without proof", "no such row", "below the floor"],
)
def test_a_promise_without_proof_is_a_fault(row: str, text: str, fault: tuple[str, ...]):
    endings = {row: {"test_holds": "passed"}}
    assert matrix.judge(matrix.read_table(text), endings).faults == fault


@pytest.mark.parametrize(
    "text",
    [
        document(0, "finished"),
        document(0, "done") + "| A-1 | again | kit/x.py | done |\n",
        document(0) + "| A-1 | a | b | kit/x.py | done |\n",
        "| A-1 | promise | kit/x.py | done |\n",
    ],
    ids=["unknown state", "row twice", "cell too many", "no floor"],
)
def test_a_table_that_could_hide_a_row_is_refused(text: str):
    with pytest.raises(ValueError, match=r"docs/requirements\.md: "):
        matrix.read_table(text)
