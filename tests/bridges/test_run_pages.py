"""Three agents of three frameworks in the app: the chat, the trace of its turn and the cards page."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from tests.app.rooms import app_over, room, shown
from tests.bridges.decks import write_deck
from tests.bridges.test_frameworks import RUNS, TOOLS

pytestmark = pytest.mark.realtime
REQUESTS = {
    "flights": "requests: ['Is there a flight?']\n",
    "hotels": "requests: ['Which hotel has a room?']\n",
    "weather": "requests: ['How is the weather?']\n",
}
MESSAGE = "Is there a flight, which hotel has a room, and how is the weather?"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    deck = write_deck(tmp_path, RUNS, extra=REQUESTS)
    with app_over(tmp_path / "kit.db", monkeypatch, DECK=deck):
        yield deck


def test_the_chat_answers_with_all_three_and_says_whose_cost_is_missing(folder: Path):
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    page.run()
    page.chat_input[0].set_value(MESSAGE).run()
    screen = shown(page)
    for words in ("A flight to Leeds leaves at noon", "In Leeds: the Grand", "sunny in Leeds"):
        assert words in screen
    assert "without 3 agents that did not say" in screen
    with closing(SqliteStore(folder.parent / "kit.db")) as store:
        [turn] = store.turns()
    traces = room("traces", turn=turn.id).run()
    screen = shown(traces) + str([element.proto for element in traces.main])
    for tool in TOOLS.values():
        assert tool in screen


def test_the_cards_page_says_what_a_card_runs(folder: Path):
    page = room("cards", card="flights").run()
    screen = shown(page)
    assert RUNS["flights"] in screen and "brings its own prompt" in screen
    assert 'data-part="model"' not in screen
