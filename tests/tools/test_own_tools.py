"""Tools of one's own: six short files outside the checkout, and no line of the kit changed."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.tools import tool

from kit import open_kit
from kit.compose.deck import Deck, load_deck
from kit.core.errors import BindError, DeckError
from kit.models.scripted import Line
from kit.tools.tool import ConfiguredTool, Toolbox
from kit.tools.tool_factory import ToolSetup, tool_factory
from tests.cli.test_cli import Result, refused, run
from tests.kits import OFFLINE, desk_deck, desk_models, logged, repeats, write_files

FILES = {
    "helpdesk/deck.yaml": "orchestrator: lead\nrequired_blocks: []\ntools: [./tools.py:TOOLS]\n",
    "helpdesk/lead.yaml": """\
id: lead
description: Passes each question to the desk that can answer it.
model: offline
sub_agents: [desk]
""",
    "helpdesk/desk.yaml": """\
id: desk
description: Knows the printers and laptops of the office, and opens tickets.
model: offline
tools: [find_printer, laptop_renewal, open_ticket]
prompt_blocks: [tone]
""",
    "blocks/desk/tone.md": "---\nid: tone\ncategory: persona\nowner: desk\n---\nYou answer "
    "briefly and in plain words.\n",
    "models.yaml": "{}\n",
    "helpdesk/tools.py": '''\
def find_printer(floor: int = 1) -> str:
    """Find the printer on a floor."""
    return f"The printer of floor {floor} stands beside the lift."


async def laptop_renewal(owner: str) -> str:
    """When the laptop of somebody is due for renewal."""
    return f"That laptop of {owner.title()} is due in March 2027."


def open_ticket(words: str) -> str:
    """Open a ticket with the office."""
    raise ConnectionError("ticket server 10.0.0.7 refused")


TOOLS = [find_printer, laptop_renewal, open_ticket]
''',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The deck's folder."""
    write_files(tmp_path, FILES)
    return tmp_path / "helpdesk"


def declare(folder: Path, tools: list[str], **fields: Any) -> None:
    """Writes deck.yaml anew, with these references under `tools:`."""
    fields = {"orchestrator": "lead", "required_blocks": [], "tools": tools, **fields}
    (folder / "deck.yaml").write_text(yaml.safe_dump(fields, sort_keys=False, width=200))


def ask(folder: Path, question: str) -> Result:
    return run("ask", question, KIT_DECK=str(folder))


# Six files


@pytest.mark.req("K-1")
@pytest.mark.parametrize("tools", ["./tools.py:TOOLS", ["tools.py"]])
def test_one_reference_may_stand_alone_and_a_file_means_its_tools(folder: Path, tools: object):
    (folder / "deck.yaml").write_text(
        yaml.safe_dump({"orchestrator": "lead", "required_blocks": [], "tools": tools})
    )
    checked = run("check", str(folder))
    assert checked.returncode == 0 and "tools.py:TOOLS (" in checked.stdout.splitlines()[0]
    assert re.search(r"^desk +offline +3 tools", checked.stdout, re.MULTILINE)


# What a deck may name


@pytest.mark.req("K-1")
def test_a_mapping_names_its_tools_and_langchain_tools_are_taken_as_they_are(folder: Path):
    text = (folder / "tools.py").read_text().partition("TOOLS =")[0]
    text += """
from langchain_core.tools import tool


@tool
def laptop_renewal(owner: str) -> str:
    "When a laptop is due."
    return "soon"


TOOLS = {"find_printer": open_ticket, "laptop_renewal": laptop_renewal}
MORE = (open_ticket,)
"""
    (folder / "tools.py").write_text(text)
    declare(folder, ["./tools.py:TOOLS", "./tools.py:MORE"])
    tools = load_deck(folder).tools
    assert tools.ids == {"find_printer", "laptop_renewal", "open_ticket"}
    assert {name: getattr(tool, "description", "") for name, tool in tools.tools.items()} == {
        "find_printer": "Open a ticket with the office.",
        "laptop_renewal": "When a laptop is due.",
        "open_ticket": "Open a ticket with the office.",
    }


