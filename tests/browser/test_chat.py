"""The chat as a person meets it: the served app in a real browser, on the embedded model."""

import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from kit.core.event import STATUSES
from kit.core.trace import trace_of
from kit.stores.sqlite import SqliteStore
from tests.browser.stage import DESK, MIXED, PHONE, Served, Visitor, serve, told, visit

pytestmark = pytest.mark.browser
SLOW = {"KIT_PACE": "5"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with serve(tmp_path_factory.mktemp("app")) as app:
        yield app


def test_the_first_page_is_ready_within_seconds(visitor: Visitor, served: Served) -> None:
    loaded = visitor.open()
    told("first page, from nothing to typing", 1000 * loaded)
    told("the server before it", 1000 * served.ready)
    visitor.page.get_by_text("Three things at once").wait_for()
    visitor.ready()
    assert loaded < 15


@pytest.mark.req("SAT-1", "PC2-FR-13")
def test_the_preamble_comes_first_and_the_answer_grows(visitor: Visitor) -> None:
    visitor.open()
    visitor.ready()
    visitor.ask(MIXED)
    visitor.settled()
    seen = visitor.seen()
    enter = seen["marks"]["enter"]
    lead = next(text for text in seen["texts"] if text["at"] > enter)
    complete = seen["texts"][-1]
    told("Enter to preamble", lead["at"] - enter)
    told("Enter to first status line", seen["steps"][0]["at"] - enter)
    told("Enter to complete answer", complete["at"] - enter)
    assert lead["at"] - enter <= 1000
    assert lead["at"] <= min(step["at"] for step in seen["steps"])
    assert seen["steps"][0]["at"] - enter <= 2000

    texts = [text["text"] for text in seen["texts"] if text["at"] > enter]
    growing = [text for text in texts if complete["text"].startswith(text)]
    assert len(growing) >= 4, "the lead, and at least three growing answers"
    assert seen["most"] == 2
    body = visitor.page.inner_text("body")
    assert not [status for status in STATUSES if status in body]


def test_later_turns_add_two_messages_each(visitor: Visitor) -> None:
    visitor.open()
    visitor.ready()
    visitor.page.get_by_text("My points").click()
    visitor.settled()
    visitor.ask("and what are they worth?")
    visitor.settled(2)
    assert visitor.seen()["most"] == 4
    visitor.ask(MIXED)
    visitor.settled(3)
    assert "points" in visitor.page.get_by_test_id("stChatMessage").nth(1).inner_text()


def test_every_span_of_the_stored_trace_has_its_labelled_bar(visitor: Visitor, served: Served) -> None:
    visitor.open()
    visitor.ready()
    visitor.ask(MIXED)
    visitor.settled()
    visitor.page.get_by_text("How this was answered").click()
    visitor.page.get_by_role("tab", name="Trace").click()
    chart = visitor.page.get_by_test_id("stVegaLiteChart")
    bars = chart.locator("path[aria-roledescription=bar]")
    bars.first.wait_for()
    store = SqliteStore(served.store)
    spans = trace_of(store.events(store.turns(limit=1)[0].id)).spans
    store.close()
    assert bars.count() == len(spans) > 10
    labels = chart.locator("g.role-axis-label text").all_text_contents()
    names = [label.strip("└─ ") for label in labels if not label[:1].isdigit()]
    assert len(names) == len(spans) and names[0] == "turn" and names.count("rewards") == 1


def test_a_phone_shows_the_page_without_scrolling_sideways(chromium: Any, served: Served) -> None:
    phone = visit(chromium, served.url, viewport=PHONE, color_scheme="dark")
    phone.open()
    phone.ready()
    phone.ask(MIXED)
    phone.settled()
    phone.page.get_by_text("How this was answered").click()
    phone.page.get_by_role("tab", name="Trace").click()
    phone.page.locator("path[aria-roledescription=bar]").first.wait_for()
    wide = "[...document.querySelectorAll('section, body')].map(box => box.scrollWidth)"
    assert max(phone.page.evaluate(wide)) <= 390
    assert phone.page.get_by_test_id("stChatInputTextArea").is_visible()
    phone.page.close()


def test_reload_mid_turn_and_a_killed_server(chromium: Any, tmp_path: Path) -> None:
    with serve(tmp_path, SLOW) as slow:
        visitor = visit(chromium, slow.url, viewport=DESK)
        visitor.open()
        visitor.ready()
        _reload_mid_turn(visitor)
        address = visitor.page.url.split("?", 1)[1]
        visitor.ask(MIXED)
        visitor.page.get_by_role("button", name="Stop").wait_for()
        slow.process.send_signal(signal.SIGKILL)
        slow.process.wait()
        visitor.page.close()
    with serve(tmp_path, {"KIT_PACE": "0"}) as anew:
        visitor = visit(chromium, anew.url, viewport=DESK)
        visitor.open(f"?{address}")
        visitor.page.locator(".stMarkdownBadge", has_text="Interrupted").wait_for(timeout=20_000)
        assert visitor.page.get_by_test_id("stChatMessage").count() == 4
        visitor.page.get_by_role("button", name="Ask again").click()
        visitor.settled(3)
        assert visitor.badges("Answered") == 2 and visitor.badges("Interrupted") == 1


def _reload_mid_turn(visitor: Visitor) -> None:
    visitor.ask(MIXED)
    visitor.page.get_by_role("button", name="Stop").wait_for()
    visitor.page.reload()
    visitor.page.get_by_role("button", name="Stop").wait_for()
    visitor.settled(1)
    assert visitor.page.get_by_test_id("stChatMessage").count() == 2 == visitor.seen()["most"]
    assert visitor.badges("Answered") == 1
