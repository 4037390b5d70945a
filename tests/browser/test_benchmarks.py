"""The benchmarks page in a browser: a grid plays on while somebody chats, and is stopped afterwards."""

# pyright: reportMissingImports=false

import pytest
from playwright.sync_api import Locator, Page, TimeoutError

from tests.browser.stage import Visitor

pytestmark = pytest.mark.browser


def chosen(page: Page, choice: str, shown: Locator) -> Locator:
    """Clicks a choice until what it shows is there: a click that meets a page still being drawn is lost."""
    for _ in range(4):
        page.get_by_text(choice).click()
        try:
            shown.wait_for(timeout=6000)
        except TimeoutError:
            continue
        break
    return shown


def test_a_grid_plays_on_while_somebody_chats_and_is_stopped(visitor: Visitor):
    page = visitor.page
    visitor.open()
    visitor.ready()
    page.get_by_role("link", name="Benchmarks").click()
    chosen(page, "Start a grid", page.get_by_role("combobox", name="Grid")).fill("injection")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Play 96 cells").click()
    page.get_by_role("button", name="Stop").wait_for(timeout=20_000)
    page.get_by_role("link", name="Chat").click()
    visitor.ask("How many points do I have?")
    visitor.settled()
    page.get_by_role("link", name="Benchmarks").click()
    stop = page.get_by_role("button", name="Stop")
    see = page.get_by_role("button", name="See its results")
    stop.or_(see).first.wait_for(timeout=20_000)
    # It may have ended meanwhile; what it has played is kept either way.
    if not see.is_visible():
        stop.click()
    see.wait_for(timeout=240_000)  # a grid gives way to whatever else the machine does
    assert "of 96 cells are played" in visitor.text()
