"""What the pages say of the tree is true of the tree: files that they name exist, and answers that
they point at are there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from kit.core.card import AgentCard
from kit.core.outcome import Failure
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import run_turn
from kit.tools.loading import load_reference, tools_in
from tests.house.test_repository import CODE, ROOT, sources
from tests.kits import ALICE, asks, small_kit, stitched

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
]
FOREIGN = {"json_each", "sqlar_uncompress", "from_function", "req", "freeze", "savefig"}
"""Of SQLite, of LangChain, a mark of pytest, of Python's gc, of matplotlib."""
ROWS = [
    tuple(cell.strip(" `") for cell in line.strip("| ").split(" | "))
    for line in (ROOT / "docs/where.md").read_text().split("## What there is not")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| question")
]


STEPS = re.findall(
    r"^ *(\w+) +([\w/]+\.py) ",
    (ROOT / "docs/architecture.md").read_text().split("## Execution: one turn")[1].split("```")[1],
    re.MULTILINE,
)


@cache
def functions() -> set[str]:
    """Every function and class of the tree, those in others included."""
    names: set[str] = set()
    for _, text in sources(*CODE, "tests"):
        names.update(re.findall(r"^\s*(?:async def|def|class) (\w+)", text, re.MULTILINE))
    return names


def definitions(path: str, text: str) -> Iterator[str]:
    """The names a file defines: functions, classes, their members and variables of Python; keys of YAML and TOML."""
    if not path.endswith(".py"):
        yield from re.findall(r"^\s*([\w-]+)\s*[:=]", text, re.MULTILINE)
        return
    yield from _bound(ast.parse(text).body, "")


@cache
def names_of(path: str) -> frozenset[str]:
    """The names that a file of the tree defines: six hundred rows ask for those of half as many files."""
    return frozenset(definitions(path, (ROOT / path).read_text()))


def _bound(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _bound(node.body, f"{prefix}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case _:
                pass


def test_each_place_holds_what_the_table_says():
    """A reader who follows a row of docs/where.md lands on a definition, not on a mention."""
    assert len(ROWS) > 600
    assert [row for row in ROWS if row[2] not in names_of(row[1])] == []


def test_the_way_of_a_turn_names_functions_of_today():
    """The listing is the first thing a newcomer follows, file by file."""
    assert len(STEPS) == 11
    names = {
        path: {name.split(".")[-1] for name in definitions(path, (ROOT / "kit" / path).read_text())}
        for _, path in STEPS
    }
    assert [(step, path) for step, path in STEPS if step not in names[path]] == []


def test_every_file_a_page_names_exists():
    """A path that nobody kept up to date sends a reader to nothing; a planned one stands in italics in requirements.md.

    A module may be named by the end of its path where a page has said in which folder it is.
    """
    missing: list[tuple[str, str]] = []
    for page in PAGES:
        text = re.sub(r"\| \*[^|]*\* \|", "", (ROOT / page).read_text())
        named = re.findall(
            r"(?<![\w./])(?:kit|tests|cards|data|docs|notebooks)/[\w./-]*\w\.(?:py|md|yaml|jsonl|ipynb|css)\b",
            text,
        )
        for link in re.findall(r"\]\(([\w./-]+\.(?:md|png|ipynb))[)#]", text):
            named.append((PurePath(page).parent / link).as_posix())
        missing += [(page, path) for path in named if not (ROOT / path).exists()]
    assert missing == []


def test_every_function_a_page_calls_exists():
    """`promote(deck, card, results)` on a page is what a reader types; a rename has to reach it."""
    known = functions() | FOREIGN
    for page in PAGES:
        calls = re.findall(r"`(?:[^`\n]*[^`\n\w])?(\w+)\([^`\n]*`", (ROOT / page).read_text())
        assert [name for name in calls if name not in known] == [], page


def test_the_example_of_a_tool_is_one_that_a_deck_can_name(tmp_path: Path):
    page = (ROOT / "docs/tools.md").read_text()
    (tmp_path / "tools.py").write_text(page.split("```python\n")[1].split("```")[0])
    tools = tools_in(load_reference("./tools.py:TOOLS", tmp_path), "TOOLS")
    stock = tools["stock"]
    assert isinstance(stock, BaseTool)
    assert stock.invoke({"product": "tea"}) == "4 packs of tea are in stock."


async def test_the_example_of_a_tool_that_knows_whose_data_it_returns_keeps_it_from_the_model():
    page = (ROOT / "docs/tools.md").read_text()
    code = page.split("## Whose data a tool returns")[1].split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    read: list[str] = []

    def desk(messages: list[BaseMessage]) -> Line:
        read.append(str(messages[-1].content))
        if isinstance(messages[-1], ToolMessage):
            return Line(str(messages[-1].content))
        return Line(calls=[("bill", {"number": "7"})])

    card = AgentCard(id="desk", description="Bills.", model="offline", tools=("bill",))
    models = {"desk": ScriptedModel(desk)}
    kit = small_kit([asks("desk"), stitched], models, {"bill": names["bill"]}, [card])
    reply = await run_turn("what is bill 7 over?", ALICE, kit)
    (failure,) = reply.outcomes
    assert isinstance(failure, Failure) and failure.reason == "principal_mismatch"
    assert "desk" in reply.text and "950" not in f"{reply.text} {read}"
