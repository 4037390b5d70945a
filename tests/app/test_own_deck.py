"""What the page shows of a deck comes from the deck: over somebody's own nothing of the demo is left."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from kit.compose.deck import load_deck
from kit.compose.page import PageSettings
from kit.compose.read import read_outline
from kit.core.errors import DeckError
from tests.app.rooms import app_of_deck, room, whole_app
from tests.pages import unescaped

FILES = {
    "deck.yaml": {"orchestrator": "desk", "required_blocks": []},
    "desk.yaml": {
        "id": "desk",
        "description": "Talks with the visitor.",
        "model": "offline",
        "sub_agents": ["tide_tables"],
    },
    "tide_tables.yaml": {
        "id": "tide_tables",
        "description": "When is high water at the pier? Also low water.",
        "model": "offline",
    },
}
VISITOR = {"tenant_id": "acme", "user_id": "u-001"}
WORDS = (
    "points",
    "receipt",
    "offers?",
    "coffee",
    "manga",
    "shop",
    "rewards?",
    "retailer",
    "restaurant",
    "games?",
    "grocer",
)
DEMO = re.compile("|".join(rf"\b{word}" for word in WORDS), re.IGNORECASE)
"""Words that only the shipped decks know."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A deck of two cards, without a `page:` section, that the app is opened with."""
    with app_of_deck(tmp_path, monkeypatch, FILES) as folder:
        yield folder


def declare(folder: Path, **page: object) -> None:
    """Gives the deck a `page:` section."""
    (folder / "deck.yaml").write_text(
        yaml.safe_dump({**FILES["deck.yaml"], "visitor": VISITOR, "page": page})
    )


def open_page(code: str = "") -> AppTest:
    page = room(code) if code else whole_app()
    page.run()
    # A busy machine may hold the loop of the app: Metrics says so, and is right.
    errors = [error.value for error in page.error if "The server stood still" not in error.value]
    assert not page.exception and not errors, errors
    return page


def content(page: AppTest) -> str:
    """Everything that is sent to the browser."""
    return "\n".join(
        str(element.proto)
        for element in [*page.main, *page.sidebar]
        if "<style" not in str(element.proto)
    )


def test_over_a_deck_that_says_nothing_no_word_of_the_demo_is_left(folder: Path):
    page = open_page()
    assert page.chat_input[0].placeholder == "Ask a question" and page.pills[0].options == [
        "Tide tables"
    ]
    screens = [content(page)]
    page.pills[0].set_value("Tide tables").run()
    assert (
        not page.exception
        and page.chat_message[0].markdown[0].value == "When is high water at the pier?"
    )
    screens.append(content(page))
    screens += [content(open_page(name)) for name in ("cards", "traces", "metrics", "compare")]
    for screen in screens:
        assert not (found := DEMO.search(screen)), screen[
            max(0, found.start() - 200) : found.end() + 200
        ]
    assert "Tide tables" in screens[0] and "Tide tables" in screens[2]


def test_the_page_says_and_offers_what_the_deck_declares(folder: Path):
    declare(
        folder,
        title="Harbour desk",
        introduction="Tides and berths.",
        placeholder="Ask the harbour",
        suggestions=[{"label": "High water", "question": "When?", "faults": ["tide_tables=raise"]}],
        suggestions_note="It breaks.",
        faults=["tide_tables=hang"],
        people=[
            {"tenant_id": "acme", "user_id": "u-001", "name": "Ann"},
            {"tenant_id": "acme", "user_id": "u-002", "location": "Pier"},
        ],
    )
    page = open_page()
    text = "\n".join(one.value for one in [*page.markdown, *page.caption])
    assert all(words in text for words in ("## Harbour desk", "Tides and berths.", "It breaks."))
    assert page.chat_input[0].placeholder == "Ask the harbour" and page.pills[0].options == [
        "High water"
    ]
    assert not page.toggle(key="fault-tide_tables=hang").value
    assert page.selectbox(key="scenario-user").options == ["Ann", "u-002"]
    page.pills[0].set_value("High water").run()
    assert not page.exception and "Tide tables fails in the middle of its work" in content(page)


def test_people_may_come_from_a_file_beside_the_deck(folder: Path):
    (folder / "people.py").write_text(
        "from kit.compose.page import Person\n\n\n"
        "def everybody(data, environment):\n"
        "    return [Person(tenant_id='acme', user_id=user) for user in ('u-001', 'u-007')]\n"
    )
    declare(folder, people="./people.py:everybody")
    assert open_page().selectbox(key="scenario-user").options == ["u-001", "u-007"]


@pytest.mark.parametrize("name", ["people", "renderers"])
def test_a_reference_that_leads_nowhere_is_told_in_a_sentence(folder: Path, name: str):
    declare(folder, **{name: "kit.nowhere:NOTHING"})
    page = whole_app().run()
    (error,) = page.error
    assert "kit.nowhere" in unescaped(error.value) and not page.exception
    declare(folder, **{name: "kit.settings:HOME"})
    page.run()
    (error,) = page.error
    assert "kit.settings:HOME" in unescaped(error.value) and not page.exception


def test_a_fault_of_the_page_is_a_fault_of_the_deck(folder: Path):
    declare(
        folder,
        faults=["tide_table=raise"],
        suggestions=[{"label": "x", "question": "y", "faults": ["tide_tables=rais"]}],
    )
    with pytest.raises(DeckError) as caught:
        load_deck(folder)
    assert any(
        "'tide_table'" in fault and "did you mean 'tide_tables'" in fault
        for fault in caught.value.faults
    )
    assert any("deck.yaml" in fault and "'rais'" in fault for fault in caught.value.faults)


@pytest.mark.parametrize("text", ["- a list", "page: {suggestions: 3}", "{broken"])
def test_a_first_screen_does_not_wait_for_a_sound_deck(folder: Path, text: str):
    (folder / "deck.yaml").write_text(text)
    (folder / "card.yaml").write_text("description: 3")
    page = read_outline(folder).page
    assert page.title == PageSettings().title and [one.label for one in page.suggestions or ()] == [
        "Tide tables"
    ]
