"""Takes the pictures of docs/screenshots from the served app: `python -m tests.browser.shoot [name ...]`; none names them all."""

# pyright: reportMissingImports=false

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.stage import ROOT, Served, Visitor, browser, serve, visit

PICTURES = ROOT / "docs" / "screenshots"
MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"
DESK = {"width": 1100, "height": 960}
PHONE = {"width": 390, "height": 844}


def first(visitor: Visitor) -> None:
    """The first screen."""


def working(visitor: Visitor) -> None:
    """Sub-agents at work, side by side."""
    visitor.ask(MIXED)
    visitor.page.get_by_text("Looking through today's offers").wait_for()
    visitor.page.wait_for_timeout(150)


def answered(visitor: Visitor) -> None:
    """A whole turn."""
    visitor.ask(MIXED)
    visitor.settled()
    visitor.page.get_by_test_id("stChatMessage").last.hover()
    visitor.page.wait_for_timeout(500)


def routing(visitor: Visitor) -> None:
    """How a turn was routed, and what it took."""
    answered(visitor)
    _unfold(visitor)


def waterfall(visitor: Visitor) -> None:
    """The trace of a turn."""
    answered(visitor)
    _unfold(visitor)
    visitor.page.get_by_role("tab", name="Trace").click()
    visitor.page.locator("path[aria-roledescription=bar]").first.wait_for()
    _down(visitor)


def _unfold(visitor: Visitor) -> None:
    visitor.page.get_by_text("How this was answered").click()
    visitor.page.get_by_role("tab", name="Routing").wait_for()
    _down(visitor)


def _down(visitor: Visitor) -> None:
    visitor.page.wait_for_timeout(600)
    visitor.page.evaluate("document.querySelector('[data-testid=stAppScrollToBottomContainer]').scrollTo(0, 1e6)")
    visitor.page.wait_for_timeout(400)


Scene = tuple[Callable[[Visitor], None], dict[str, int], str, str]
SCENES: dict[str, Scene] = {
    "first-light": (first, DESK, "light", "as it is"),
    "first-dark": (first, DESK, "dark", "as it is"),
    "working-light": (working, DESK, "light", "slow"),
    "answered-light": (answered, DESK, "light", "as it is"),
    "answered-dark": (answered, DESK, "dark", "as it is"),
    "routing-light": (routing, DESK, "light", "as it is"),
    "trace-light": (waterfall, DESK, "light", "as it is"),
    "trace-dark": (waterfall, DESK, "dark", "as it is"),
    "failed-part-light": (answered, DESK, "light", "failing"),
    "failed-part-trace-dark": (waterfall, DESK, "dark", "failing"),
    "phone-first-light": (first, PHONE, "light", "as it is"),
    "phone-answered-dark": (answered, PHONE, "dark", "as it is"),
    "phone-trace-light": (waterfall, PHONE, "light", "as it is"),
}
"""Picture -> what is done, window, colours, app."""


def _environment(app: str, folder: Path) -> dict[str, str]:
    """`failing` gives one sub-agent no time to answer."""
    if app != "failing":
        return {"KIT_PACE": "3"} if app == "slow" else {}
    shutil.copytree(ROOT / "cards", folder / "cards")
    card = folder / "cards" / "consumer" / "rewards.yaml"
    card.write_text(card.read_text().replace("time_budget_ms: 8000", "time_budget_ms: 150"))
    return {"KIT_DECK": str(card.parent)}


def shoot(driver: Browser, served: Served, name: str) -> None:
    """Takes one picture."""
    scene, window, colours, _ = SCENES[name]
    visitor = visit(driver, served.url, viewport=window, color_scheme=colours)
    visitor.open()
    visitor.ready()
    visitor.page.wait_for_timeout(800)
    scene(visitor)
    visitor.page.screenshot(path=PICTURES / f"{name}.png")
    visitor.page.context.close()
    print(name, flush=True)


def main(names: list[str]) -> None:
    """Serves each app that is needed, and takes its pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    wanted = {name: SCENES[name] for name in names or SCENES}
    with browser() as driver:
        for app in dict.fromkeys(scene[3] for scene in wanted.values()):
            with tempfile.TemporaryDirectory() as folder, serve(Path(folder), _environment(app, Path(folder))) as served:
                for name, scene in wanted.items():
                    if scene[3] == app:
                        shoot(driver, served, name)


if __name__ == "__main__":
    main(sys.argv[1:])
