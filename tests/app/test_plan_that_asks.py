"""A plan whose steps act only after their user said yes, on the pages: while it waits, after a yes, and after a no."""

import asyncio
import html
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kit.cli.story import Story
from kit.runtime.handle import Reply
from tests.app.rooms import app_over, room, shown
from tests.app.test_plans_page import MINE
from tests.plan_kits import Rows, opened_plans
from tests.planning.test_confirmed_plans import CONFIRM

TASK = "the best three"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Reply], str]:
    """A store with plans of two steps that their user was asked about: no answer yet, a yes, a no, a yes and then
    a no. The path, conversation -> the reply of its last turn, and what a terminal said of the first."""
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
    return folder / "kit.db", replies, terminal.getvalue()


@pytest.fixture(scope="module")
def app(plans: tuple[Path, dict[str, Reply], str]) -> Iterator[None]:
    with (
        pytest.MonkeyPatch.context() as environment,
        app_over(plans[0], environment, DECK="cards/outlets"),
    ):
        yield


def fact(page: AppTest, name: str) -> str:
    """Returns what the panel of a turn says of one thing, as a person reads it."""
    found = re.search(rf'data-fact="{name}".*?<dd>(.*?)</dd>', shown(page), re.DOTALL)
    assert found is not None
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[1])).split())


@pytest.mark.req("K-15")
def test_the_turn_of_a_plan_that_waits_names_whom_it_asked_as_a_terminal_does(
    app: None, plans: tuple[Path, dict[str, Reply], str]
) -> None:
    assert "  asked planner, executor\n" in plans[2]
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