class Door:
    """A factory of one tool that notes when it is opened and closed, and what it was given."""

    def __init__(self, *yields: str) -> None:
        self.events: list[str] = []
        self.setup: ToolSetup | None = None
        self.yields = yields

    def factory(self, *ids: str) -> Any:
        @tool_factory(*ids)
        @asynccontextmanager
        async def tools(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
            self.setup = setup
            self.events.append("open")
            yield {name: ConfiguredTool(self.make) for name in self.yields}
            self.events.append("closed")

        return tools

    def make(self, config: Mapping[str, Any]) -> Any:
        @tool
        def lookup() -> str:
            """Look it up."""
            return f"limit {config.get('limit')}"

        return lookup


def deck_of(tools: object, **card: Any) -> Deck:
    return desk_deck(tools, "lookup", **card)


def models() -> dict[str, Any]:
    return desk_models(Line(calls=[("lookup", {})]), repeats)


@pytest.mark.req("K-1")
async def test_a_factory_is_opened_with_the_kit_and_closed_with_it_and_told_what_the_deck_names():
    door = Door("lookup")
    deck = deck_of([door.factory("lookup")], tool_config={"lookup": {"limit": 3}})
    deck = Deck.of(
        deck.cards.values(),
        settings=deck.settings.model_copy(update={"environment": ("DESK_URL", "UNSET")}),
        tools=deck.tools,
    )
    settings = OFFLINE.with_(variables={"DESK_URL": "http://desk", "SECRET_OF_ANOTHER": "x"})
    assert door.events == []
    async with open_kit(settings, deck=deck, models=models()) as kit:
        assert door.events == ["open"] and door.setup is not None
        reply = await kit.ask("look it up", kit.session("s"))
        assert (door.setup.environment, door.setup.store, door.setup.settings) == (
            {"DESK_URL": "http://desk"},
            kit.store,
            settings,
        )
    assert "limit 3" in reply.text and door.events == ["open", "closed"]


@pytest.mark.req("K-1")
async def test_a_factory_that_makes_something_else_than_it_declares_is_refused():
    with pytest.raises(BindError, match="declares lookup and makes other; declare what it makes"):
        async with open_kit(OFFLINE, deck=deck_of([Door("other").factory("lookup")])):
            pass


@pytest.mark.req("K-1")
async def test_python_adds_tools_and_a_clash_is_an_error():
    def lookup() -> str:
        """Look it up."""
        return "found"

    async with open_kit(OFFLINE, deck=deck_of(()), models=models(), tools=[lookup]) as kit:
        assert "found" in (await kit.ask("look it up", kit.session("s"))).text
    with pytest.raises(BindError, match="tool 'lookup' is one of the deck's own already; rename"):
        async with open_kit(OFFLINE, deck=deck_of([lookup]), tools={"lookup": lookup}):
            pass


# Faults of code are faults of the deck


CODE = """
NUMBER = 3
CLASS = [type("Desk", (), {})]
TWICE = [find_printer, find_printer]


def mute(x: int) -> str:
    return ""


MUTE = [mute]
"""
BROKEN = {
    "./tools.py:TOOLZ": "./tools.py has no 'TOOLZ': did you mean 'TOOLS'",
    "./tool.py:TOOLS": "no file ./tool.py beside deck.yaml: did you mean './tools.py'",
    "helpdesk_tools:TOOLS": "no module 'helpdesk_tools'; install it",
    "../blocks/x.py:TOOLS": "../blocks/x.py lies outside the deck's folder",
    "./linked.py:TOOLS": "./linked.py lies outside the deck's folder",
    "tools": "'tools' is no reference to code; write `package.module:NAME`",
    "./tools.py:NUMBER": "./tools.py:NUMBER, item 1: is of type int; give a function",
    "./tools.py:CLASS": "./tools.py:CLASS, item 1: is the class Desk; give a function",
    "./tools.py:MUTE": "mute() has no docstring; say in it what the tool does",
    "./tools.py:TWICE": "./tools.py:TWICE holds two tools 'find_printer'; rename one",
    "./syntax.py:TOOLS": "./syntax.py, line 1: ",
    "./absent.py:TOOLS": "importing ./absent.py raised ModuleNotFoundError: No module named 'nowhere_at_all' (line 1)",
    "./raises.py:TOOLS": "importing ./raises.py raised ZeroDivisionError: division by zero (line 3)",
    "./leaves.py:TOOLS": "importing ./leaves.py raised SystemExit: 3 (line 2)",
}
"""Reference -> what is said of it."""


@pytest.mark.req("K-1")
@pytest.mark.parametrize("reference", BROKEN)
def test_code_that_cannot_be_used_is_a_line_of_the_report(folder: Path, reference: str):
    with (folder / "tools.py").open("a") as code:
        code.write(CODE)
    files = {
        "syntax.py": "def broken(:\n",
        "absent.py": "import nowhere_at_all\n",
        "raises.py": "\n\n1 / 0\n",
        "leaves.py": "import sys\nsys.exit(3)\n",
    }
    write_files(folder, files)
    (folder.parent / "elsewhere.py").write_text("TOOLS = []\n")
    (folder / "linked.py").symlink_to(folder.parent / "elsewhere.py")
    (folder / "deck.yaml").write_text(
        f"orchestrator: lead\nrequired_blocks: []\ntools: [{reference!r}]\n"
    )
    with pytest.raises(DeckError) as error:
        load_deck(folder)
    [fault] = [fault for fault in error.value.faults if "deck.yaml:3: " in fault]
    assert BROKEN[reference] in fault
    if reference.endswith(
        ("syntax.py:TOOLS", "absent.py:TOOLS", "raises.py:TOOLS", "leaves.py:TOOLS")
    ):
        assert error.value.faults == (fault,), "no card's tool is called unknown because of it"


@pytest.mark.req("K-1")
def test_unknown_tools_and_broken_cards_stand_in_one_report(folder: Path):
    declare(folder, ["./tools.py:TOOLS"], default_sub_agent="dsk")
    desk = folder / "desk.yaml"
    desk.write_text(desk.read_text().replace("open_ticket]", "open_tickets]"))
    refused(
        run("check", str(folder)),
        "unknown tool 'open_tickets': did you mean 'open_ticket'",
        "unknown default 'dsk'",
    )


# Revisions


@pytest.mark.req("K-6")
async def test_nobody_of_the_demo_asks_a_strangers_deck(folder: Path):
    async with open_kit(OFFLINE.with_(deck=folder)) as kit:
        session = kit.session("s")
        reply = await kit.ask("where is the printer?", session)
    assert (session.principal.tenant_id, session.principal.user_id, session.location) == (
        "local",
        "visitor",
        None,
    )
    assert not re.search("acme|u-001|Rivermont|receipt|offer|reward", logged(reply))
