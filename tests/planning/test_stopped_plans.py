"""What the user of a plan reads that was stopped, or that failed, in the middle of an act or after one."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage

from kit.compose.locale import BY_LANGUAGE
from kit.models.scripted import Line
from kit.runtime.act_ledger import HALF_DONE, UNCERTAIN
from kit.tools.skill import SkillResult
from kit.tools.tool import ToolLimits
from tests.plan_kits import Rows, calls_and_writes, opened_plans

FIND, RANK = "find the best three", "rank the best three"


class Acts(Rows):
    """A skill that acts, and comes back at once but for the tasks that hang."""

    def __init__(self, *hanging: str, **fields: Any):
        super().__init__(**fields)
        self.hanging = hanging
        self.hangs = asyncio.Event()

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        result = await super().call(skill, arguments, idempotency_key)
        if arguments["task"] in self.hanging:
            self.hangs.set()
            await asyncio.sleep(600)
        return result


async def stopped(folder: Path, desk: Acts, locale: str = "en-US", **options: Any) -> str:
    """Returns what the user reads of a plan that is stopped while its skill hangs."""
    async with opened_plans(folder, desk, **options) as kit:
        turn = kit.ask("the best three", kit.session("s").replace(locale=locale))
        await desk.hangs.wait()
        turn.cancel()
        reply = await turn
        assert reply.status == "cancelled" and reply.text == kit.store.turns()[0].text
    return reply.text


@pytest.mark.req("SO-12", "AS-10")
@pytest.mark.parametrize("honours_keys", [True, False])
async def test_a_plan_that_is_stopped_in_the_middle_of_an_act_says_that_nobody_knows_of_it(
    tmp_path: Path, honours_keys: bool
) -> None:
    text = await stopped(tmp_path, Acts(FIND, honours_keys=honours_keys))
    assert text == (
        f"{FIND}: {UNCERTAIN}\n\nNot done: {RANK}.\n\n"
        "I was stopped here, so this is only part of the answer."
    )


@pytest.mark.req("SO-12", "AS-10")
async def test_it_tells_of_what_it_had_done_before_in_the_language_of_the_session(
    tmp_path: Path,
) -> None:
    text = await stopped(tmp_path, Acts(RANK), "es-ES")
    spanish = BY_LANGUAGE["es"]
    assert f"{RANK}: {spanish.reservations.broken_off}" in text
    assert f"{spanish.sentences.plan_steps}\n\n**1. {FIND}:**" in text
    assert spanish.sentences.stopped in text and "Sin hacer" not in text


@pytest.mark.req("SO-12", "AS-10")
async def test_an_act_that_came_back_is_told_of_though_its_step_was_stopped_before_its_end(
    tmp_path: Path,
) -> None:
    desk = Acts()

    def thinks(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            desk.hangs.set()
            return Line("So.", delay=50.0)
        return calls_and_writes(messages)

    text = await stopped(tmp_path, desk, executor=thinks)
    assert desk.tasks == [FIND] and text.startswith(f"{FIND}: {HALF_DONE}\n\nNot done: {RANK}.")


@pytest.mark.req("SO-12", "K-12")
async def test_an_act_with_a_yes_is_told_of_by_its_step_as_any_other(tmp_path: Path) -> None:
    desk = Acts(FIND)
    confirm = {"call_skill": ToolLimits(confirm=True)}
    async with opened_plans(tmp_path, desk, tool_limits=confirm) as kit:
        asked = await kit.ask("the best three", kit.session("s"))
        turn = kit.resume(asked.turn_id, True)
        await desk.hangs.wait()
        turn.cancel()
        assert (await turn).text.startswith(f"{FIND}: {UNCERTAIN}")


@pytest.mark.req("AS-10")
async def test_a_plan_that_is_stopped_before_it_did_anything_says_no_more(tmp_path: Path) -> None:
    text = await stopped(tmp_path, Acts(FIND, idempotent=True))
    assert text == BY_LANGUAGE["en"].sentences.stopped_early


@pytest.mark.req("SO-12", "AS-10")
async def test_a_plan_that_fails_after_it_acted_does_not_say_that_nothing_was_done(
    tmp_path: Path,
) -> None:
    def hands_in_nothing(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return Line("The end.")
        return calls_and_writes(messages)

    async with opened_plans(tmp_path, Acts(), executor=hands_in_nothing) as kit:
        reply = await kit.ask("the best three", kit.session("s"))
    assert reply.status == "failed" and f"{FIND}: {HALF_DONE}" in reply.text
    assert f"Not done: {RANK}." in reply.text
    assert BY_LANGUAGE["en"].sentences.plan_no_steps not in reply.text
