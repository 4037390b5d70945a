"""Three agents of three frameworks, as their own tutorials build them, everywhere: asked, on the pages, in a grid, and
under the bench as whole systems."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.bench.grid.results import read_results
from kit.bench.grid.run import run_grid
from kit.bench.systems.bench import systems_spec
from kit.bench.systems.source import read_source
from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from tests.app.rooms import app_over, room, shown
from tests.bridges.decks import write_deck
from tests.bridges.test_frameworks import RUNS, TOOLS
from tests.grids.test_grid import OPENER

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
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=3000)
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
    assert "Here it runs on" not in screen, "no model of the kit runs it"


def test_agents_of_three_frameworks_are_systems_as_they_are(tmp_path: Path):
    """As their tutorials build them: a compiled graph, and two agents."""
    tools = {"flights:graph": "find_flight", "hotels:hotel_agent": "find_room"}
    tools["weather:weather_agent"] = "get_weather"
    names = [f"tests.bridges.agents.{name}" for name in tools]
    rows = [
        {
            "message": f"To Leeds, {n} times?",
            "expected_text": "Leeds",
            "expected_agents": list(tools.values()),
        }
        for n in range(3)
    ]
    sources = [read_source(name, name, Path.cwd()) for name in names]
    spec = systems_spec(sources, rows)
    run = run_grid(spec, tmp_path / "out", OPENER, 1)
    assert (run.done, run.failed) == (9, 0)
    for row in read_results(tmp_path / "out"):
        tool = tools[row["model"].rpartition(".")[2]]
        assert row["called"] == [tool] and row["scores"]["contains"] == 1
        assert row["model_calls"] == 2 and row["input_tokens"] > 0 and row["cost"] is None
