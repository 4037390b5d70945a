"""What is promised of the trace: a click, a key or a link opens a span, the file holds all of it,
an empty page helps."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from kit.core.context import OPERATOR
from kit.core.trace import Trace, trace_of
from kit.stores.sqlite import SqliteStore
from tests.browser.stage import PHONE, Visitor, visit, within
from tests.kits import MIXED
from tests.streamlit_server import Served

pytestmark = pytest.mark.browser
BAR = ".waterfall button"
DETAIL = ".st-key-span-detail [data-span]"


@contextmanager
def newest(served: Served) -> Generator[tuple[str, Trace]]:
    """Id and trace of the turn asked last."""
    store = SqliteStore(served.store)
    try:
        turn = store.turns(limit=1)[0]
        yield turn.id, trace_of(store.events(turn.id, OPERATOR))
    finally:
        store.close()


@pytest.fixture(scope="module")
def turn(desk: Any, served: Served) -> tuple[str, Trace]:
    """A stored turn with a failed part."""
    visitor = visit(desk, served.url)
    visitor.open("?fault=rewards%3Draise")
    visitor.ready()
    visitor.ask(MIXED)
    visitor.settled()
    visitor.page.close()
    with newest(served) as asked:
        return asked


def go(visitor: Visitor, address: str) -> None:
    visitor.page.goto(f"{visitor.url}/{address}")


def test_a_click_on_a_bar_shows_its_span(visitor: Visitor, turn: tuple[str, Trace]):
    turn_id, trace = turn
    go(visitor, f"traces?turn={turn_id}")
    span = next(span for span in trace.spans if span.name == "search_offers")
    bar = visitor.page.locator(BAR, has_text="search_offers")
    bar.wait_for()
    visitor.page.evaluate(
        """id => new MutationObserver(() => {
          if (document.querySelector(`.st-key-span-detail [data-span="${id}"]`)) window.opened ??= performance.now();
        }).observe(document, {subtree: true, childList: true, attributes: true})""",
        span.id,
    )
    bar.click()
    visitor.page.locator(f"{DETAIL.removesuffix(']')}='{span.id}']").wait_for()
    clicked = visitor.seen()["marks"]["click"]
    within(
        "click on a bar to its detail", (visitor.page.evaluate("window.opened") - clicked) / 1000, 2
    )
    assert "search_offers" in visitor.page.locator(f"{DETAIL} h3").inner_text()
    assert f"span={span.id}" in visitor.page.url, "the address leads to it"


def test_on_a_phone_the_toolbar_of_the_list_leaves_its_filters_free(
    visitor: Visitor, turn: tuple[str, Trace]
):
    visitor.page.set_viewport_size(PHONE)
    go(visitor, "traces")
    table = visitor.page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    table.hover()
    visitor.page.wait_for_timeout(500)  # the toolbar moves up to its place
    toolbar = table.get_by_test_id("stElementToolbar").bounding_box()
    filters = visitor.page.get_by_role("button", name="Filters").bounding_box()
    assert toolbar and filters
    assert toolbar["y"] >= filters["y"] + filters["height"]


def test_a_row_of_the_list_opens_its_trace(visitor: Visitor, turn: tuple[str, Trace]):
    go(visitor, "traces")
    table = visitor.page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    visitor.page.wait_for_timeout(500)  # the canvas draws its cells after it is there
    table.click(position={"x": 100, "y": 52})
    visitor.page.locator(BAR).first.wait_for()
    assert f"turn={turn[0]}" in visitor.page.url


def test_the_keyboard_alone_opens_a_span(visitor: Visitor, turn: tuple[str, Trace]):
    turn_id, trace = turn
    go(visitor, f"traces?turn={turn_id}")
    visitor.page.locator(BAR).first.wait_for()
    visitor.page.locator(DETAIL).wait_for()
    span = next(span for span in trace.spans if span.name == "search_offers")
    row = visitor.page.locator(f"{BAR}[data-pick='{span.id}']")
    for _ in range(80):
        visitor.page.keyboard.press("Tab")
        if row.evaluate("one => one === document.activeElement"):
            break
    visitor.page.keyboard.press("Enter")
    visitor.page.locator(f"{DETAIL.removesuffix(']')}='{span.id}']").wait_for()
    visitor.page.wait_for_function(
        "id => document.activeElement?.dataset.pick === id && document.activeElement.ariaCurrent",
        arg=span.id,
    )
