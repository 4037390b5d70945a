"""exec_python: the tool of any card that runs a model's script in the sandbox, as typed and as traced as any other."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit import open_kit
from kit.compose.deck import Deck
from kit.core.bodies.call import AgentEnded, Script, ToolEnded
from kit.core.outcome import Answer, ComponentPayload
from kit.models.scripted import Line
from kit.runtime.recording.cassette import Cassette
from kit.runtime.turn import Reply
from kit.sandbox.boundary import SandboxUnavailable
from kit.sandbox.probe import find_boundary
from kit.sandbox.process import ScriptLimits
from kit.tools.enricher import structured
from kit.tools.exec_python import TOOLS, exec_python_tool
from kit.tools.temp_files import TOOLS as WRITING
from kit.tools.temp_files import TempFiles, open_temp_files
from kit.tools.tool import EXEC_PYTHON, ToolResult
from tests.kits import OFFLINE, bodies, desk_deck, desk_models, repeats
from tests.step_kits import need_boundary

SUM = "import json\nprint(sum(json.load(open(input_file))))"


async def ask(deck: Deck, *lines: Any, cassette: Cassette | None = None) -> Reply:
    async with open_kit(OFFLINE, deck=deck, models=desk_models(*lines), cassette=cassette) as kit:
        return await kit.ask("add it up", kit.session("s"))


def one(reply: Reply, kind: type[Any]) -> Any:
    (body,) = bodies(reply, kind)
    return body


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TempFiles:
    """The files of tasks, in a folder of this test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return open_temp_files()


@pytest.fixture(autouse=True)
def boundary() -> None:
    need_boundary()


@pytest.mark.req("AS-7")
async def test_a_card_that_lists_it_computes_and_the_trace_has_the_scripts_hash():
    """Without data a script reads what the agent's tools have found."""

    async def search() -> tuple[str, ToolResult]:
        rows = tuple(ComponentPayload(type="offer", payload={"points": n}) for n in (20, 22))
        return "two offers", ToolResult(text="two offers", components=rows)

    tools = [TOOLS, structured("search", "Search offers.", {}, (), search)]
    script_of_rows = SUM.replace(
        "json.load(open(input_file))",
        "item['payload']['points'] for item in json.load(open(input_file))",
    )
    lines = [
        Line(calls=[("search", {})]),
        Line(calls=[(EXEC_PYTHON, {"script": script_of_rows})]),
        repeats,
    ]
    assert "42" in (await ask(desk_deck(tools, "search", EXEC_PYTHON), *lines)).text
    reply = await ask(
        desk_deck([TOOLS], EXEC_PYTHON),
        Line(calls=[(EXEC_PYTHON, {"script": SUM, "data": "[1, 2, 39]"})]),
        repeats,
    )
    assert "42" in reply.text
    script = one(reply, Script)
    assert script.sha256 == hashlib.sha256(SUM.encode()).hexdigest()
    assert (script.agent, script.boundary, script.exit, script.reason) == (
        "desk",
        find_boundary().name,
        0,
        None,
    )
    assert script.output_bytes == 3
    spans = {
        type(event.body): event.span_id
        for event in reply.events
        if isinstance(event.body, Script | ToolEnded)
    }
    assert spans[Script] == spans[ToolEnded]


