"""A plan whose skills act only after its user said yes, and one that follows on what was said before."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage

from kit.compose.locale import BY_LANGUAGE
from kit.core.bodies.turn import ApprovalAsked
from kit.core.errors import ResumeError
from kit.metrics.plan_alerts import firing
from kit.metrics.plan_health import count_health, plan_health
from kit.models.scripted import Line
from kit.runtime.act_ledger import DECLINED
from kit.tools.tool import ToolLimits
from tests.plan_kits import Rows, calls_and_writes, keeps_briefs, opened_plans

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
        waits = rf"'{second.turn_id}' waits for an answer: Call rows\?"
        with pytest.raises(ResumeError, match=waits):
            kit.resume(f"plan_{first.turn_id}")
        third = await kit.resume(second.turn_id, True)
    assert third.status == "ok" and third.plan is not None and third.plan.status == "complete"
    assert desk.tasks == ["find the best three", "rank the best three"], "each was done once"


@pytest.mark.req("K-12", "AS-10")
@pytest.mark.parametrize("answer", [True, False])
async def test_an_answer_that_comes_again_is_none_to_the_next_question(
    tmp_path: Path, answer: bool
) -> None:
    """A double click, or the retry of a client whose first response was lost: by the turn, or by the plan."""
    desk = Rows()
    async with opened_plans(tmp_path, desk, tool_limits=CONFIRM) as kit:
        first = await kit.ask("the best three", kit.session("s"))
        (key,) = [event.body.key for event in first.events if isinstance(event.body, ApprovalAsked)]
        second = await kit.resume(f"plan_{first.turn_id}", True)
        assert second.status == "paused"
        for name in (first.turn_id, f"plan_{first.turn_id}"):
            for again in (answer, {key: answer}):
                with pytest.raises(ResumeError, match=rf"'{second.turn_id}' waits for an answer"):
                    kit.resume(name, again)
        assert desk.tasks == ["find the best three"]
        third = await kit.resume(second.turn_id, answer)
    assert (third.status, len(desk.tasks)) == ("ok", 1 + answer)


@pytest.mark.req("K-12", "AS-10")
async def test_an_answer_that_is_given_twice_at_once_does_an_act_once(tmp_path: Path) -> None:
    desk = Rows()
    async with opened_plans(tmp_path, desk, executor=acts_twice, tool_limits=CONFIRM) as kit:
        first = await kit.ask("the best three", kit.session("s"))
        turns = [kit.resume(first.turn_id, True), kit.resume(first.turn_id, True)]
        replies = [await turn for turn in turns]
    assert [reply.text for reply in replies] == ["Call rows?", "Call rows?"]
    assert desk.tasks == ["ink"], "and nobody has said yes to paper"


def insists(messages: list[BaseMessage]) -> Line:
    """An executor's model that takes a no for a fault: it hands in nonsense, tries another way, and gives up."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    if not any(DECLINED in str(result.content) for result in results):
        return calls_and_writes(messages)
    nonsense = ("write_memory", {"key": "rows", "data": {"status": "no"}})
    another_way = ("call_skill", {"skill": "rows", "arguments": {"task": "by post"}})
    words = {"reason": "they said no", "suggestion": "ask again"}
    tries = [nonsense, another_way, ("insufficient", words)]
    made = len(results) - [DECLINED in str(result.content) for result in results].index(True) - 1
    return Line(calls=[tries[made]]) if made < len(tries) else Line("The end.")


@pytest.mark.req("K-12", "AS-10", "AS-21")
async def test_a_no_to_a_plan_is_told_as_a_no_and_nothing_of_the_plan_has_failed(
    tmp_path: Path,
) -> None:
    desk = Rows()
    async with opened_plans(tmp_path, desk, executor=insists, tool_limits=CONFIRM) as kit:
        first = await kit.ask("the best three", kit.session("s"))
        second = await kit.resume(first.turn_id, False)
        documents = kit.store.open_documents()
        who = kit.session("s").principal
        plan = await documents.plans.read(who, f"plan_{first.turn_id}")
        health = plan_health(await count_health(documents, who, since=0.0))
        again = await kit.resume(f"plan_{first.turn_id}")
    assert plan is not None
    asked = [event for event in second.events if isinstance(event.body, ApprovalAsked)]
    assert (second.status, desk.tasks, asked) == ("ok", [], [])
    assert second.text == (f"find the best three: {DECLINED}\n\nNot done: rank the best three.")
    assert (second.parts.answered, second.parts.failed) == (1, 0)
    assert (plan.status, plan.failure, plan.replan_count) == ("cancelled", None, 0)
    assert [step.status for step in plan.steps] == ["declined", "pending"]
    assert (health.success.n, health.violations.n, health.step_failures) == (0, 0, {})
    assert firing(health) == ()
    assert (again.text, desk.tasks) == (second.text, []), "a no holds for the whole plan"


