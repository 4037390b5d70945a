"""What is promised to everybody: each page can be read, in light and dark and on a phone, works by
keys, and stays at home."""

# pyright: reportMissingImports=false

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from kit.core.context import Principal, Session
from kit.patterns import PATTERNS
from kit.runtime.turn import run_turn
from tests.browser.stage import DESK, PHONE, Visitor, play_turns, visit
from tests.kits import MIXED
from tests.plan_kits import draft, plan_kit
from tests.streamlit_server import Served

pytestmark = pytest.mark.browser
STREAMLITS = "stFileUploaderDropzone"
"""Has a role that axe calls a minor conflict, and is not ours to change."""
WIDE = "[...document.querySelectorAll('html, body, section')].map(box => box.scrollWidth)"


def findings(visitor: Visitor, *rules: str) -> list[str]:
    """What axe finds, with where it is; by these rules, or by all."""
    axe = (
        Axe("") if visitor.page.evaluate("'axe' in window") else Axe()
    )  # its source is read once a page
    found = axe.run(
        visitor.page,
        options={"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})},
    )
    own = {
        one["id"]: [str(node["html"]) for node in one["nodes"] if STREAMLITS not in node["html"]]
        for one in found.response["violations"]
    }
    return [
        f"{rule}: {'; '.join(html[:160] for html in nodes[:3])}"
        for rule, nodes in own.items()
        if nodes
    ]


def plan_of_two_steps(store: Path) -> str:
    """Runs a plan of the visitor on the store of the app, in a thread of its own, and returns its id."""
    who = Session(id="plans", principal=Principal(tenant_id="acme", user_id="u-001"))

    async def play() -> str:
        kit = plan_kit(store.parent, draft("list them", "rank them", chain=True), name=store.name)
        reply = await run_turn("Which of them are best?", who, kit)
        kit.store.close()
        return f"plan_{reply.turn_id}"

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, play()).result()


Look = Callable[[str], None]
"""Looks at the page as it stands, in a state of this name."""


def unfold(page: Any, words: str) -> None:
    """Opens what is folded under some words, once the page is written: it may be written once more, closed."""
    page.get_by_text(words).wait_for()
    page.locator(".stApp[data-test-script-state='notRunning']").wait_for()
    page.get_by_text(words).click()


def see_chat(visitor: Visitor, served: Served, look: Look) -> None:
    page = visitor.page
    visitor.open()
    visitor.ready()
    page.get_by_text("Someone else's data").wait_for()
    look("chat, first screen")
    page.get_by_text("Someone else's data").click()
    visitor.settled()
    look("chat, a part failed")
    visitor.ask(MIXED)
    visitor.settled(2)
    page.locator("details summary", has_text="Rewards").last.click()
    assert page.get_by_test_id("stChatInputTextArea").is_visible()
    look("chat, answered")


def see_traces_and_plans(visitor: Visitor, served: Served, look: Look) -> None:
    page = visitor.page
    (turn,) = play_turns(served.store, "traces", 1)
    page.goto(f"{served.url}/traces")
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    look("traces, the list")
    page.goto(f"{served.url}/traces?turn={turn}")
    page.locator(".waterfall button").first.wait_for()
    page.locator("[data-span] h3").wait_for()
    look("traces, one")
    page.goto(f"{served.url}/plans?plan={plan_of_two_steps(served.store)}")
    page.get_by_label("What it found and how, step 1").click()
    page.get_by_text("Has to return").first.wait_for()
    look("plans, one")
    page.goto(f"{served.url}/plans")
    unfold(page, "How plans do")
    page.get_by_text("Done without being planned anew").wait_for()
    look("plans, the list")


def see_demo_and_compare(visitor: Visitor, served: Served, look: Look) -> None:
    page = visitor.page
    page.goto(f"{served.url}/demo")
    page.get_by_text("Press 1 to 5").wait_for()
    look("demo, the claim")
    page.goto(f"{served.url}/demo?scene=4")
    page.get_by_text("over the limit: never run").wait_for()
    look("demo, a scene")
    turns = play_turns(served.store, "compare", 1, PATTERNS)
    page.goto(f"{served.url}/compare?turns={turns[0]}&others={turns[0]}")
    page.get_by_text("From the stored table").wait_for()
    look("compare, what others would have said")
    page.goto(f"{served.url}/compare?turns={','.join(turns)}")
    page.get_by_role("tab", name="Way G: A2A").wait_for()
    look("compare, all patterns")
    page.goto(f"{served.url}/compare")
    page.get_by_label("One question on all patterns").wait_for()
    look("compare, nothing chosen")


