"""A tool that asks first, on the page: the turn waits, goes on with a yes and with a no, and in a
page that is opened later."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from kit import open_kit
from kit.core.context import OPERATOR
from kit.ui.shared import frame
from kit.ui.shared.turn_fold import stored_view
from tests.app.rooms import app_of_deck, button, whole_app
from tests.kits import OFFLINE

QUESTION = "May I open a ticket?"
FILES = {
    "deck.yaml": {
        "orchestrator": "lead",
        "required_blocks": [],
        "tools": ["./tools.py:TOOLS"],
        "tool_limits": {"open_ticket": {"confirm": QUESTION}},
    },
    "lead.yaml": {
        "id": "lead",
        "description": "Talks with the visitor.",
        "model": "offline",
        "sub_agents": ["tickets", "keys"],
    },
    "keys.yaml": {
        "id": "keys",
        "description": "Orders keys for doors.",
        "model": "offline",
        "tools": ["order_key"],
    },
    "tickets.yaml": {
        "id": "tickets",
        "description": "Opens a ticket with the office.",
        "model": "offline",
        "tools": ["open_ticket"],
    },
}
TOOLS = '''
from pathlib import Path

def open_ticket() -> str:
    """Open a ticket with the office."""
    with Path(__file__).with_name("tickets.txt").open("a") as file:
        file.write("one\\n")
    return "Ticket 12 is open."

def order_key() -> str:
    """Order a key for a door."""
    return "The key is ordered."

TOOLS = [open_ticket, order_key]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with app_of_deck(tmp_path, monkeypatch, FILES) as folder:
        (folder / "tools.py").write_text(TOOLS)
        yield folder


def opened(session: str = "one") -> AppTest:
    page = whole_app(session=session).run()
    assert not page.exception
    return page


def text(page: AppTest) -> str:
    return "\n".join(one.value for one in page.markdown)


def effects(folder: Path) -> int:
    file = folder / "tickets.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.req("K-12")
def test_the_page_asks_and_a_yes_lets_the_turn_go_on_also_after_a_restart(folder: Path):
    page = opened()
    page.chat_input[0].set_value("open a ticket with the office").run()
    assert QUESTION in text(page) and "Waiting for you" in text(page) and effects(folder) == 0
    assert "Tickets waits for your answer" in text(page) and "was stopped" not in text(page)
    frame.open_host.clear()
    again = button(opened(), "Yes").click().run()
    assert (
        "Ticket 12 is open." in text(again) and "Answered" in text(again) and effects(folder) == 1
    )
    assert not [one for one in again.button if one.label in ("Yes", "No")]


@pytest.mark.req("K-12")
async def test_a_tool_that_waits_has_not_failed(folder: Path):
    settings = OFFLINE.with_(deck=folder, store=":memory:")
    async with open_kit(settings) as kit:
        reply = await kit.ask("open a ticket with the office", kit.session("s"))
        record = kit.store.turn(reply.turn_id, OPERATOR)
    assert reply.status == "paused" and record is not None
    entries = [
        entry.text for step in stored_view(record, reply.events).steps for entry in step.entries
    ]
    assert "open_ticket() waits for a yes or a no" in entries
    assert not any("failed" in entry for entry in entries)


@pytest.mark.req("K-12")
def test_a_no_on_the_page_does_nothing_and_is_said(folder: Path):
    page = opened()
    page.chat_input[0].set_value("open a ticket with the office").run()
    button(page, "No").click().run()
    assert "This was not done, because you said no." in text(page) and effects(folder) == 0
    said = text(page).replace("\\", "")
    assert "Tickets answered (this was not done, because you said no). The answer says so." in said


@pytest.mark.req("K-12")
def test_of_two_questions_each_stands_whole_beside_its_buttons(folder: Path):
    """The amount may be the last thing that a long question says."""
    terms = "Terms apply. " * 120
    questions = {name: f"May I? {terms}It costs {name}." for name in ("40 dollars", "7 dollars")}
    ticket, key = questions.values()
    limits = {"open_ticket": {"confirm": ticket}, "order_key": {"confirm": key}}
    (folder / "deck.yaml").write_text(yaml.safe_dump(FILES["deck.yaml"] | {"tool_limits": limits}))
    page = opened()
    page.chat_input[0].set_value(
        "open a ticket with the office, and order a key for the door"
    ).run()
    assert len([one for one in page.button if one.label == "Yes"]) == 2
    beside_buttons = [one.value for one in page.markdown if one.value.count("May I") == 1]
    assert len(beside_buttons) == 2
    assert all(one.endswith(("40 dollars\\.", "7 dollars\\.")) for one in beside_buttons)
