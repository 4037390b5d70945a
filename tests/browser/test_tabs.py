"""Turns that hang for as long as a slow machine needs, over a deck with a patient agent: watched from two tabs and
its trace, and stopped by keys alone."""

# pyright: reportMissingImports=false

import shutil
from collections.abc import Generator
from typing import Any

import pytest

from kit.settings import HOME
from tests.browser.hanging import HANGS, hanging, turns_of
from tests.browser.stage import DESK, PHONE, visit
from tests.streamlit_server import Served, serve

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """The app over a deck whose rewards agent gets time enough for a slow machine to draw three pages meanwhile."""
    folder = tmp_path_factory.mktemp("patient")
    deck = folder / "cards" / "consumer"
    shutil.copytree(HOME / "cards", deck.parent)
    longer = (
        ("rewards.yaml", "time_budget_ms: 8000", "time_budget_ms: 240000"),
        ("deck.yaml", "turn_budget_ms: 30000", "turn_budget_ms: 300000"),
    )
    for name, usual, patient_budget in longer:
        text = (deck / name).read_text()
        assert usual in text
        (deck / name).write_text(text.replace(usual, patient_budget))
    with serve(folder, {"KIT_PACE": "0.1", "KIT_DECK": str(deck)}) as app:
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
    bars = "document.querySelectorAll('.waterfall button').length"
    trace.page.wait_for_function(bars)
    before = trace.page.evaluate(bars)
    # Whoever reads a tab has it in front: the browser gives little time to those behind.
    visitor.page.bring_to_front()
    visitor.page.reload()
    visitor.page.get_by_role("button", name="Stop").wait_for()
    second = visit(visitor.page.context, served.url)
    second.page.goto(visitor.page.url)
    second.page.get_by_role("button", name="Stop").wait_for()
    second.page.locator("details summary", has_text="Rewards").click()
    second.page.get_by_role("button", name="Kill").click()  # all have seen it hang
    for tab in (visitor, second):
        tab.page.bring_to_front()
        tab.settled(timeout=60)
        assert tab.page.get_by_test_id("stChatMessage").count() == 2 == tab.seen()["most"]
        assert tab.badges("2 of 3 answered") == 1
    second.page.close()
    trace.page.bring_to_front()
    trace.page.locator(".stMarkdownBadge", has_text="2 of 3 answered").wait_for()  # nobody clicked
    trace.page.wait_for_function(f"before => {bars} > before", arg=before)
    trace.page.close()
    assert len(turns_of(served, visitor)) == 1
    visitor.page.close()
    assert visitor.foreign == [] and visitor.complaints == []


IN_SIGHT = """() => {
    const [question, axis] = ['.stChatMessage', '.lane.axis'].map((name) =>
        document.querySelector(`.st-key-turns ${name}`)?.getBoundingClientRect());
    return document.querySelector('.stMain').scrollTop > 0
        && question?.top >= 0 && axis?.top >= question.bottom - 1 && axis.bottom < innerHeight / 2;
}"""
"""Whether the page is scrolled, its question stands at the top all the same, and the axis under it."""


IN_ORDER = """() => {
    const rows = [...document.querySelectorAll('.st-key-turns .lane:not(.answer)')]
        .map((row) => row.getBoundingClientRect());
    const stop = document.querySelector('[data-testid=stBottomBlockContainer]').getBoundingClientRect();
    return rows.length === 5 && rows[4].bottom < stop.top
        && rows.every((row, number) => !number || row.top >= rows[number - 1].bottom - 1);
}"""
"""Whether the axis, the orchestrator and three sub-agents stand one below the other, none behind another."""


def test_on_a_phone_the_axis_hides_nobody_who_is_at_work(desk: Any, patient: Served):
    visitor = visit(desk, patient.url)
    visitor.page.set_viewport_size(PHONE)
    visitor.open(HANGS)
    visitor.ready()
    hanging(visitor)
    visitor.page.locator("[data-lane=Shop][data-phase=ended]").wait_for()
    visitor.page.wait_for_timeout(1_000)  # what moved has come to rest
    assert visitor.page.evaluate(IN_ORDER)
    visitor.page.get_by_role("button", name="Stop").click()
    visitor.page.locator(".stMarkdownBadge", has_text="Stopped").wait_for()
    visitor.page.close()


def test_the_keyboard_alone_asks_and_stops(desk: Any, patient: Served):
    visitor = visit(desk, patient.url)
    visitor.open(HANGS)
    visitor.ready()
    box, keys = visitor.page.get_by_test_id("stChatInputTextArea"), visitor.page.keyboard
    keys.press("Tab")
    assert box.evaluate("one => one === document.activeElement"), "the field is the first stop"
    box.evaluate("one => one.blur()")
    keys.press("/")
    keys.type("How many points do I have?")
    keys.press("Enter")
    stop = visitor.page.get_by_role("button", name="Stop")
    stop.wait_for()
    visitor.page.locator("details summary", has_text="Rewards").wait_for()
    # In a low window question and axis stay in sight while an agent works.
    visitor.page.set_viewport_size({"width": PHONE["width"], "height": 480})
    visitor.page.wait_for_function(IN_SIGHT)
    visitor.page.set_viewport_size(DESK)
    for _ in range(60):
        keys.press("Tab")
        if stop.evaluate("one => one === document.activeElement"):
            break
    keys.press("Enter")
    visitor.page.locator(".stMarkdownBadge", has_text="Stopped").wait_for()
    visitor.page.close()
    assert visitor.complaints == [], "the page wrote errors to the console"
