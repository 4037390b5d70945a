"""The field for the next question: whatever else the page asks of the server beside a question, it takes another one."""

import os
import time
from itertools import pairwise
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from kit.stores.sqlite import SqliteStore
from tests.browser.stage import Visitor, told, visit
from tests.streamlit_server import Served

pytestmark = pytest.mark.browser

TIMES = int(os.environ.get("KIT_FIELD_TIMES", "5"))
"""How many questions are asked; 200 show what a few cannot."""
LATEST = 0.050
"""Seconds after a question within which the page's own look for other turns is sent."""
PATIENCE = 5_000
"""Milliseconds that the field may take to be usable once its turn has ended."""


class TimedLook:
    """Stands between page and server, and repeats the page's own timed request right after each question."""

    def __init__(self, page: Any):
        self.request: bytes | None = None
        """The page's own request, as its timer last sent it."""
        self.delay = 0.0
        self.repeats = 0
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, route: Any) -> None:
        server = route.connect_to_server()
        server.on_message(route.send)
        route.on_message(lambda message: self._pass_on(message, server))

    def _pass_on(self, message: bytes, server: Any) -> None:
        server.send(message)
        rerun = BackMsg.FromString(message).rerun_script
        if rerun.fragment_id:
            self.request = message
        asks = any(widget.HasField("chat_input_value") for widget in rerun.widget_states.widgets)
        if asks and self.request is not None:
            time.sleep(self.delay)
            server.send(self.request)
            self.repeats += 1


def test_the_field_takes_the_next_question_whenever_the_page_looks_for_other_turns(
    desk: Any, served: Served
):
    visitor = visit(desk, served.url)
    look = TimedLook(visitor.page)
    visitor.open()
    visitor.ready()
    visitor.ask("how many points do I have?")
    visitor.settled()
    wait_until(visitor, lambda: look.request is not None)
    for number in range(TIMES):
        look.delay = LATEST * number / TIMES
        visitor.page.get_by_test_id("stChatInputTextArea").press("Control+a")
        ask_when_usable(visitor, f"how many points do I have? {number}")
        visitor.page.get_by_text(f"how many points do I have? {number}", exact=True).wait_for()
    told("questions with a look beside them", look.repeats, "of them")
    assert look.repeats >= TIMES
    visitor.page.close()


def test_questions_asked_while_another_is_answered_wait_and_are_asked_in_their_order(
    visitor: Visitor, served: Served
):
    visitor.open("?fault=shop%3Dhang")
    visitor.ready()
    visitor.ask("find coffee deals")
    stop = visitor.page.get_by_role("button", name="Stop")
    stop.wait_for()
    waits = visitor.page.get_by_text("Waits for the answer above.")
    for number, question in enumerate(("how many points do I have?", "show my last receipt")):
        visitor.ask(question)
        waits.nth(number).wait_for()
    stop.click()
    visitor.settled(turns=3)
    waits.first.wait_for(state="detached")
    store = SqliteStore(served.store)
    turns = store.turns(session_id=visitor.session())
    store.close()
    assert [turn.message for turn in turns] == [
        "show my last receipt",
        "how many points do I have?",
        "find coffee deals",
    ]
    for later, earlier in pairwise(turns):
        assert later.started_at >= earlier.started_at + (earlier.seconds or 0.0)


def wait_until(visitor: Visitor, holds: Any) -> None:
    for _ in range(300):
        if holds():
            return
        visitor.page.wait_for_timeout(100)
    raise AssertionError("the page never looked for turns of other tabs")


def ask_when_usable(visitor: Visitor, question: str) -> None:
    """Types a question as soon as the field and its button take one."""
    box = visitor.page.get_by_test_id("stChatInputTextArea")
    box.fill(question, timeout=PATIENCE)
    button = visitor.page.get_by_test_id("stChatInputSubmitButton")
    button.click(timeout=PATIENCE)
