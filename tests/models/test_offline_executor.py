"""The offline stand-in carries out the steps that it plans: by real tool calls, exactly, and it
says so when it cannot."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from kit.models.offline.executor import executor_turn
from kit.models.offline.model import OfflineModel
from kit.runtime.turn import run_turn
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.skill_service import SkillService
from tests.kits import ALICE
from tests.plan_kits import events_of, plan_of
from tests.step_kits import in_memory, need_boundary, output_of, plan_examples, step_kit

SERVICE = SkillService()


def given(skill: str, **arguments: Any) -> dict[str, Any]:
    result = SERVICE.call(Scope("acme"), skill, arguments)
    assert isinstance(result, dict)
    return result


async def last_output(task: str, folder: Path) -> tuple[dict[str, Any], int]:
    """What the last step of a plan for a task leaves, and how many steps there were; all of it by the stand-in."""
    async with in_memory(SkillService()) as client:
        kit = step_kit(
            folder, client, OfflineModel(pace=0.0, think=0.0, plan_examples=plan_examples())
        )
        plan = await plan_of(kit, await run_turn(task, ALICE, kit))
        assert (plan.status, plan.replan_count) == ("complete", 0), plan.failure
        assert (
            await events_of(kit, "skill.refused")
            == []
            == await events_of(kit, "contract_violation")
        )
        return await output_of(kit, plan, len(plan.steps)), len(plan.steps)


def ids(**arguments: Any) -> list[str]:
    return [row["id"] for row in given("outlet_list", limit=5_000, **arguments)["outlets"]]


@pytest.mark.realtime
async def test_it_ranks_what_the_step_before_has_listed_though_its_ids_are_too_many_to_read(
    tmp_path: Path,
) -> None:
    need_boundary()
    task = "Rank the active outlets by how they did in the last 8 weeks"
    output, steps = await last_output(task, tmp_path)
    active = ids(status="active")
    best = given("outlet_analytics", outlet_ids=active, weeks=8)
    assert steps == 2 and output["total"] == best["total"] == len(active)
    assert output["results"] == best["results"]


@pytest.mark.realtime
async def test_it_carries_six_steps_through(tmp_path: Path) -> None:
    task = "For the two best active outlets in Oakfield: the street of each, and the desserts on the menu of each"
    output, steps = await last_output(task, tmp_path)
    best = given("outlet_analytics", outlet_ids=ids(city="Oakfield", status="active"), limit=2)[
        "results"
    ][1]
    assert steps == 6 and output["outlet"] == best["name"]
    assert (
        output["items"]
        == given("outlet_menu", outlet_id=best["outlet_id"], category="desserts")["items"]
    )


# One step by itself

BRIEF: dict[str, Any] = {
    "task": "List the active places",
    "skills": [
        {
            "id": "places",
            "input_schema": {"properties": {"city": {"type": "string"}}, "required": []},
            "output_schema": {},
        },
        {"id": "spots", "input_schema": {"properties": {}}, "output_schema": {}},
    ],
    "return_spec": {"shape": {"names": "array<string>"}},
}


def after(*rounds: tuple[str, dict[str, Any], str, bool], **brief: Any) -> Any:
    """What it does after these calls, each with its tool, arguments, result and whether that failed."""
    messages: list[BaseMessage] = [HumanMessage(f"Do it.\n\n{json.dumps({**BRIEF, **brief})}")]
    for number, (tool, arguments, text, failed) in enumerate(rounds):
        messages.append(
            AIMessage("", tool_calls=[ToolCall(name=tool, args=arguments, id=str(number))])
        )
        messages.append(
            ToolMessage(text, tool_call_id=str(number), status="error" if failed else "success")
        )
    turn = executor_turn(messages)
    return turn if isinstance(turn, str) else turn[0]


def called(skill: str, text: str, failed: bool = False) -> tuple[str, dict[str, Any], str, bool]:
    return "call_skill", {"skill": skill, "arguments": {}}, text, failed


def test_after_a_fault_it_makes_the_same_call_once_more_and_then_says_that_it_cannot() -> None:
    """Without its filters a lookup answers another question, and its rows would be taken for those of this one."""
    arguments = {"skill": "places", "arguments": {"city": "Rivermont"}}
    lost = ("call_skill", arguments, "places gave nothing: timeout.", True)
    assert after(lost) == ("call_skill", arguments)
    name, words = after(lost, lost)
    assert name == "insufficient" and "places gave nothing" in words["reason"]
    assert words["suggestion"]
    assert isinstance(after(lost, lost, ("insufficient", {}, "{}", False)), str)


def test_it_makes_no_second_call_where_nobody_knows_how_the_first_ended() -> None:
    assert (
        after(called("places", "Nobody knows whether places has done it.", True))[0]
        == "insufficient"
    )


def test_a_call_that_was_refused_is_not_made_again() -> None:
    refused = ("call_skill", {"skill": "places"}, "This call was not made: city: too long", True)
    assert after(refused)[0] == "insufficient"


def test_it_hands_in_what_the_skill_returned_or_says_which_field_is_missing() -> None:
    write = after(called("places", '{"names": ["a"], "more": 1}'))
    assert write == ("write_memory", {"key": "names", "data": {"names": ["a"]}})
    name, words = after(called("places", '{"total": 2}'))
    assert name == "insufficient" and "places did not return 'names'" in words["reason"]
    assert after(("write_memory", {}, "{}", False)) == "The step is done."


def test_a_schema_that_is_true_or_false_can_be_read() -> None:
    """JSON Schema has them for anything and for nothing."""
    anything = {"properties": {"more": True, "rest": False}}
    places = {"id": "places", "input_schema": anything, "output_schema": anything}
    assert after(skills=[places]) == ("call_skill", {"skill": "places", "arguments": {}})


def test_an_input_is_a_file_only_where_it_names_one() -> None:
    """`begins` is how the file of a long input begins; an output may have a field of that name."""
    assert after(input={"begins": "2026-05-01", "city": "Rivermont"})[0] == "call_skill"
    assert (
        after(input={"file_id": "tmp_1", "size_bytes": 20_000, "begins": "["})[0] == "exec_python"
    )
