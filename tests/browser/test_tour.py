"""The tour for a stage: five scenes, each asked with a click, each with a sentence on what to look
at, read from afar."""

# pyright: reportMissingImports=false

import pytest
from playwright.sync_api import expect

from kit.compose.page import read_page
from kit.settings import HOME
from tests.browser.stage import Visitor

pytestmark = pytest.mark.browser
HEADLINES = ("Answered", "Answered", "2 of 3 answered", "2 of 3 answered", "2 of 3 answered")


@pytest.mark.req("K-18")
def test_the_tour_walks_through_its_five_scenes(visitor: Visitor) -> None:
    visitor.open("?present=1")
    visitor.ready()
    page, strip = visitor.page, visitor.page.locator(".st-key-tour")
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20px"
    page.get_by_role("button", name="Take the tour").click()
    scenes = read_page(HOME / "cards" / "consumer").tour
    for number, (scene, headline) in enumerate(zip(scenes, HEADLINES, strict=True), 1):
        expect(strip).to_contain_text(f"{number} of 5")
        expect(strip).to_contain_text(scene.look)
        visitor.settled(number)
        ending = page.get_by_test_id("stChatMessage").last.locator(".stMarkdownBadge").first
        expect(ending).to_have_text(headline)
        page.get_by_role(
            "button", name="Next" if number < len(scenes) else "End", exact=True
        ).click()
    expect(strip).to_have_count(0)
    assert visitor.complaints == []
