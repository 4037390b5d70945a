"""The tour for a stage: read from afar, with the whole width for the conversation, each scene asked with a click."""

# pyright: reportMissingImports=false

import pytest
from playwright.sync_api import expect

from tests.browser.stage import Visitor

pytestmark = pytest.mark.browser


@pytest.mark.req("K-18")
def test_a_stage_has_large_type_no_sidebar_and_a_scene_for_a_click(visitor: Visitor):
    visitor.open("?present=1")
    visitor.ready()
    page = visitor.page
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20px"
    expect(page.get_by_text("More ways to fail")).not_to_be_in_viewport()
    page.get_by_role("button", name="Take the tour").click()
    for number in (1, 2):
        expect(page.locator(".st-key-tour")).to_contain_text(f"{number} of 5")
        visitor.settled(number)
        page.get_by_role("button", name="Next", exact=True).click()
