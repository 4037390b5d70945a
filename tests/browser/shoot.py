"""Takes the pictures of docs/screenshots from the served app: `python -m tests.browser.shoot [name
...]`; none names them all."""

# pyright: reportMissingImports=false

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.stage import DESK, PHONE, Visitor, browser, visit
from tests.kits import MIXED
from tests.streamlit_server import ROOT, Served, serve

PICTURES = ROOT / "docs" / "screenshots"
TALL = {"width": 1280, "height": 1230}
WHOLE = {"width": 1280, "height": 1430}
"""High enough for a turn of which a part failed: nothing of it is scrolled behind its question."""


def first(visitor: Visitor) -> None:
    """The first screen."""


def scenario(visitor: Visitor) -> None:
    """More ways to fail."""
    visitor.page.get_by_test_id("stExpander").get_by_text("Break a part").click()
    visitor.page.wait_for_timeout(500)
    visitor.page.get_by_label("More ways to fail").click()
    # The list draws only what has room: the words bring up the one that is wanted.
    visitor.page.keyboard.type("Shop declines")
    visitor.page.get_by_role("option", name="Shop declines to answer").click()
    visitor.page.wait_for_timeout(800)


def working(visitor: Visitor) -> None:
    """Sub-agents at work, side by side."""
    visitor.ask(MIXED)
    visitor.page.locator(
        "[data-lane=Shop] span:visible", has_text="Looking through today"
    ).last.wait_for()
    visitor.page.wait_for_timeout(150)


def answered(visitor: Visitor) -> None:
    """A whole turn."""
    visitor.ask(MIXED)
    _settled(visitor)


def failed(visitor: Visitor) -> None:
    """One part does not answer in time; the others stand."""
    visitor.page.get_by_text("rewards times out").first.click()
    _settled(visitor)


def blocked(visitor: Visitor) -> None:
    """Somebody else's data comes back."""
    visitor.page.get_by_text("Someone else's data").first.click()
    _settled(visitor)


def panel(visitor: Visitor) -> None:
    """The turn panel of a phone."""
    blocked(visitor)
    visitor.page.get_by_role("button", name="This turn").click()
    visitor.page.wait_for_timeout(600)


def trace(visitor: Visitor) -> None:
    """The trace of a turn."""
    answered(visitor)
    visitor.page.get_by_role("link", name="Open trace").first.click()
    visitor.page.locator(".waterfall button").first.wait_for()
    visitor.page.wait_for_timeout(600)


def compared(visitor: Visitor) -> None:
    """One question on all patterns."""
    visitor.page.get_by_test_id("stTopNav").get_by_role("link", name="Compare").click()
    visitor.page.get_by_label("One question on all patterns").fill(MIXED)
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_text(re.compile("lacks? nothing")).wait_for()
    visitor.page.get_by_text("So far").wait_for(state="hidden")
    visitor.page.mouse.move(0, 0)
    visitor.page.wait_for_timeout(700)


def _settled(visitor: Visitor) -> None:
    visitor.settled()
    visitor.page.mouse.move(0, 0)
    visitor.page.wait_for_timeout(700)


Scene = tuple[Callable[[Visitor], None], dict[str, int], str, str]
SCENES: dict[str, Scene] = {
    "first-light": (first, DESK, "light", "as it is"),
    "first-dark": (first, DESK, "dark", "as it is"),
    "scenario-light": (scenario, DESK, "light", "as it is"),
    "working-light": (working, DESK, "light", "slow"),
    "working-dark": (working, DESK, "dark", "slow"),
    "answered-light": (answered, TALL, "light", "as it is"),
    "answered-dark": (answered, TALL, "dark", "as it is"),
    "failed-part-light": (failed, WHOLE, "light", "as it is"),
    "failed-part-dark": (failed, WHOLE, "dark", "as it is"),
    "blocked-dark": (blocked, WHOLE, "dark", "as it is"),
    "trace-light": (trace, TALL, "light", "as it is"),
    "trace-dark": (trace, TALL, "dark", "as it is"),
    "compare-light": (compared, TALL, "light", "as it is"),
    "compare-dark": (compared, TALL, "dark", "as it is"),
    "phone-first-light": (first, PHONE, "light", "as it is"),
    "phone-working-dark": (working, PHONE, "dark", "slow"),
    "phone-answered-dark": (answered, PHONE, "dark", "as it is"),
    "phone-panel-light": (panel, PHONE, "light", "as it is"),
}
"""Picture -> what is done, window, colours, app."""
ENVIRONMENTS = {"as it is": {}, "slow": {"KIT_PACE": "3"}}
"""App -> its environment."""


def shoot(driver: Browser, served: Served, name: str) -> None:
    """Takes one picture."""
    scene, window, colours, _ = SCENES[name]
    visitor = visit(driver, served.url, viewport=window, color_scheme=colours)
    visitor.open()
    visitor.ready()
    visitor.page.wait_for_timeout(800)
    scene(visitor)
    visitor.page.screenshot(path=PICTURES / f"{name}.png")
    visitor.page.close()
    print(name, flush=True)


def main(names: list[str]) -> None:
    """Serves each app that is needed, and takes its pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    wanted = {name: SCENES[name] for name in names or SCENES}
    with browser() as driver:
        for app in dict.fromkeys(scene[3] for scene in wanted.values()):
            with (
                tempfile.TemporaryDirectory() as folder,
                serve(Path(folder), ENVIRONMENTS[app]) as served,
            ):
                for name, scene in wanted.items():
                    if scene[3] == app:
                        shoot(driver, served, name)


if __name__ == "__main__":
    main(sys.argv[1:])