@pytest.mark.req("AS-25")
@pytest.mark.parametrize(
    ("script", "config", "words", "reason"),
    [
        (
            "print('x' * 2_000)",
            {"output": 1_000},
            "oversized_output: the script printed more than 1,000 bytes",
            "oversized_output",
        ),
        ("print(1 / 0)", {}, "ZeroDivisionError: division by zero", "failed"),
    ],
)
async def test_a_model_reads_why_its_script_failed_and_writes_a_better_one(
    script: str, config: dict[str, Any], words: str, reason: str
):
    read: list[str] = []

    def correct(messages: Sequence[Any]) -> Line:
        read.append(str(messages[-1].content))
        return Line(calls=[(EXEC_PYTHON, {"script": "print(42)"})])

    deck = desk_deck([TOOLS], EXEC_PYTHON, tool_config={EXEC_PYTHON: config})
    reply = await ask(deck, Line(calls=[(EXEC_PYTHON, {"script": script})]), correct, repeats)
    assert words in read[0]
    first, second = bodies(reply, Script)
    assert (first.reason, second.reason) == (reason, None)
    first, second = bodies(reply, ToolEnded)
    assert (first.error or "").startswith("script_failed: ") and second.error is None
    outcome = one(reply, AgentEnded).outcome
    assert isinstance(outcome, Answer) and outcome.text == "42"
    assert (outcome.data_faults, outcome.caveat) == ((), None), "the model's fault, not the data's"


async def test_where_no_sandbox_holds_every_script_is_refused_and_the_trace_says_why():
    tool = exec_python_tool(
        SandboxUnavailable("install bubblewrap"), ScriptLimits(), TempFiles(Path())
    )
    reply = await ask(
        desk_deck([tool], EXEC_PYTHON),
        Line(calls=[(EXEC_PYTHON, {"script": "print(42)"})]),
        repeats,
    )
    assert "42" not in reply.text
    assert one(reply, ToolEnded).error == "unavailable: install bubblewrap"
    script = one(reply, Script)
    assert (script.reason, script.boundary, script.exit) == ("unavailable", None, None)


async def test_a_recorded_script_is_played_and_not_run(tmp_path: Path):
    lines = (
        Line(calls=[(EXEC_PYTHON, {"script": "import random\nprint(random.random())"})]),
        repeats,
    )
    first = await ask(
        desk_deck([TOOLS], EXEC_PYTHON), *lines, cassette=Cassette(tmp_path / "sum.jsonl", "record")
    )
    again = await ask(
        desk_deck([TOOLS], EXEC_PYTHON), *lines, cassette=Cassette(tmp_path / "sum.jsonl", "replay")
    )
    assert again.text == first.text and one(again, Script) == one(first, Script)


# Results that are too long to read


def menu_tool(text: str) -> Any:
    async def menu() -> tuple[str, ToolResult]:
        return text, ToolResult(text=text)

    return structured("menu", "The menu.", {}, (), menu)


async def text_read(deck: Deck) -> str:
    """What the desk's model reads of the menu."""
    read: list[str] = []

    def keep(messages: Sequence[Any]) -> Line:
        read.append(str(messages[-1].content))
        return Line("It is a long menu.")

    await ask(deck, Line(calls=[("menu", {})]), keep)
    return read[0]


@pytest.mark.req("AS-6")
async def test_what_fits_is_read_whole_and_so_is_everything_by_an_agent_that_runs_no_scripts():
    fitting, longer = "x" * 50_000, "x" * 50_001
    both = ("menu", EXEC_PYTHON)
    assert await text_read(desk_deck([TOOLS, menu_tool(fitting)], *both)) == fitting
    assert await text_read(desk_deck([TOOLS, menu_tool(longer)], *both)) != longer
    assert await text_read(desk_deck([menu_tool(longer)], "menu")) == longer


async def test_a_file_larger_than_a_script_may_read_is_no_input(files: TempFiles):
    deck = desk_deck(
        [TOOLS, WRITING], "write_temp", EXEC_PYTHON, tool_config={EXEC_PYTHON: {"input": 5}}
    )
    lines = [Line(calls=[("write_temp", {"data": data})]) for data in ("[42]", "[1, 41]")]
    runs = [
        Line(calls=[(EXEC_PYTHON, {"script": SUM, "file_id": name})]) for name in ("tmp_1", "tmp_2")
    ]
    reply = await ask(deck, *lines, *runs, repeats)
    small, large = (body for body in bodies(reply, ToolEnded) if body.tool == EXEC_PYTHON)
    assert small.result == "42\n"
    assert large.error == "script_failed: There is no such file of at most 5 bytes."
