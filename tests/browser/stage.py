"""The app served for real, and a Chromium that looks at it and remembers what it saw when."""

# pyright: reportMissingImports=false

import asyncio
import time
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    sync_playwright,
)

from kit.settings import Settings
from kit.wire import open_kit
from tests.browser.chromium import chromium
from tests.effort import allowance
from tests.kits import MIXED

WATCH = Path(__file__).with_name("watch.js")
DESK: Any = {"width": 1280, "height": 800}
PHONE: Any = {"width": 390, "height": 844}


@dataclass
class Visitor:
    """One page of the browser, with what it asked of other hosts and complained about."""

    page: Page
    url: str
    foreign: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def open(self, query: str = "") -> float:
        """Opens the chat; returns seconds until it can be typed into. The kit may still be opening
        behind it: see `ready`."""
        began = time.monotonic()
        self.page.goto(self.url + "/" + query)
        self.page.get_by_test_id("stChatInputTextArea").wait_for(timeout=30_000)
        return time.monotonic() - began

    def ready(self) -> None:
        """Waits until the badge names the model: the kit is open."""
        badge, alert = (
            self.page.get_by_text("offline stand-in"),
            self.page.get_by_test_id("stAlert"),
        )
        badge.or_(alert).first.wait_for(timeout=30_000)
        assert not alert.count(), alert.first.inner_text()

    def ask(self, question: str) -> None:
        """Types a question and presses Enter."""
        box = self.page.get_by_test_id("stChatInputTextArea")
        box.fill(question)
        box.press("Enter")

    def attach(self, name: str, data: bytes) -> None:
        """Puts a file beside the next question."""
        file: Any = {"name": name, "mimeType": "image/png", "buffer": data}
        with self.page.expect_response(
            lambda response: "upload_file" in response.url and response.request.method == "PUT"
        ):
            self.page.locator("[data-testid=stChatInput] input[type=file]").first.set_input_files(
                files=[file]
            )

    def settled(self, turns: int = 1, timeout: float = 20) -> None:
        """Waits until so many turns show how they ended."""
        badge = self.page.locator("[data-testid=stChatMessage] .stMarkdownBadge:nth-of-type(1)")
        badge.nth(turns - 1).wait_for(timeout=timeout * 1000)

    def below(self) -> float:
        """Pixels of the page below what is in view."""
        box = "document.querySelector('.stMain')"
        return float(
            self.page.evaluate(f"{box}.scrollHeight - {box}.clientHeight - {box}.scrollTop")
        )

    def at_end(self, otherwise: str, seconds: float = 8.0) -> None:
        """Fails with `otherwise` unless the end of the page comes into view within so many seconds.

        A page that no longer follows its end never gets there; one that follows it glides, on a busy machine slowly.
        """
        deadline = time.monotonic() + seconds
        while self.below() >= 2 and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)
        assert self.below() < 2, otherwise

    def text(self) -> str:
        """Everything that can be read."""
        return self.page.inner_text("body")

    def badges(self, word: str) -> int:
        """Turns that ended in this word."""
        return self.page.locator(
            "[data-testid=stChatMessage] .stMarkdownBadge", has_text=word
        ).count()

    def session(self) -> str:
        """The session of the page's address."""
        return parse_qs(urlsplit(self.page.url).query)["session"][0]

    def seen(self) -> dict[str, Any]:
        """What the observer recorded, times in milliseconds since the page was opened."""
        return dict(self.page.evaluate("window.seen"))


def play_turns(
    store: Path, session: str, count: int, patterns: Iterable[str] = ("mediated",)
) -> list[str]:
    """Plays turns straight into a store, so many on each pattern, and returns their ids. In a thread: the browser's
    driver has the loop of this one."""

    async def play() -> list[str]:
        settings = Settings.read().model_copy(
            update={"store": str(store), "model": "offline", "pace": 0.0}
        )
        turns: list[str] = []
        async with open_kit(settings) as kit:
            for pattern in patterns:
                for _ in range(count):
                    reply = await kit.ask(MIXED, kit.session(session), pattern)
                    turns.append(reply.turn_id)
        return turns

    with ThreadPoolExecutor(1) as player:
        return player.submit(asyncio.run, play()).result()


@contextmanager
def browser() -> Generator[Browser]:
    """Debian's Chromium, headless."""
    path = chromium()
    assert path, "there is no chromium"
    with sync_playwright() as driver:
        launched = _launch(driver, path)
        try:
            yield launched
        finally:
            launched.close()


def _launch(driver: Playwright, path: str) -> Browser:
    return driver.chromium.launch(
        executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    )


def visit(browser: Browser | BrowserContext, url: str, **context: Any) -> Visitor:
    """A visitor, watched from its first byte: a fresh one of a browser, or one more page of
    somebody who was here before."""
    page = browser.new_page(**context)
    page.add_init_script(path=WATCH)
    visitor = Visitor(page, url)
    page.on(
        "request",
        lambda request: None if _own(request.url, url) else visitor.foreign.append(request.url),
    )
    page.on(
        "console",
        lambda said: visitor.complaints.append(said.text) if _complains(said, url) else None,
    )
    page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    return visitor


def _own(asked: str, url: str) -> bool:
    return asked.startswith((url, url.replace("http", "ws", 1), "data:", "blob:"))


def _complains(said: ConsoleMessage, url: str) -> bool:
    """Whether it is an error. Streamlit looks for its server under the path of a sub-page first:
    those two misses are its own."""
    probes = {
        f"{url}/{page}/_stcore/{probe}"
        for page in ("traces", "plans", "compare", "demo", "cards", "metrics", "benchmarks")
        for probe in ("health", "host-config")
    }
    return said.type == "error" and not ("404" in said.text and said.location["url"] in probes)


def told(line: str, figure: float, unit: str = "ms") -> None:
    """Prints a figure beside the test's dot (`pytest -s`)."""
    print(f"\n   {line}: {figure:.0f} {unit}", end="")


def within(line: str, seconds: float, promised: float) -> None:
    """Prints a time, and fails well past what was promised."""
    told(line, 1000 * seconds)
    most = allowance(promised)
    assert seconds <= most, (
        f"{line}: {seconds:.2f} s, not {promised} s, nor {most:.1f} s at this load"
    )
