"""A plan whose skills act only after its user said yes, and one that follows on what was said before."""

from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage, ToolMessage

from kit.core.bodies.turn import ApprovalAsked
from kit.core.errors import ResumeError
from kit.models.scripted import Line
from kit.tools.tool import ToolLimits
from tests.plan_kits import Rows, opened_plans

CONFIRM = {"call_skill": ToolLimits(confirm="Call {skill}?")}
"""The executor asks before it calls a skill."""


@pytest.mark.req("K-12", "AS-3", "AS-10")
async def test_a_plan_that_is_confirmed_goes_on_and_asks_once_for_each_act(tmp_path: Path) -> None:
    desk = Rows()
    async with opened_plans(tmp_path, desk, tool_limits=CONFIRM) as kit:
        first = await kit.ask("the best three", kit.session("s"))
        assert (first.status, first.text, desk.tasks) == ("paused", "Call rows?", [])
        assert await kit.store.open_documents().plans.unfinished() == [], "no worker gets it"
        second = await kit.resume(first.turn_id, True)
        assert (second.status, desk.tasks) == ("paused", ["find the best three"])
    async with opened_plans(tmp_path, desk, tool_limits=CONFIRM) as kit:
        with pytest.raises(ResumeError, match=r"waits for an answer: Call rows\?"):
            kit.resume(f"plan_{first.turn_id}")
        third = await kit.resume(f"plan_{first.turn_id}", True)
    assert third.status == "ok" and third.plan is not None and third.plan.status == "complete"
    assert desk.tasks == ["find the best three", "rank the best three"], "each was done once"


@pytest.mark.req("K-12", "AS-10")
async def test_a_plan_that_is_declined_does_nothing_and_does_not_ask_again(tmp_path: Path) -> None:
    desk = Rows()
    async with opened_plans(tmp_path, desk, tool_limits=CONFIRM) as kit:
        first = await kit.ask("the best three", kit.session("s"))
        second = await kit.resume(first.turn_id, False)
    asked = [event for event in second.events if isinstance(event.body, ApprovalAsked)]
    assert (second.status, desk.tasks, asked) == ("failed", [], [])


async def test_where_no_model_words_the_answer_it_says_what_the_steps_came_to(
    tmp_path: Path,
) -> None:
    def fails(messages: list[BaseMessage]) -> Line:
        raise ConnectionError("503")

    async with opened_plans(tmp_path, Rows(idempotent=True), lead=fails) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
    assert reply.status == "ok"
    assert reply.text == (
        "**find the best three:** 1 row: find the best three.\n\n"
        "**rank the best three:** 1 row: rank the best three.\n\n"
        "I did this in 2 steps."
    )


@pytest.mark.req("K-12")
async def test_a_skill_that_is_called_idempotent_asks_nobody(tmp_path: Path) -> None:
    desk = Rows(idempotent=True)
    async with opened_plans(tmp_path, desk, tool_limits=CONFIRM) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
    assert (reply.status, len(desk.tasks)) == ("ok", 2)


def acts_twice(messages: list[BaseMessage]) -> Line:
    """An executor's model that calls the skill for ink, then for paper, and hands in what came last."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    words = ["ink", "paper"]
    if len(results) < len(words):
        arguments = {"task": words[len(results)]}
        return Line(calls=[("call_skill", {"skill": "rows", "arguments": arguments})])
    if len(results) == len(words):
        data = {"rows": [str(result.content) for result in results]}
        return Line(calls=[("write_memory", {"key": "rows", "data": data})])
    return Line("The end.")


@pytest.mark.req("K-12", "AS-10")
async def test_two_acts_of_one_step_are_each_done_once_under_a_key_of_their_own(
    tmp_path: Path,
) -> None:
    """The step is begun again with each answer; what was done before is not done again."""
    desk = Rows()
    async with opened_plans(tmp_path, desk, executor=acts_twice, tool_limits=CONFIRM) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
        answers = 0
        while reply.status == "paused" and answers < 5:
            answers += 1
            reply = await kit.resume(reply.turn_id, True)
    assert (reply.status, answers) == ("ok", 2), "the second step calls what the first has called"
    assert desk.tasks == ["ink", "paper"] and len(set(desk.keys)) == 2
