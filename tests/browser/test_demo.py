"""The demo on a stage: nothing but the scene, in large type, and a key for each."""

# pyright: reportMissingImports=false

import pytest
from playwright.sync_api import expect

from tests.browser.stage import Visitor

pytestmark = pytest.mark.browser


@pytest.mark.req("K-18")
def test_a_stage_has_no_bars_large_type_and_a_key_for_each_scene(visitor: Visitor):
    page = visitor.page
    page.goto(f"{visitor.url}/demo")
    expect(page.get_by_role("heading", level=1)).to_contain_text("When one fails", timeout=30_000)
    expect(page.locator("html")).to_have_css("font-size", "20px")
    figure = page.locator("p.figure")
    # A page listens to its keys a moment after it shows them.
    for _ in range(60):
        page.keyboard.press("1")
        if figure.count():
            break
        page.wait_for_timeout(500)
    expect(figure).to_contain_text("as fast as one after the other", timeout=30_000)
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", level=2)).to_contain_text("2. One of them is broken")
    page.keyboard.press("4")
    expect(figure).to_contain_text("over the limit", timeout=30_000)
    expect(page.get_by_text("4,975 points")).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
