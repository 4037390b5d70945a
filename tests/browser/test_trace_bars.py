"""What is promised of the trace: a click, a key or a link opens a span, the file holds all of it,
an empty page helps."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.core.context import OPERATOR
from kit.core.trace import Trace, trace_of
from kit.stores.sqlite import SqliteStore
from tests.browser.stage import DESK, MIXED, Served, Visitor, serve, visit, within

pytestmark = pytest.mark.browser
BAR = "[data-testid=stVegaLiteChart] svg path[aria-roledescription=bar]"
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
def turn(chromium: Any, served: Served) -> tuple[str, Trace]:
    """A stored turn with a failed part."""
    visitor = visit(chromium, served.url, viewport=DESK)
    visitor.open("?fault=rewards%3Draise")
    visitor.ready()
    visitor.ask(MIXED)
    visitor.settled()
    visitor.page.close()
    with newest(served) as asked:
        return asked


def go(visitor: Visitor, address: str) -> None:
    visitor.page.goto(f"{visitor.url}/{address}")


def test_pages_without_a_turn_say_what_to_do(visitor: Visitor) -> None:
    for address, said in (
        ("traces", "ask something in the chat first"),
        ("metrics", "ask something in the chat first"),
    ):
        go(visitor, f"{address}?tenant=globex&user=u-001")
        visitor.page.get_by_text(said).wait_for()
        visitor.page.get_by_role("link", name="Go to the chat").wait_for()
    go(visitor, "traces?turn=there-is-none")
    visitor.page.get_by_text("There is no such trace of yours. Choose one below").wait_for()
    go(visitor, "cards?card=there-is-none")
    visitor.page.get_by_text("There is no such card in this deck. Choose one below.").wait_for()


def test_a_deck_that_is_not_there_is_a_sentence_on_every_page(
    chromium: Any, tmp_path: Path
) -> None:
    with serve(tmp_path, {"KIT_DECK": str(tmp_path / "no-deck")}) as lost:
        visitor = visit(chromium, lost.url, viewport=DESK)
        go(visitor, "")
        for page in ("Chat", "Traces", "Cards", "Metrics"):
            visitor.page.get_by_role("link", name=page).click()
            alert = visitor.page.get_by_test_id("stAlert")
            alert.first.wait_for()
            assert "give the folder that holds deck.yaml" in alert.first.inner_text()
            assert (
                not visitor.page.get_by_test_id("stException").count()
                and "Traceback" not in visitor.text()
            )
        visitor.page.close()


def test_a_click_on_a_bar_shows_its_span(visitor: Visitor, turn: tuple[str, Trace]) -> None:
    turn_id, trace = turn
    go(visitor, f"traces?turn={turn_id}")
    span = next(span for span in trace.spans if span.name == "search_offers")
    bar = visitor.page.locator(f"{BAR}[aria-label*='search_offers']")
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


def test_a_link_opens_a_span(visitor: Visitor, turn: tuple[str, Trace]) -> None:
    turn_id, trace = turn
    for span in (
        trace.spans[0],
        next(span for span in trace.spans if span.name == "ask_support_service"),
    ):
        go(visitor, f"traces?turn={turn_id}&span={span.id}")
        visitor.page.locator(f"{DETAIL.removesuffix(']')}='{span.id}']").wait_for()
        assert visitor.page.locator(f"{DETAIL} h3").inner_text().startswith(span.name)


def test_the_file_holds_every_span(visitor: Visitor, turn: tuple[str, Trace]) -> None:
    turn_id, trace = turn
    go(visitor, f"traces?turn={turn_id}")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="JSON").click()
    whole = json.loads(Path(download.value.path()).read_text())
    assert [span["id"] for span in whole["spans"]] == [span.id for span in trace.spans] and len(
        trace.spans
    ) > 10
    assert trace.routing and whole["routing"] == trace.routing.model_dump(mode="json")
    assert any(span["status"] == "error" for span in whole["spans"])


def test_a_row_of_the_list_opens_its_trace(visitor: Visitor, turn: tuple[str, Trace]) -> None:
    go(visitor, "traces")
    table = visitor.page.get_by_test_id("stDataFrame")
    table.locator("canvas").first.wait_for()
    visitor.page.wait_for_timeout(500)  # the canvas draws its cells after it is there
    table.click(position={"x": 100, "y": 52})
    visitor.page.locator(BAR).first.wait_for()
    assert f"turn={turn[0]}" in visitor.page.url


def test_the_keyboard_alone_opens_a_span(visitor: Visitor, turn: tuple[str, Trace]) -> None:
    turn_id, trace = turn
    go(visitor, f"traces?turn={turn_id}")
    visitor.page.locator(BAR).first.wait_for()
    visitor.page.locator(DETAIL).wait_for()
    box = visitor.page.get_by_role("combobox", name="Span")
    for _ in range(40):
        visitor.page.keyboard.press("Tab")
        if box.evaluate("one => one === document.activeElement"):
            break
    visitor.page.keyboard.type("search_offers")
    visitor.page.get_by_role("option", name="search_offers").wait_for()
    visitor.page.keyboard.press("Enter")
    span = next(span for span in trace.spans if span.name == "search_offers")
    visitor.page.locator(f"{DETAIL.removesuffix(']')}='{span.id}']").wait_for()