def see_cards_and_figures(visitor: Visitor, served: Served, look: Look) -> None:
    page = visitor.page
    play_turns(served.store, "figures", 1)
    page.goto(f"{served.url}/cards")
    page.get_by_role("heading", name="What it is told").wait_for()
    look("cards")
    page.goto(f"{served.url}/metrics")
    unfold(page, "Every figure, and what it means")
    page.get_by_role("heading", name="Judged by labels").wait_for()
    look("metrics")
    page.goto(f"{served.url}/benchmarks")
    page.get_by_test_id("stDownloadButton").first.wait_for(timeout=60_000)
    look("benchmarks, a run")


BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 26)"}
IS = "colour => getComputedStyle(document.querySelector('.stApp')).backgroundColor === colour"
STILL = (
    "document.getAnimations().every(one => one.playState !== 'running' || "
    "one.effect.getTiming().iterations === Infinity)"
)
"""What has just come has faded in."""
Scheme = Literal["light", "dark"]
LOOKS: tuple[tuple[str, Any, Scheme, tuple[str, ...]], ...] = (
    ("desk", DESK, "light", ()),
    ("phone", PHONE, "dark", ()),
    ("desk", DESK, "dark", ("color-contrast",)),
)
"""Window and colours, and by which rules they are looked at: colours decide of contrast alone, and
fade when they change. The chat alone has a sidebar and a panel, which a phone hides, so it alone has the third look."""


@pytest.mark.parametrize(
    "see", [see_chat, see_traces_and_plans, see_demo_and_compare, see_cards_and_figures]
)
def test_every_page_can_be_read_and_stays_at_home(
    desk: Any, served: Served, see: Callable[[Visitor, Served, Look], None]
):
    visitor = visit(desk, served.url)
    grave: dict[str, list[str]] = {}
    wide: dict[str, int] = {}

    def look(state: str) -> None:
        for name, window, scheme, rules in LOOKS if state.startswith("chat") else LOOKS[:2]:
            visitor.page.set_viewport_size(window)
            visitor.page.emulate_media(color_scheme=scheme)
            visitor.page.wait_for_function(IS, arg=BACKGROUNDS[scheme])
            visitor.page.wait_for_function(STILL)
            if findings(visitor, *rules):
                visitor.page.wait_for_timeout(
                    1000
                )  # a colour that still faded is no finding: what counts is what stays
                if found := findings(visitor, *rules):
                    grave[f"{state}, {name}, {scheme}"] = found
            if (width := max(visitor.page.evaluate(WIDE))) > window["width"]:
                wide[f"{state}, {name}"] = width

    see(visitor, served, look)
    visitor.page.close()
    assert grave == {}
    assert wide == {}, "a page is wider than the window"
    assert visitor.foreign == [], "a page asked another host"
    assert visitor.complaints == [], "a page wrote errors to the console"


HEAR = """() => {
    window.heard = [];
    const hear = () => {
        const words = document.querySelector('[role=status].spoken')?.textContent ?? '';
        if (words && words !== window.heard.at(-1)) window.heard.push(words);
    };
    new MutationObserver(hear).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Keeps what a screen reader is told, however short it stands there."""


def test_a_screen_reader_is_told_that_a_turn_works_and_how_it_ended(visitor: Visitor):
    visitor.open()
    visitor.ready()
    region = visitor.page.locator("[role=status].spoken")
    visitor.page.evaluate(HEAR)
    visitor.ask("How many points do I have?")
    expect(region).to_have_text(re.compile(r"^Answered\. .*You have 4,975 points"), timeout=20_000)
    assert visitor.page.evaluate("window.heard")[0] == "Working"
    visitor.page.reload()
    visitor.ready()
    visitor.settled()
    visitor.page.wait_for_timeout(600)
    assert region.inner_text() == "", "an answer of before is read out again"
