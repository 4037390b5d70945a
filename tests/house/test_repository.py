"""The rules of the house hold: CONTRIBUTING.md states them, this file says no."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix import DOCUMENT, read_table

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CODE = ("kit", "data", "notebooks", "benchmarks", "app.py")
"""Where the rules for code hold."""
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TITLES = {
    "dots": 2,
    "bands": 3,
    "ecdf": 4,
    "stack": 2,
    "heat": 2,
    "against": 2,
    "tradeoff": 1,
    "waterfall": 1,
}
"""Chart -> which of its arguments is the title."""
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"

PLANTED = {
    "Every package stands on those below it": ("core/card.py", "import kit.tools.tool"),
    "and every package has a place": ("misplaced.py", ""),
    "Pages share": ("ui/shared/address.py", "import kit.ui.chat.layout"),
    "Plan pages and clients of the API": ("ui/plans/page.py", "import kit.stores.protocol"),
    "nothing of the kit imports one": ("settings.py", "import kit.worlds.consumer.world"),
    "nobody imports the names of the root": ("tools/tool.py", "from kit import open_kit"),
    "Settings reach the kit": ("compose/prompts.py", "import kit.settings"),
    "What stands beside notebooks": ("bench/peers.py", "import studies.cap"),
    "OpenAI's client": ("models/scripted.py", "import langchain_openai"),
    "Opik is imported": ("sinks/recorder.py", "import opik"),
    "OpenSearch's client": ("stores/opening.py", "import opensearchpy"),
    "Dask is imported": ("bench/grid/run.py", "import distributed"),
    "The A2A SDK": ("patterns/supervisor.py", "import a2a.types"),
    "The MCP SDK": ("tools/loading.py", "import mcp"),
    "Streamlit is imported": ("cli/ask.py", "import streamlit"),
    "Frames and figures": ("runtime/turn.py", "import pandas"),
    "SciPy": ("bench/grid/forecast.py", "import scipy"),
    "In the bench": ("bench/statistics/power.py", "import kit.bench.grid.grid_file"),
    "Another framework is imported": ("runtime/team.py", "import langgraph"),
    "Values touch nothing": ("core/outcome.py", "import asyncio"),
    "Stores know values": ("stores/sqlite.py", "import langchain_core.messages"),
}
"""Words of a contract -> a line that breaks it, and where."""


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        found = (
            sorted((ROOT / folder).rglob("*.py")) if (ROOT / folder).is_dir() else [ROOT / folder]
        )
        yield from ((path.relative_to(ROOT).as_posix(), path.read_text()) for path in found)


def texts() -> Iterator[tuple[str, str]]:
    """Every file of ours that a person may read, without built and generated ones."""
    kinds = {".py", ".md", ".yaml", ".toml", ".ipynb", ".txt", ""}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not is_hidden(name) and name != "__pycache__"]
        for path in (Path(folder, name) for name in names if not is_hidden(name)):
            if path.suffix in kinds:
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def is_hidden(name: str) -> bool:
    return name.startswith(".") and name not in (".ci", ".streamlit")


def cited_decisions(text: str) -> Iterator[int]:
    """The numbers of docs/decisions.md that a text cites: `decisions 5`, `decisions 2, 3`, `decisions 4 to 7`."""
    for citation in re.findall(r"\bdecisions? (\d+(?:(?:, | and | to )\d+)*)", text):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", citation):
            yield from range(int(first), int(last or first) + 1)


def lint_imports(root: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS, "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_every_import_contract_notices_its_violation(tmp_path: Path):
    shutil.copytree(ROOT / "kit", tmp_path / "kit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for place, line in PLANTED.values():
        with (tmp_path / "kit" / place).open("a") as module:
            module.write(f"\n{line}\n")
    said = lint_imports(tmp_path)
    contracts = [contract["name"] for contract in PYPROJECT["tool"]["importlinter"]["contracts"]]
    assert {name for name in contracts if f"{name} BROKEN" in said} == set(contracts), said
    assert all(any(words in name for name in contracts) for words in PLANTED)
    assert "kit.core is not allowed to import kit.tools" in said
    assert "misplaced" in said


def catches_all(node: ast.AST) -> bool:
    def blind(expression: ast.expr | None) -> bool:
        kinds = expression.elts if isinstance(expression, ast.Tuple) else [expression]
        kinds = [kind.value if isinstance(kind, ast.Starred) else kind for kind in kinds]
        return any(
            kind is None
            or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException", "FOREIGN"))
            for kind in kinds
        )

    match node:
        case ast.ExceptHandler(type=kind, body=body):
            return blind(kind) and not (isinstance(body[-1], ast.Raise) and body[-1].exc is None)
        case ast.Call(func=ast.Attribute(attr="suppress") | ast.Name(id="suppress"), args=kinds):
            return any(blind(kind) for kind in kinds)
        case _:
            return False


def test_exceptions_are_caught_blindly_only_where_the_list_says():
    listed = {
        name
        for name, rules in PYPROJECT["tool"]["ruff"]["lint"]["per-file-ignores"].items()
        if "BLE001" in rules
    }
    catching = (
        (name, text)
        for name, text in sources(*CODE)
        if "Exception" in text or "FOREIGN" in text or "except:" in text
    )
    found = {name for name, text in catching if any(map(catches_all, ast.walk(ast.parse(text))))}
    assert found == listed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_short_and_committed_without_outputs(path: Path):
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) <= 40
    for cell in code:
        text = "".join(cell["source"])
        assert len(text.splitlines()) <= 30, text
        assert not re.search(r"^\s*class ", text, re.MULTILINE), text
        assert (cell["outputs"], cell["execution_count"]) == ([], None), text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_title_of_a_figure_is_computed(path: Path):
    for cell in json.loads(path.read_text())["cells"]:
        tree = (
            ast.parse("".join(cell["source"]))
            if cell["cell_type"] == "code"
            else ast.Module([], [])
        )
        calls = [
            (ast.unparse(node.func), node.args)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        ]
        titles = [
            arguments[TITLES[name]]
            for name, arguments in calls
            if len(arguments) > TITLES.get(name, 99)
        ]
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "title"
        ]
        assert [
            ast.unparse(title) for title in (*titles, *texts) if isinstance(title, ast.Constant)
        ] == []


def test_nothing_is_left_for_later_and_no_machine_is_named():
    later = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
    machine = re.compile(r"(?<![\w.])/(?:root|work|home/\w+|Users)/")
    found = [
        f"{name}: {hit[0]}"
        for name, text in texts()
        for rule in (later, machine)
        if (hit := rule.search(text))
    ]
    assert found == []


def test_every_place_a_requirement_names_exists_unless_it_stands_in_italics():
    text = (ROOT / DOCUMENT).read_text()
    places = {
        line.strip("| ").split(" | ")[2]
        for line in text.splitlines()
        if line.startswith("| ") and "| id " not in line
    }
    assert len(read_table(text).rows) > 200
    assert [
        place
        for place in sorted(places)
        if not place.startswith("*") and not (ROOT / place).exists()
    ] == []


def test_every_decision_the_tree_cites_is_written_down():
    """A comment that says `decisions 25` is a riddle unless the page has an entry of that number,
    with its reason and place."""
    page = (ROOT / "docs/decisions.md").read_text()
    entries = [int(number) for number in re.findall(r"^### (\d+)\. \S", page, re.MULTILINE)]
    assert all(
        "\n- Why: " in entry and "\n- Where: " in entry for entry in page.split("\n### ")[1:]
    )
    assert entries == list(range(1, len(entries) + 1))
    cited = {number: name for name, text in texts() for number in cited_decisions(text)}
    assert len(cited) > 15
    assert {number: name for number, name in cited.items() if number not in entries} == {}


def test_the_readme_maps_every_folder():
    readme = ROOT / "README.md"
    folders = [
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith((".", "__"))
    ]
    missing = [name for name in folders if readme.exists() and f"{name}/" not in readme.read_text()]
    assert missing == []


def test_every_install_line_installs_this_distribution():
    """A line with another name installs somebody else's package."""
    name = PYPROJECT["project"]["name"]
    extras = set(PYPROJECT["project"]["optional-dependencies"])
    installs = re.compile(r"pip install (?:-U )?['\"]([a-z][a-z-]*)\[([a-z,]+)\]")
    lines = [
        line
        for file, text in texts()
        if not file.startswith("tests/")
        for line in installs.findall(text)
    ]
    assert len(lines) >= 3
    for package, wanted in lines:
        assert package == name
        assert set(wanted.split(",")) <= extras
    scripts = PYPROJECT["project"]["scripts"]
    assert set(scripts) == {name}