@pytest.mark.req("K-12", "PC2-L")
async def test_a_no_to_a_later_step_is_told_in_the_language_of_the_session_beside_what_was_done(
    tmp_path: Path,
) -> None:
    spanish = BY_LANGUAGE["es"]
    desk = Rows()
    async with opened_plans(tmp_path, desk, tool_limits=CONFIRM) as kit:
        session = kit.session("s").replace(locale="es-ES")
        first = await kit.ask("the best three", session)
        second = await kit.resume(first.turn_id, True)
        third = await kit.resume(second.turn_id, False)
    assert (third.status, desk.tasks) == ("ok", ["find the best three"])
    assert third.text.startswith(f"rank the best three: {spanish.reservations.declined}")
    assert f"{spanish.sentences.plan_steps}\n\n**1. find the best three:**" in third.text


async def test_where_no_model_words_the_answer_it_says_what_the_steps_came_to(
    tmp_path: Path,
) -> None:
    def fails(messages: list[BaseMessage]) -> Line:
        raise ConnectionError("503")

    async with opened_plans(tmp_path, Rows(idempotent=True), lead=fails) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
    assert reply.status == "ok"
    assert reply.text == (
        "**1. find the best three:** 1 row: find the best three.\n\n"
        "**2. rank the best three:** 1 row: rank the best three.\n\n"
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
async def test_nobody_is_asked_for_a_skill_whose_arguments_do_not_fit_its_schema(
    tmp_path: Path,
) -> None:
    def slips_first(messages: list[BaseMessage]) -> Line:
        """An executor's model that gives a list for a text, reads so, and gives the text."""
        if not isinstance(messages[-1], ToolMessage):
            return Line(calls=[("call_skill", {"skill": "rows", "arguments": {"task": ["ink"]}})])
        if "is not of type 'string'" in str(messages[-1].content):
            return Line(calls=[("call_skill", {"skill": "rows", "arguments": {"task": "ink"}})])
        return calls_and_writes(messages)

    fields = {"task": {"type": "string"}}
    desk = Rows(input_schema={"type": "object", "properties": fields})
    confirm = {"call_skill": ToolLimits(confirm="Call {skill} with {arguments}?")}
    async with opened_plans(tmp_path, desk, executor=slips_first, tool_limits=confirm) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
        assert reply.text == "Call rows with {'task': 'ink'}?" and desk.tasks == []
        await kit.resume(reply.turn_id, True)
    assert desk.tasks == ["ink"]


@pytest.mark.req("K-12", "AS-10")
async def test_the_kits_own_question_for_a_skill_names_the_step_and_no_tool(tmp_path: Path) -> None:
    confirm = {"call_skill": ToolLimits(confirm=True)}
    async with opened_plans(tmp_path, Rows(), tool_limits=confirm) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
    assert (
        reply.text == "May I run “find the best three” with skill: rows, task: find the best three?"
    )


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


@pytest.mark.req("AS-28")
async def test_a_planner_reads_what_was_said_before_its_task(tmp_path: Path) -> None:
    briefs: list[dict[str, Any]] = []
    async with opened_plans(tmp_path, Rows(idempotent=True), planner=keeps_briefs(briefs)) as kit:
        session = kit.session("s")
        reply = await kit.ask("the visits of Okoye", session)
        await kit.ask("and the same for Haddad", session)
    first, second = briefs
    assert "conversation" not in first
    assert "the visits of Okoye" in str(second["conversation"])
    assert reply.text.partition("\n")[0] in str(second["conversation"])
