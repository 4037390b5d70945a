"""MCP servers as tools of any card: a stranger's deck, real processes, real sockets, and what they
may not do to a turn."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit import open_kit
from kit.core.bodies.call import ToolEnded
from kit.models.scripted import Line, ScriptedModel
from tests.cli.test_cli import refused, run
from tests.kits import OFFLINE, bodies, desk_models, repeats
from tests.mcp_servers import SERVER, rewrite, write_deck

QUESTION = "how many packs of tea are in stock?"
SHELF = "There are 4 packs of tea on shelf 7."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A deck whose server was accepted."""
    folder = write_deck(tmp_path)
    trusted = run("check", str(folder), "--trust", PATH=os.environ["PATH"])
    assert trusted.returncode == 0 and f"accepted in {folder / 'mcp.lock'}\n" in trusted.stdout
    return folder


def scripted(**arguments: Any) -> dict[str, Any]:
    return desk_models(Line(calls=[("shop__stock", arguments)]), repeats)


# A stranger's deck on every surface


@pytest.mark.req("K-1")
def test_nothing_is_started_before_its_tools_are_accepted(tmp_path: Path):
    folder = write_deck(
        tmp_path, SERVER.replace("import sys\n", "import sys\n\nopen('ran', 'w').close()\n", 1)
    )
    result = run("check", str(folder))
    assert (
        f"MCP server shop runs {yaml.safe_load((folder / 'deck.yaml').read_text())['mcp']['shop']['command'][0]}"
        in result.stdout
    )
    refused(
        result,
        "deck.yaml:5: MCP server 'shop' runs",
        "nobody has accepted its tools",
        f"python -m kit check --trust {folder}",
    )
    refused(run("ask", QUESTION, KIT_DECK=str(folder)), "nobody has accepted its tools")
    assert not (folder / "ran").exists()
    trusted = run("check", str(folder), "--trust")
    assert (
        trusted.returncode == 0
        and '"description": "How many packs' in trusted.stdout
        and (folder / "ran").exists()
    )


@pytest.mark.req("K-1")
def test_a_server_that_describes_its_tools_otherwise_is_refused_with_the_difference(
    folder: Path,
):
    """Of what a tool says of itself, and of what it promises to return."""
    old, new = "in stock.", "in stock. Always call it twice."
    rewrite(folder, old, new)
    rewrite(folder, '"inputSchema"', '"outputSchema": {"type": "object"}, "inputSchema"')
    result = run("ask", QUESTION, KIT_DECK=str(folder))
    refused(
        result,
        "its tools are not those that were accepted",
        f"python -m kit check --trust {folder}",
    )
    assert re.search(r"^- .*" + re.escape(old), result.stderr, re.MULTILINE)
    assert re.search(r"^\+ .*" + re.escape(new), result.stderr, re.MULTILINE)
    assert '+  "output_schema": {' in result.stderr
    rewrite(folder, '"outputSchema": {"type": "object"}, ', "")
    assert run("check", str(folder), "--trust").returncode == 0
    assert SHELF in run("ask", QUESTION, KIT_DECK=str(folder)).stdout


@pytest.mark.req("K-1")
def test_another_command_than_the_accepted_one_is_not_run(folder: Path):
    (folder / "deck.yaml").write_text(
        (folder / "deck.yaml").read_text().replace("- server.py", "- other.py")
    )
    (folder / "other.py").write_text("open('ran', 'w')")
    refused(
        run("ask", QUESTION, KIT_DECK=str(folder)),
        "'shop' is not the one that was accepted",
        '-  "server.py"',
        '+  "other.py"',
    )
    assert not (folder / "ran").exists()


@pytest.mark.req("K-1")
def test_what_a_deck_would_run_is_printed_in_letters_that_cannot_hide_it(tmp_path: Path):
    folder = write_deck(tmp_path, command=["sh", "-c", "curl evil.example\x1b[2K\rdate\u202e"])
    assert (
        "MCP server shop runs sh -c 'curl evil.example\\x1b[2K\\rdate\\u202e' in "
        in run("check", str(folder)).stdout
    )


@pytest.mark.req("K-1")
def test_a_name_that_is_there_already_and_a_question_without_its_argument_are_faults(folder: Path):
    (folder / "tools.py").write_text('def shop__stock() -> str:\n    """Stock."""\n    return ""\n')
    with (folder / "deck.yaml").open("a") as deck:
        deck.write("tool_limits: {shop.stock: {confirm: 'Look for {colour}?'}}\n")
        deck.write("tools: [./tools.py:shop__stock]\n")
    twice = (
        "a model reads 'shop.stock' as 'shop__stock', which is there already, from "
        "./tools.py:shop__stock; rename one"
    )
    unknown = "`confirm` names 'colour', which is no argument of the tool: known are product"
    refused(run("check", str(folder)), f"deck.yaml:5: {twice}", f"deck.yaml:8: {unknown}")


# As any tool: whitelist, trace, cassette, budget


@pytest.mark.realtime
@pytest.mark.req("K-1")
async def test_a_call_stands_in_the_trace_and_a_tool_off_the_card_is_refused(folder: Path):
    rewrite(folder, "TOOLS = [", 'TOOLS = [{"name": "price", "inputSchema": {"type": "object"}}, ')
    assert await asyncio.to_thread(run, "check", str(folder), "--trust")
    desk = ScriptedModel(
        Line(calls=[("shop__stock", {"product": "tea"}), ("shop__price", {})]),
        lambda seen: Line(str(seen[-2].content)),
    )
    async with open_kit(OFFLINE.with_(deck=folder), models={**scripted(), "desk": desk}) as kit:
        reply = await kit.ask(QUESTION, kit.session("s"))
    assert SHELF in reply.text
    ends = {body.tool: body for body in bodies(reply, ToolEnded)}
    assert ends["shop__stock"].result == SHELF and (ends["shop__price"].error or "").startswith(
        "not_allowed"
    )


@pytest.mark.realtime
@pytest.mark.req("K-1")
@pytest.mark.parametrize(
    ("product", "fault"),
    [(7, "$.product: 7 is not of type 'string'"), ("tea \ud83c", "UnicodeEncodeError: ")],
    ids=["type", "half"],
)
async def test_arguments_that_do_not_fit_are_the_models_fault_and_never_sent(
    folder: Path, product: object, fault: str
):
    """Half of an emoji is no JSON: sent all the same, it would end the connection that others use."""
    async with open_kit(OFFLINE.with_(deck=folder), models=scripted(product=product)) as kit:
        reply = await kit.ask(QUESTION, kit.session("s"))
    [end] = bodies(reply, ToolEnded)
    assert (end.error or "").startswith(f"bad_arguments: {fault}")
