"""One turn, watched from two tabs and its trace: in a file of its own, over a deck with a patient agent."""

# pyright: reportMissingImports=false

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from kit.settings import HOME
from tests.browser.hanging import HANGS, hanging, turns_of
from tests.browser.stage import visit
from tests.streamlit_server import Served, serve

pytestmark = pytest.mark.browser


@pytest.fixture
def patient(tmp_path: Path) -> Generator[Served]:
    """The app over a deck whose rewards agent gets time enough for a slow machine to draw three pages meanwhile."""
    deck = tmp_path / "cards" / "consumer"
    shutil.copytree(HOME / "cards", deck.parent)
    longer = (
        ("rewards.yaml", "time_budget_ms: 8000", "time_budget_ms: 30000"),
        ("deck.yaml", "turn_budget_ms: 30000", "turn_budget_ms: 60000"),
    )
    for name, usual, patient_budget in longer:
        text = (deck / name).read_text()
        assert usual in text
        (deck / name).write_text(text.replace(usual, patient_budget))
    with serve(tmp_path, {"KIT_PACE": "0.1", "KIT_DECK": str(deck)}) as app:
        yield app


def test_a_reload_a_second_tab_and_its_trace_follow_a_turn_that_finishes_once(
    desk: Any, patient: Served
):
    served = patient
    visitor = visit(desk, served.url)
    visitor.open(HANGS)
    visitor.ready()
    hanging(visitor)
    (turn,) = turns_of(served, visitor)
    trace = visit(visitor.page.context, served.url)
    trace.page.goto(f"{served.url}/traces?turn={turn.id}")
    trace.page.locator(".stMarkdownBadge", has_text="Working").wait_for()
    bars = "document.querySelectorAll('path[aria-roledescription=bar]').length"
    trace.page.wait_for_function(bars)
    before = trace.page.evaluate(bars)
    visitor.page.reload()
    visitor.page.get_by_role("button", name="Stop").wait_for()
    second = visit(visitor.page.context, served.url)
    second.page.goto(visitor.page.url)
    second.page.get_by_role("button", name="Stop").wait_for()
    second.page.locator("details summary", has_text="Rewards").click()
    second.page.get_by_role("button", name="Kill").click()  # all have seen it hang
    for tab in (visitor, second):
        tab.settled(timeout=60)
        assert tab.page.get_by_test_id("stChatMessage").count() == 2 == tab.seen()["most"]
        assert tab.badges("2 of 3 answered") == 1
    second.page.close()
    trace.page.locator(".stMarkdownBadge", has_text="2 of 3 answered").wait_for()  # nobody clicked
    trace.page.wait_for_function(f"before => {bars} > before", arg=before)
    trace.page.close()
    assert len(turns_of(served, visitor)) == 1
    visitor.page.close()
    assert visitor.foreign == [] and visitor.complaints == []
