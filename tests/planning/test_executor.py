"""An executor works on one step: with the skills it allows, by scripts where data is long, and it
ends by its contract."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from kit.core.bodies.call import AgentStarted, ModelStarted, ToolEnded
from kit.core.bodies.guard import AccessDenied
from kit.core.documents.document import AgentEvent
from kit.models.offline.executor import executor_turn
from kit.models.offline.model import OfflineModel
from kit.models.scripted import Line, ScriptedModel
from kit.planning.skill_call import LARGE
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from kit.tools.skill import (
    SkillFault,
    SkillReason,
    SkillResult,
    canonical_text,
    text_size,
)
from kit.tools.tool import UNAVAILABLE
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.call_log import CallLog
from kit.worlds.outlets.skill_service import Fault, SkillService
from tests.effort import slowness
from tests.kits import ALICE, bodies
from tests.plan_kits import (
    Described,
    PlanKit,
    Rows,
    draft,
    events_of,
    manifest,
    plan_of,
    row_result,
)
from tests.step_kits import Telling, a_step, in_memory, need_boundary, output_of, step_kit

OURS = "ou-0001"
PRICES = {"items": "array<{name: string, price_cents: integer}>"}
VEGETARIAN = a_step(
    f"Which items on the menu of {OURS} are vegetarian, with their prices", "outlet_menu", PRICES
)
IDS = {"outlets": "array<{id: string}>"}
ACTIVE = a_step("List the active outlets in Rivermont", "outlet_list", IDS)
FOUND = {"found": "boolean"}
DETAILS = a_step(f"Look for {OURS}", "outlet_details", FOUND)
MENU = SkillService().call(Scope("acme"), "outlet_menu", {"outlet_id": OURS})


def offline() -> OfflineModel:
    return OfflineModel(pace=0.0, think=0.0)


def stands_in(messages: list[BaseMessage]) -> Line:
    """A line of the offline stand-in, in a script."""
    turn = executor_turn(messages)
    return Line(turn) if isinstance(turn, str) else Line(calls=turn)


def calls(*tools: tuple[str, dict[str, Any]]) -> Line:
    return Line(calls=list(tools))


def skill(name: str, **arguments: Any) -> Line:
    return calls(("call_skill", {"skill": name, "arguments": arguments}))


def hands_in(**data: Any) -> Line:
    return calls(("write_memory", {"key": "result", "data": data}))


def gives_up(reason: str = "it is too much", suggestion: str = "split it") -> Line:
    return calls(("insufficient", {"reason": reason, "suggestion": suggestion}))


def texts(model: ScriptedModel) -> list[str]:
    """The last message that the model read, at each of its calls."""
    return [str(messages[-1].content) for messages in model.seen]


async def carried_out(
    service: SkillService, executor: Any, step: dict[str, Any], folder: Path, **options: Any
) -> tuple[PlanKit, Reply]:
    """Plays a turn whose plan has this one step, over the service."""
    async with in_memory(service, **options) as client:
        kit = step_kit(folder, client, executor, [step])
        return kit, await run_turn("Do it.", ALICE, kit)


# What a step may call


@pytest.mark.req("AS-1", "AS-4", "AS-18")
async def test_what_the_step_does_not_allow_is_refused_recorded_and_never_called(
    tmp_path: Path,
) -> None:
    """Another skill, and whatever would spawn somebody or plan."""
    log = CallLog()
    act = {"skill": "outlet_call", "arguments": {"outlet_id": OURS, "message": "hello"}}
    beside = [(name, {"query": "do this for me"}) for name in ("ask_executor", "submit_plan")]
    executor = ScriptedModel(calls(("call_skill", act), *beside), gives_up(), "It cannot be done.")
    kit, reply = await carried_out(SkillService(log=log), executor, ACTIVE, tmp_path)
    assert log.calls() == []
    results = [str(message.content) for message in executor.seen[1]]
    assert any("This step may not call that. It may call: outlet_list." in text for text in results)
    denied = sorted((one.agent, one.name) for one in bodies(reply, AccessDenied))
    names = ("ask_executor", "call_skill", "submit_plan")
    assert denied == [("executor", name) for name in names]
    assert [one.agent for one in bodies(reply, AgentStarted)] == ["planner", "executor", "planner"]
    (event,) = await events_of(kit, "skill.refused")
    assert (event.skill_id, event.status) == ("outlet_call", "skill_not_allowed")
    assert event.task_id == f"plan_{reply.turn_id}.0.1"
    assert await events_of(kit, "skill.called") == []


@pytest.mark.req("AS-1")
async def test_neither_manager_nor_planner_touches_a_skill_or_a_tool_of_an_executor(
    tmp_path: Path,
) -> None:
    log = CallLog()
    reach = calls(
        ("call_skill", {"skill": "outlet_list", "arguments": {}}),
        ("write_memory", {"key": "k", "data": 1}),
        ("exec_python", {"script": "print(1)"}),
    )
    async with in_memory(SkillService(log=log)) as client:
        kit = step_kit(tmp_path, client, offline(), [ACTIVE], lead=lambda _: reach)
        kit.planner.script.insert(0, reach)
        reply = await run_turn("Do it.", ALICE, kit)
    denied = bodies(reply, AccessDenied)
    assert {one.name for one in denied} == {"call_skill", "write_memory", "exec_python"}
    assert "planner" in {one.agent for one in denied} <= {"planner", "orchestrator"}
    manager = kit.team.agents["orchestrator"]
    assert isinstance(manager, LLMAgent) and not manager.tools
    assert [call.skill for call in log.calls()] == ["outlet_list"], "the executor's, and no other"


# What is too long to read


@pytest.mark.realtime
@pytest.mark.req("AS-6", "AS-18")
async def test_of_a_menu_of_a_megabyte_the_answer_is_exact_and_little_of_it_is_read(
    tmp_path: Path,
) -> None:
    need_boundary()
    async with in_memory(SkillService()) as client:
        kit = step_kit(tmp_path, client, offline(), [VEGETARIAN])
        before = slowness()
        began = time.process_time()
        reply = await run_turn("Which are vegetarian?", ALICE, kit)
        seconds = (time.process_time() - began) / max(before, slowness())
    plan = await plan_of(kit, reply)
    assert isinstance(MENU, dict) and plan.status == "complete"
    vegetarian = [row for row in MENU["items"] if row["vegetarian"]]
    items = [{"name": row["name"], "price_cents": row["price_cents"]} for row in vegetarian]
    assert await output_of(kit, plan) == {"items": items}
    read = 0
    for call in bodies(reply, ModelStarted):
        if call.agent == "executor":
            read += sum(len(message.text) for message in call.input)
    (called,) = await events_of(kit, "skill.called")
    assert (called.response_size_bytes or 0) > 1_000_000 and read < 60_000 and seconds < 3.0
    assert list((tmp_path / "tasks").iterdir()) == []


@pytest.mark.req("AS-6")
@pytest.mark.parametrize("is_large", [False, True])
async def test_the_gate_is_at_fifty_kilobytes_of_the_canonical_form(
    is_large: bool, tmp_path: Path
) -> None:
    size = LARGE - 1 + is_large
    details = Telling("").call(Scope("acme"), "outlet_details", {"outlet_id": OURS})
    executor = ScriptedModel(skill("outlet_details", outlet_id=OURS), gives_up(), "No.")
    service = Telling("x" * (size - text_size(canonical_text(details))))
    kit, _ = await carried_out(service, executor, DETAILS, tmp_path)
    (record,) = await events_of(kit, "skill.called")
    assert LARGE == 50_000 and record.response_size_bytes == size
    assert record.large_response_triggered is is_large
    assert ("file_id tmp_1." in texts(executor)[1]) is is_large
    assert len(await events_of(kit, "large_response.detected")) == is_large


async def test_a_large_result_that_no_disk_takes_is_unavailable_in_words(
    tmp_path: Path,
) -> None:
    executor = ScriptedModel(skill("outlet_menu", outlet_id=OURS), gives_up(), "No.")
    async with in_memory(SkillService()) as client:
        kit = step_kit(tmp_path, client, executor, [VEGETARIAN])
        # No file can be made where the folder should be.
        (tmp_path / "tasks").rmdir()
        (tmp_path / "tasks").write_text("")
        reply = await run_turn("Which are vegetarian?", ALICE, kit)
    assert texts(executor)[1] == UNAVAILABLE
    (failure,) = [body for body in bodies(reply, ToolEnded) if body.tool == "call_skill"]
    assert "bytes found no place" in str(failure.error)
    assert reply.status == "failed" and "could not get through" in reply.text
    assert "Not a directory" not in reply.text


# How a step ends


@pytest.mark.req("AS-4", "AS-18")
async def test_the_contract_is_the_steps_whatever_the_model_says_it_is(tmp_path: Path) -> None:
    wrong = calls(
        ("write_memory", {"key": "ids", "data": [1], "return_spec": {"shape": "array<integer>"}})
    )
    looks_up = skill("outlet_list", city="Rivermont")
    executor = ScriptedModel(looks_up, wrong, hands_in(outlets=[{"id": OURS}]), "Done.")
    kit, reply = await carried_out(SkillService(), executor, ACTIVE, tmp_path)
    plan = await plan_of(kit, reply)
    assert plan.status == "complete" and await output_of(kit, plan) == {"outlets": [{"id": OURS}]}
    (violation,) = await events_of(kit, "contract_violation")
    assert violation.payload == {
        "expected_shape": IDS,
        "actual_shape": "array<integer>",
        "step_index": 1,
    }


# A call whose end nobody knows (decisions 41)


NOTE = a_step("Note that the sign is broken", "outlet_note", FOUND)
RING = a_step("Say that we are late", "outlet_call", FOUND)


async def test_arguments_in_a_file_fill_in_what_a_call_does_not_say_itself(tmp_path: Path) -> None:
    """A file is the output of an earlier step as often as not: it holds more than the skill takes."""
    log = CallLog()
    held = json.dumps({"outlet_id": "ou-0002", "message": "We are late.", "seats": 45})
    act = {"skill": "outlet_call", "arguments": {"outlet_id": OURS}, "file_id": "tmp_1"}
    executor = ScriptedModel(
        calls(("write_temp", {"data": held})),
        calls(("call_skill", act)),
        hands_in(found=True),
        "Done.",
    )
    await carried_out(SkillService(log=log), executor, RING, tmp_path)
    (call,) = log.calls()
    assert call.arguments == {"outlet_id": OURS, "message": "We are late."}


@pytest.mark.parametrize(
    ("held", "says"), [(None, "There is no file 'tmp_1'"), ("no JSON", "is no JSON")]
)
async def test_a_file_that_cannot_be_read_calls_nothing_and_says_what_to_do(
    held: str | None, says: str, tmp_path: Path
) -> None:
    log = CallLog()
    act = {"skill": "outlet_call", "arguments": {}, "file_id": "tmp_1"}
    writes = [calls(("write_temp", {"data": held}))] if held else []
    executor = ScriptedModel(*writes, calls(("call_skill", act)), gives_up(), "No.")
    await carried_out(SkillService(log=log), executor, RING, tmp_path)
    assert log.calls() == []
    assert any(says in text for text in texts(executor))


@pytest.mark.parametrize("lost", ["loses", "lies"])
@pytest.mark.parametrize("name", ["outlet_call", "outlet_note"])
async def test_a_call_whose_answer_is_lost_or_unreadable_acts_once_however_often_it_is_made(
    name: str, lost: Fault, tmp_path: Path
) -> None:
    """The skill acts each time it runs. What honours keys is called again by the same key; what
    does not, not at all."""
    log, words = CallLog(), {"outlet_call": "message", "outlet_note": "text"}[name]
    act = skill(name, outlet_id=OURS, **{words: "we are late"})
    executor = ScriptedModel(act, act, act, hands_in(found=True), "Done.")
    service = SkillService(log=log, faults={name: [lost, lost]})
    step = NOTE if name == "outlet_note" else RING
    kit, reply = await carried_out(service, executor, step, tmp_path, seconds=3.0)
    plan = await plan_of(kit, reply)
    assert len(log.calls()) == 1
    _, finish = await events_of(kit, "subagent.finish")
    assert (
        plan.steps[0].status
        == finish.status
        == ("uncertain" if name == "outlet_call" else "complete")
    )


async def test_an_act_that_answers_with_an_error_may_have_been_done_and_is_not_called_again(
    tmp_path: Path,
) -> None:
    log = CallLog()
    act = skill("outlet_call", outlet_id=OURS, message="we are late")
    executor = ScriptedModel(act, act, hands_in(found=True), "Done.")
    faults: dict[str, list[Fault]] = {"outlet_call": ["fails", "none"]}
    kit, reply = await carried_out(SkillService(log=log, faults=faults), executor, RING, tmp_path)
    plan = await plan_of(kit, reply)
    assert plan.steps[0].status == "uncertain" and log.calls() == []


class Flaky(Described):
    """A skill whose first calls fail for a reason; it keeps the keys that it was called with."""

    def __init__(self, reason: SkillReason, times: int, **fields: Any):
        super().__init__(manifest("rows", **fields))
        self.reason: SkillReason = reason
        self.times = times
        self.keys: list[str] = []

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult | SkillFault:
        self.keys.append(idempotency_key)
        if len(self.keys) > self.times:
            return row_result(skill, arguments["task"])
        return SkillFault(skill=skill, reason=self.reason, detail="it did not work")


@pytest.mark.parametrize(
    ("honours_keys", "calls", "status"), [(False, 1, "uncertain"), (True, 2, "complete")]
)
async def test_an_act_whose_result_was_too_large_may_have_been_done_and_is_not_done_twice(
    honours_keys: bool, calls: int, status: str, tmp_path: Path
) -> None:
    """What honours keys is called again, under the same key."""
    act = skill("rows", task="order it")
    executor = ScriptedModel(act, act, hands_in(rows=["done"]), "Done.")
    skills = Flaky("oversized", 1, honours_keys=honours_keys)
    kit = step_kit(tmp_path, skills, executor, draft("order it"))
    plan = await plan_of(kit, await run_turn("Do it.", ALICE, kit))
    assert (len(skills.keys), len(set(skills.keys))) == (calls, 1)
    assert plan.steps[0].status == status


@pytest.mark.req("AS-4")
async def test_a_lookup_whose_connection_broke_is_made_once_more_under_the_same_key(
    tmp_path: Path,
) -> None:
    skills = Flaky("gone", 1, idempotent=True)
    executor = ScriptedModel(skill("rows", task="tea"), hands_in(rows=["tea"]), "Done.")
    kit = step_kit(tmp_path, skills, executor, draft("find tea"))
    plan = await plan_of(kit, await run_turn("Do it.", ALICE, kit))
    assert plan.status == "complete"
    assert (len(skills.keys), len(set(skills.keys))) == (2, 1)
    first, second = await events_of(kit, "skill.called")
    assert (first.status, first.payload) == ("gone", None)
    assert (second.status, second.payload) == ("ok", {"attempt": 2})


@pytest.mark.parametrize(
    ("reason", "fields", "calls"),
    [
        ("gone", {"idempotent": True}, 2),
        ("gone", {"idempotent": False}, 1),
        ("gone", {"idempotent": False, "honours_keys": True}, 1),
        ("bad_arguments", {"idempotent": True}, 1),
        ("unauthorized", {"idempotent": True}, 1),
        ("failed", {"idempotent": True}, 1),
        ("timeout", {"idempotent": True}, 1),
    ],
)
async def test_what_is_made_once_more_is_a_lookup_that_was_not_refused_and_that_once(
    reason: SkillReason, fields: dict[str, bool], calls: int, tmp_path: Path
) -> None:
    skills = Flaky(reason, 9, **fields)
    executor = ScriptedModel(skill("rows", task="tea"), gives_up(), "No.")
    kit = step_kit(tmp_path, skills, executor, draft("find tea"))
    await run_turn("Do it.", ALICE, kit)
    assert len(skills.keys) == calls


async def test_arguments_that_break_the_manifest_are_not_sent(tmp_path: Path) -> None:
    """A service may refuse them too, or may not."""
    schema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    skills = Rows(input_schema=schema)
    wrong = skill("rows", task=7)
    right = skill("rows", task="tea")
    executor = ScriptedModel(wrong, right, hands_in(rows=["tea"]), "Done.")
    kit = step_kit(tmp_path, skills, executor, draft("find tea"))
    plan = await plan_of(kit, await run_turn("Do it.", ALICE, kit))
    assert skills.tasks == ["tea"] and plan.status == "complete"
    assert texts(executor)[1].startswith("This call was not made: ")


# What is written down


def fields(event: AgentEvent) -> set[str]:
    """What an event says beside its lineage and its time."""
    lineage = {
        "event_id",
        "tenant_id",
        "user_id",
        "session_id",
        "plan_id",
        "task_id",
        "agent",
        "event_type",
        "ts",
        "seq",
    }
    own = event.model_dump(exclude={*lineage, "payload"}, exclude_none=True, exclude_defaults=True)
    return {*own, *(event.payload or {})}


@pytest.mark.realtime
@pytest.mark.req("AS-20", "AS-18")
async def test_each_event_of_a_task_has_its_name_and_fields_and_its_whole_lineage(
    tmp_path: Path,
) -> None:
    need_boundary()
    executor = ScriptedModel(hands_in(outlets=3), gives_up(), "No.", *[stands_in] * 4)
    async with in_memory(SkillService()) as client:
        kit = step_kit(tmp_path, client, executor, [ACTIVE], [VEGETARIAN])
        reply = await run_turn("Which are vegetarian?", ALICE, kit)
    events = await events_of(kit)
    layers = {
        "user_message.received": set(),
        "subagent_a.spawned": set(),
        "plan.received": {"steps"},
        "plan.persisted": {"status"},
        "step_1.started": {"skill"},
        "step_1.failed": {"reason", "skill_id"},
        "step_1.complete": {"skill_id"},
        "replan.triggered": {"attempt", "failed_step"},
        "plan.revised": {"revised_steps"},
        "skill.called": {"skill_id", "input_size_bytes", "response_size_bytes", "duration_ms"},
        "large_response.detected": {"file_id", "size_bytes", "threshold_bytes", "strategy"},
        "python_script.executed": {
            "script_hash",
            "input_rows",
            "output_rows",
            "duration_ms",
            "exit_code",
        },
        "memory.written": {"key", "size_bytes", "validated", "lock_wait_ms"},
        "contract_violation": {"expected_shape", "actual_shape", "step_index"},
        "subagent.insufficient": {"reason", "suggestion"},
        "subagent.finish": {"status", "duration_ms", "memory_key"},
    }
    beside = {
        "skill.called": {"large_response_triggered", "status"},
        "subagent_a.spawned": {"mode"},
        "replan.triggered": {"trigger"},
        "python_script.executed": {"status"},
    }
    for kind, names in layers.items():
        of_kind = [event for event in events if event.event_type == kind]
        assert of_kind, f"no {kind}"
        for event in of_kind:
            assert names <= fields(event) <= names | beside.get(kind, set()), event
            lineage = (event.tenant_id, event.user_id, event.session_id, event.plan_id)
            assert lineage == ("acme", "alice", ALICE.id, f"plan_{reply.turn_id}")
            assert event.task_id or kind.startswith(("plan", "replan", "user"))
