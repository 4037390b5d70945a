"""What is promised of a turn on the page: it can be stopped, nothing else ends it, and what failed is said in plain words alone."""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kit.core.event import Routing, StatusLine
from kit.core.fault import PLANTED, PLANTED_NUMBER, RAW
from kit.core.record import TurnRecord
from kit.core.trace import trace_of
from kit.stores.sqlite import SqliteStore
from tests.browser.stage import DESK, MIXED, Served, Visitor, serve, told, visit, within

pytestmark = pytest.mark.browser
HANGS = "?fault=rewards%3Dhang"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with serve(tmp_path_factory.mktemp("bars"), {"KIT_PACE": "0"}) as app:
        yield app


@contextmanager
def stored(served: Served) -> Iterator[SqliteStore]:
    store = SqliteStore(served.store)
    try:
        yield store
    finally:
        store.close()


def turns_of(served: Served, visitor: Visitor) -> list[TurnRecord]:
    with stored(served) as store:
        return store.turns(session_id=visitor.session())


def hanging(visitor: Visitor) -> None:
    """Asks, and waits until only the part that hangs is at work."""
    visitor.ask(MIXED)
    visitor.page.get_by_role("button", name="Stop").wait_for()
    visitor.page.locator("details summary", has_text="of 8 s").wait_for()


def test_stop_ends_a_silent_turn_at_once_and_for_good(visitor: Visitor, served: Served) -> None:
    visitor.open(HANGS)
    visitor.ready()
    hanging(visitor)
    visitor.page.get_by_role("button", name="Stop").click()
    visitor.page.locator(".stMarkdownBadge", has_text="Stopped").wait_for()
    visitor.page.get_by_role("button", name="Stop").wait_for(state="detached", timeout=1500)
    seen = visitor.seen()
    within("Stop to stopped, in a hang", (seen["badges"]["Stopped"] - seen["marks"]["click"]) / 1000, 1.5)
    time.sleep(1)
    assert visitor.seen()["texts"] == seen["texts"], "text came after the stop"
    assert [turn.status for turn in turns_of(served, visitor)] == ["cancelled"]


def test_a_second_tab_shows_the_same_turn_and_it_finishes_once(visitor: Visitor, served: Served) -> None:
    visitor.open(HANGS)
    visitor.ready()
    hanging(visitor)
    second = Visitor(visitor.page.context.new_page(), served.url)
    second.page.goto(visitor.page.url)
    second.page.get_by_role("button", name="Stop").wait_for()
    for tab in (visitor, second):
        tab.settled()
        assert tab.page.get_by_test_id("stChatMessage").count() == 2 and tab.badges("Partly answered") == 1
    assert len(turns_of(served, visitor)) == 1


def test_switches_thumbs_and_another_page_leave_a_running_turn_alone(visitor: Visitor, served: Served) -> None:
    visitor.open()
    visitor.ready()
    visitor.ask("How many points do I have?")
    visitor.settled()
    visitor.page.get_by_text("does not answer in time").click()
    visitor.page.wait_for_url("**fault=rewards*")
    hanging(visitor)
    visitor.page.get_by_text("gets no data from its service").click()
    visitor.page.get_by_test_id("stChatMessage").nth(1).get_by_role("radio", name="Thumbs up").click()
    visitor.page.wait_for_url("**error_envelope*")
    assert visitor.page.get_by_role("button", name="Stop").is_visible(), "it was not in the middle of the turn any more"
    visitor.page.get_by_role("link", name="Traces").click()
    visitor.page.get_by_role("heading", name="Traces").wait_for()
    visitor.page.get_by_role("link", name="Chat").click()
    visitor.settled(2)
    assert visitor.page.get_by_test_id("stChatMessage").count() == 4 == visitor.seen()["most"]
    newest, oldest = turns_of(served, visitor)
    assert (newest.status, newest.failed) == ("ok", ("rewards",)), "a switch holds from the next question on"
    with stored(served) as store:
        given = store.feedback(oldest.id)
    assert given and given.score == 1


PAIRS = [
    ("rewards=raise", "shop=error_envelope", "A receipt that does not scan"),
    ("rewards=foreign_principal", "support=refuses", "Coffee offers"),
    ("shop=bad_payload", "rewards=instantiation", "A receipt that does not scan"),
]


@pytest.mark.parametrize(("one", "other", "healthy"), PAIRS, ids=[f"{one} {other}" for one, other, _ in PAIRS])
def test_what_failed_is_said_plainly_and_the_raw_reason_is_for_the_trace(
    visitor: Visitor, served: Served, one: str, other: str, healthy: str
) -> None:
    visitor.open(f"?fault={one.replace('=', '%3D')}&fault={other.replace('=', '%3D')}")
    visitor.ready()
    visitor.ask(MIXED)
    visitor.settled()
    (turn,) = turns_of(served, visitor)
    with stored(served) as store:
        spans = trace_of(store.events(turn.id)).spans
    broken = {span.agent: span for span in spans if span.kind == "agent" and span.error}
    assert set(broken) == {fault.split("=")[0] for fault in (one, other)} == set(turn.failed)
    answer = visitor.page.get_by_test_id("stChatMessage").nth(1)
    assert healthy in answer.inner_text()
    for agent, span in broken.items():
        step = answer.locator("details", has_text=agent.capitalize()).locator("summary")
        assert step.locator(".stMarkdownColoredText").count() == 1, "its step is not red"
        assert str(span.error) not in visitor.text()
    everything = visitor.page.content()
    assert RAW not in everything and PLANTED not in everything and str(PLANTED_NUMBER) not in everything
    visitor.page.get_by_role("link", name="Open trace").first.click()
    for agent, span in broken.items():
        visitor.page.locator(f"path[aria-roledescription=bar][aria-label*='{agent}']").first.click()
        visitor.page.locator(f"[data-span='{span.id}']").wait_for()
        assert str(span.error) in visitor.page.locator(".st-key-span-detail [data-testid=stAlert]").inner_text()
