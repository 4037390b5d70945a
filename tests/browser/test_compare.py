"""What is promised of turns beside each other: all patterns at once, live, by keys alone, and the
same after a reload."""

import pytest

from kit.patterns import PATTERNS
from tests.browser.stage import Visitor, told
from tests.kits import MIXED

pytestmark = pytest.mark.browser
HEADS = ".st-key-compare-rows .head"
ENDED = """() => {
  const busy = document.querySelectorAll('.st-key-compare-rows .head .busy').length;
  window.most = Math.max(window.most ?? 0, busy);
  window.formGone ||= busy > 0 && !document.querySelector('[aria-label="One question on all patterns"]');
  const said = document.querySelector('.losses')?.textContent ?? '';
  return said.includes('lack') && !said.includes('So far');
}"""
"""Whether all turns have ended; `window.most`: how many were at work at once; `window.formGone`: whether the form
went while they were."""


@pytest.mark.req("K-8")
def test_one_question_runs_on_all_patterns_at_once_by_keys_alone(visitor: Visitor):
    page, keys = visitor.page, visitor.page.keyboard
    page.goto(f"{visitor.url}/compare")
    box = page.get_by_label("One question on all patterns")
    box.wait_for()
    for _ in range(40):
        keys.press("Tab")
        if box.evaluate("one => one === document.activeElement"):
            break
    keys.type(MIXED)
    keys.press("Enter")
    page.wait_for_function(ENDED, polling=50, timeout=30_000)
    told("patterns at work at the same time", page.evaluate("window.most"), "of 7")
    assert page.evaluate("window.most") >= len(PATTERNS) - 2
    assert page.evaluate("window.formGone"), "the form that was sent does not stand there greyed"
    assert (
        page.locator(HEADS).count() == len(PATTERNS) and page.locator(f"{HEADS} .busy").count() == 0
    )
    tracks = page.locator(".st-key-compare-rows .lane > .track")
    edges = {
        (round(box["x"]), round(box["x"] + box["width"]))
        for one in tracks.all()
        if (box := one.bounding_box())
    }
    assert len(edges) == 1, "every bar lies on the one axis"
