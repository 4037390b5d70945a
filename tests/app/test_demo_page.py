"""The page Demo: scenes of a deck, each a real turn that ends on one number of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.compose.page import scenes_of
from kit.compose.read import read_outline
from kit.conformance.table import Table
from kit.settings import HOME
from kit.ui.compare.others import RESULT
from tests.app.rooms import app_over, room, shown


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The consumer deck, whose agents have a second: one that hangs takes all of its time."""
    cards = tmp_path_factory.mktemp("demo") / "cards"
    shutil.copytree(HOME / "cards", cards)
    for file in (cards / "consumer").glob("*.yaml"):
        file.write_text(file.read_text().replace("time_budget_ms: 8000", "time_budget_ms: 1000"))
    return cards / "consumer"


@pytest.fixture
def store(deck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "kit.db"
    with app_over(path, monkeypatch, DECK=deck):
        yield path


def figures(page: AppTest) -> str:
    """The number of the scene that is shown, and its words."""
    assert not page.exception, page.exception
    return next(
        element.proto.body
        for element in page.get("html")
        if '<p class="figure"' in element.proto.body
    )


@pytest.mark.req("K-18")
def test_every_scene_ends_on_a_number_measured_in_its_own_turn(store: Path):
    page = room("demo").run()
    numbers: list[str] = []
    for key in range(1, 5):
        page.button(key=f"go-{key}").click().run()
        numbers.append(figures(page))
    together, broken, foreign, limit = numbers
    assert "3 agents took" in together and "as fast as one after the other" in together
    assert "<b>0</b>" in broken and "2 of 3 answered, and the answer says what is missing" in broken
    assert "<b>0</b>" in foreign and "1 came in, and was blocked before that" in foreign
    assert "<b>1</b>" in limit and "part over the limit" in limit
    assert "So far: **2 parts broken on purpose, 2 said to be missing, 0 answers" in shown(page)
    page.button(key="go-2").click().run()
    assert len(page.chat_message) == 2 and figures(page) == broken, "it is played once"


@pytest.mark.req("K-18")
def test_the_last_scene_sets_the_broken_turn_beside_others(store: Path):
    page = room("demo", scene="5").run()
    table = Table.read(RESULT)
    count, total = table.score(table.systems[0], best=True)
    assert f"<b>{count} of {total}</b>" in figures(page)
    assert f"Stored on {table.content['date']}" in figures(page)
    words = shown(page)
    assert "No answer at all. It was still waiting for rewards" in words


@pytest.mark.req("K-18")
def test_a_deck_without_scenes_plays_its_suggestions(store: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KIT_DECK", str(HOME / "cards" / "manga"))
    settings = read_outline(HOME / "cards" / "manga").page
    assert not settings.scenes and settings.suggestions
    page = room("demo", scene="1").run()
    assert scenes_of(settings)[0].question in " ".join(one.value for one in page.markdown)
    assert '<p class="figure"' in figures(page) and "the number comes when" not in figures(page)
