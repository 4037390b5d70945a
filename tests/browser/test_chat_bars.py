"""What is promised of a turn on the page: it can be stopped, nothing else ends it, and what failed
is said in plain words."""

# pyright: reportMissingImports=false

import statistics
import time
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from case_pictures import draw_picture
from kit.core.picture import LARGEST
from tests.browser.hanging import HANGS, hanging, stored, turns_of
from tests.browser.raw import raw_visitor, resident
from tests.browser.stage import Visitor, play_turns, told, within
from tests.kits import MIXED
from tests.streamlit_server import Served

pytestmark = pytest.mark.browser


def test_stop_ends_a_silent_turn_at_once_and_for_good(visitor: Visitor, served: Served):
    visitor.open(HANGS)
    visitor.ready()
    hanging(visitor)
    visitor.page.wait_for_timeout(400)  # all is silent
    visitor.page.get_by_role("button", name="Stop").click()
    visitor.page.locator(".stMarkdownBadge", has_text="Stopped").wait_for()
    visitor.page.get_by_role("button", name="Stop").wait_for(state="detached", timeout=1500)
    seen = visitor.seen()
    within(
        "Stop to stopped, in a hang",
        (seen["badges"]["Stopped"] - seen["marks"]["click"]) / 1000,
        1.5,
    )
    time.sleep(1)
    assert visitor.seen()["texts"] == seen["texts"], "text came after the stop"
    assert [turn.status for turn in turns_of(served, visitor)] == ["cancelled"]


def test_switches_thumbs_and_another_page_leave_a_running_turn_alone(
    visitor: Visitor, served: Served
):
    visitor.open()
    visitor.ready()
    visitor.ask("How many points do I have?")
    visitor.settled()
    visitor.page.get_by_test_id("stExpander").get_by_text("Break a part").click()
    visitor.page.get_by_text("does not answer in time").click()
    visitor.page.wait_for_url("**fault=rewards*")
    hanging(visitor)
    assert visitor.page.get_by_role("button", name="Stop").is_visible(), (
        "it was not in the middle of the turn any more"
    )
    visitor.page.get_by_text("gets no data from its service").click()
    visitor.page.get_by_test_id("stChatMessage").nth(1).get_by_role(
        "radio", name="Thumbs up"
    ).click()
    visitor.page.wait_for_url("**error_envelope*")
    visitor.page.get_by_role("link", name="Traces").click()
    visitor.page.get_by_role("heading", name="Traces").wait_for()
    visitor.page.get_by_role("link", name="Chat").click()
    visitor.settled(2)  # at the latest when the time of the part that hangs is over
    assert visitor.page.get_by_test_id("stChatMessage").count() == 4 == visitor.seen()["most"]
    newest, oldest = turns_of(served, visitor)
    assert (newest.status, newest.failed) == ("ok", ("rewards",)), (
        "a switch holds from the next question on"
    )
    with stored(served) as store:
        given = store.feedback(oldest.id)
    assert given and given.score == 1


BEGINS_UNDER_ITS_QUESTION = """() => {
  const question = document.querySelector('[data-testid=stChatMessage]').getBoundingClientRect();
  const outcome = document.querySelector('[class*=st-key-outcome-]').getBoundingClientRect();
  return question.top > 0 && outcome.top >= question.bottom && outcome.top < question.bottom + 40;
}"""
"""Whether the sentence on how a turn went stands in view, right under the question, and is not covered by it."""


def test_an_agent_is_broken_from_its_lane_by_keys_alone_and_the_answer_owns_up(
    visitor: Visitor, served: Served
):
    visitor.open(HANGS)
    visitor.ready()
    hanging(visitor)
    page = visitor.page
    page.locator(".clock", has_text="is at work on").wait_for()
    assert "A receipt that does not scan" in page.locator("[data-lane=Support]").inner_text(), (
        "what the others found can be read meanwhile"
    )
    page.locator("details summary", has_text="Rewards").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Hang").wait_for()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".stMarkdownBadge", has_text="2 of 3 answered").first.wait_for(timeout=5_000)
    lane = page.locator("[data-lane=Rewards]").inner_text()
    assert "broken on purpose" in lane and "⚡" in lane
    assert not page.get_by_role("button", name="Kill").count()
    page.wait_for_function(BEGINS_UNDER_ITS_QUESTION)
    (turn,) = turns_of(served, visitor)
    assert turn.failed == ("rewards",) and turn.seconds is not None and turn.seconds < 8


def test_a_turn_is_played_again_and_a_link_opens_it_at_its_moment(visitor: Visitor, served: Served):
    visitor.open("?fault=rewards%3Draise")
    visitor.ready()
    visitor.ask(MIXED)
    visitor.settled()
    page = visitor.page
    rewards = page.locator("[data-lane=Rewards]")
    assert rewards.get_attribute("data-phase") == "ended" and "failed" in rewards.inner_text()
    moment = page.get_by_role("slider", name="Moment")
    moment.focus()
    moment.press("Home")
    assert rewards.get_attribute("data-phase") == "waiting" and not rewards.inner_text().split()[1:]
    page.get_by_label("Speed").select_option("0.25")
    page.get_by_role("button", name="Play").click()
    page.locator("[data-lane=Support][data-phase=working]").wait_for()
    page.locator("[data-lane=Answer][data-phase=ended]").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # it stopped by itself
    support = page.locator("[data-lane=Support]")
    began = float(support.get_attribute("data-from") or 0)
    ended = float(support.get_attribute("data-until") or 0)
    moment.fill(f"{(began + ended) / 2:.2f}")
    link = page.get_by_role("link", name="Link to this moment").get_attribute("href")
    page.goto(f"{served.url}/{link}")
    page.locator("[data-lane=Support][data-phase=working]").wait_for()
    assert page.locator("[data-lane=Answer]").get_attribute("data-phase") == "waiting"


