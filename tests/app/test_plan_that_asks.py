"""A plan whose steps act only after their user said yes, on the pages: while it waits, after a yes, and after a no."""

import asyncio
import html
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from kit.cli.story import Story
from kit.core.bodies.turn import PlanTaken
from kit.runtime.handle import Reply
from tests.app.rooms import app_over, room, shown
from tests.app.test_plans_page import MINE
from tests.plan_kits import Rows, opened_plans
from tests.planning.test_confirmed_plans import CONFIRM

TASK = "the best three"


class Plans(NamedTuple):
    """A store with plans, conversation -> the reply of its last turn, and what a terminal said of the first."""

    path: Path
    replies: dict[str, Reply]
    terminal: str


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """Plans of two steps that their user was asked about: no answer yet, a yes, a no, a yes and then a no."""
    folder = tmp_path_factory.mktemp("asks")
    answers = {"asked": [], "yes": [True], "no": [False], "yes_no": [True, False]}
    replies: dict[str, Reply] = {}
    terminal = StringIO()

    async def play() -> None:
        async with opened_plans(folder, Rows(), tool_limits=CONFIRM) as kit:
            for name, answers_of_user in answers.items():
                reply = await kit.ask(TASK, MINE.replace(id=name))
                for answer in answers_of_user:
                    reply = await kit.resume(reply.turn_id, answer, who=MINE.principal)
                replies[name] = reply

    asyncio.run(play())
    story = Story(terminal, "offline")
    for event in replies["asked"].events:
        story.tell(event)
    return Plans(folder / "kit.db", replies, terminal.getvalue())


@pytest.fixture(scope="module")
def app(plans: Plans) -> Iterator[None]:
    with (
        pytest.MonkeyPatch.context() as environment,
        app_over(plans.path, environment, DECK="cards/outlets"),
    ):
        yield


def fact(page: AppTest, name: str) -> str:
    """Returns what the panel of a turn says of one thing, as a person reads it."""
    found = re.search(rf'data-fact="{name}".*?<dd>(.*?)</dd>', shown(page), re.DOTALL)
    assert found is not None
    return " ".join(html.unescape(words(found[1])).split())


@pytest.mark.req("K-15")
def test_the_turn_of_a_plan_that_waits_names_whom_it_asked_as_a_terminal_does(
    app: None, plans: Plans
) -> None:
    assert "  asked planner, executor\n" in plans.terminal
    agents = fact(room("chat", session="asked").run(), "agents")
    assert agents == "Planner Executor"
    agents = fact(room("chat", session="yes").run(), "agents")
    assert agents == "Executor Executor", "the act of its first step was done in it"


@pytest.mark.req("K-15")
def test_the_list_of_traces_names_them_too(app: None) -> None:
    page = room("traces").run()
    assert not page.exception
    rows = page.dataframe[0].value
    agents = [list(names) for names in rows["Sub-agents"]]
    assert ["Planner", "Executor"] in agents and [] not in agents


def words(page: str) -> str:
    """What a person reads of a page, without its tags."""
    return re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)


@pytest.mark.req("K-12")
@pytest.mark.parametrize(
    ("name", "sentence", "rest"),
    [
        (
            "yes_no",
            "into 2 steps, and Executor has done step 1. You said no to step 2.",
            "you said no",
        ),
        (
            "no",
            "and Executor has done none of them. You said no to step 1. Not done either: step 2.",
            "not done",
        ),
        (
            "yes",
            "Executor has done step 1. Not finished: step 2; state: waits for your answer.",
            "waits for your answer",
        ),
    ],
)
def test_a_plan_says_what_was_done_and_what_waits_or_is_not_done_after_a_no(
    app: None, plans: Plans, name: str, sentence: str, rest: str
) -> None:
    bodies = [event.body for event in plans.replies[name].events]
    (plan_id,) = [body.plan_id for body in bodies if isinstance(body, PlanTaken)]
    page = room("plans", plan=plan_id).run()
    text = shown(page).replace("\\", "")
    assert sentence in text and f"<li>2. rank the best three, {rest}" in text
    assert "stopped by you" not in words(text) and "waiting" not in words(text)
    if name == "yes_no":
        buttons = [button.label for button in page.button]
        assert buttons == ["All plans"], "to go on could only say the same again"


@pytest.mark.req("K-12")
def test_the_list_of_plans_tells_a_no_from_a_plan_that_waits(app: None) -> None:
    page = room("plans").run()
    assert not page.exception
    states = list(page.dataframe[0].value["State"])
    assert sorted(states) == ["waits for your answer"] * 2 + ["you said no"] * 2