@pytest.mark.req("SAT-14")
def test_a_picture_is_shown_and_answered_and_another_file_is_refused_in_a_sentence(
    visitor: Visitor, served: Served
):
    receipt = draw_picture("receipt").data
    visitor.open()
    visitor.ready()
    visitor.attach("receipt.png", receipt)
    visitor.ask("why was this refused?")
    visitor.settled()
    asked = visitor.page.get_by_test_id("stChatMessage").first
    assert "[picture: receipt.png] why was this refused?" in asked.inner_text()
    assert asked.locator("img[alt='receipt.png']").evaluate("one => one.naturalWidth") > 0, (
        "the picture is not shown"
    )
    for name, data, said in (
        (
            "note.png",
            b"no picture",
            "note.png is no picture that can be read: send PNG, JPEG, WebP or GIF",
        ),
        ("big.png", receipt + bytes(LARGEST), "at most 5 MB are taken: send a smaller copy"),
    ):
        visitor.attach(name, data)
        visitor.ask("and this?")
        visitor.page.get_by_test_id("stAlert").get_by_text(said).wait_for()
        # While the page puts a new field in the place of the old one there are two for a moment.
        field = visitor.page.get_by_test_id("stChatInputTextArea").first
        expect(field, "the question is lost").to_have_value("and this?")
    (turn,) = turns_of(served, visitor)
    assert (
        turn.invoked == ("support",) and visitor.page.get_by_test_id("stChatMessage").count() == 2
    )


ANSWERED = """question => {{
  const all = [...document.querySelectorAll('[data-testid=stChatMessage]')].map((message) => message.innerText);
  const place = all.findIndex((text) => text.includes(question));
  return place >= 0 && all[place + 1]?.includes('{words}');
}}"""
"""Whether the message after a question says this."""


def test_a_session_of_fifty_turns_opens_and_goes_on_quickly(visitor: Visitor, served: Served):
    play_turns(served.store, "fifty", 50)
    visitor.open()
    visitor.ready()  # another test asks how long an app takes that has just started
    began = time.monotonic()
    visitor.page.goto(f"{served.url}/?session=fifty")
    visitor.settled(10, timeout=60)
    within("a session of 50 turns, from nothing to its newest answer", time.monotonic() - began, 5)
    visitor.page.get_by_role("button", name="Show earlier").wait_for()
    visitor.ready()
    visitor.page.evaluate("window.seen.jump = 0")  # until here older turns came in above
    waits: list[float] = []
    memory: list[float] = []
    for number in range(12):
        question = f"How many points do I have? ({number})"
        began = time.monotonic()
        visitor.ask(question)
        visitor.page.wait_for_function(ANSWERED.format(words="Let me check"), arg=question)
        waits.append(time.monotonic() - began)
        visitor.page.wait_for_function(ANSWERED.format(words="Answered"), arg=question)
        visitor.at_end(f"turn {number} is not in view")
        memory.append(resident(served.process.pid))
    within("a new turn in it, from Enter to its first words", statistics.median(waits), 0.5)
    # A process that has just started grows by some 15 MiB within its first seven turns, and then no more.
    told("its last four turns added", memory[-1] - memory[7], "MiB")
    assert memory[-1] - memory[7] < 7
    seen = visitor.seen()
    within("Enter to the question on the page, at worst", seen["alone"] / 1000, 0.1)
    told("an answer moved between two frames, at most", seen["jump"], "px")
    # A step of the glide is 36 pixels; on a busy machine a line of text may come within the same frame.
    assert seen["jump"] <= 60 and seen["bare"] == 0
    visitor.page.get_by_test_id("stChatMessage").last.get_by_role("radio", name="Thumbs up").click()
    visitor.page.get_by_placeholder("What was good").wait_for()
    visitor.at_end("a row that came after the end is not in view")
    visitor.page.mouse.move(600, 300)
    visitor.page.mouse.wheel(0, -1500)
    visitor.page.wait_for_timeout(500)
    visitor.page.locator("details summary", has_text="Rewards").last.evaluate(
        "one => one.click()"
    )  # the page grows near its end
    visitor.page.wait_for_timeout(500)
    assert visitor.below() > 500, "it went down under a reader who had scrolled up"
    visitor.page.get_by_role("button", name="Newest").click()
    visitor.at_end("the newest is not in view after a click on it")  # it glides there


def test_twenty_sessions_cost_little_memory(served: Served):
    with ExitStack() as open_pages:

        def come() -> None:
            page = open_pages.enter_context(raw_visitor(served.url))
            page.run()
            page.run("How many points do I have?")

        for _ in range(3):
            come()
        with stored(served) as store:
            asked = len(store.turns(limit=500))
        before = resident(served.process.pid)
        for _ in range(20):
            come()
        grown = resident(served.process.pid) - before
        with stored(served) as store:
            assert len(store.turns(limit=500)) == asked + 20
    told("twenty sessions added", grown, "MiB")
    assert grown < 20
