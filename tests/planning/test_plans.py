"""A plan is stored at every transition, replanned around what fails, and goes on after its last complete step."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.core.bodies.call import ToolStarted
from kit.core.card import Policy
from kit.core.documents.document import Plan
from kit.core.errors import VersionConflict
from kit.models.scripted import Line
from kit.patterns.plan_execute import resumed
from kit.planning.draft import Draft, DraftStep
from kit.planning.output_words import Wording, words_of
from kit.planning.plan import new_plan, with_draft, with_step
from kit.planning.record import create
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.runtime.turn import run_turn
from kit.tools.skill import FIND, SkillFault
from kit.tools.task_memory import Task
from tests.kits import ALICE
from tests.plan_kits import (
    SHAPE,
    WHO,
    Described,
    Doing,
    Waits,
    draft,
    events_of,
    gives_rows,
    manifest,
    plan_kit,
    plan_of,
    read_plan,
)

ROWS = {"rows": manifest("rows").model_dump(mode="json")}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"found": True, "items": [{"category": "drinks"}, {"category": "mains"}]},
            "Found.\n2 categories: drinks, mains.",
        ),
        (
            {"total": 338, "rows": [{"name": "Clover", "orders": 12829, "revenue_cents": 9358076}]},
            "1 of 338 rows:\n- Clover: 12,829 orders, revenue $93,580.76",
        ),
        (
            {"outlets": [{"id": "a-1", "city": "Oakfield"}, {"id": "a-2", "city": "Oakfield"}]},
            "2 outlets:\n- a-1: city Oakfield\n- a-2: city Oakfield",
        ),
        (
            {
                "items": [
                    {"name": "Tart", "opened": 2017, "tags": ["hot", "new"], "of": {"id": "m"}}
                ]
            },
            "1 item:\n- Tart: opened 2017, tags hot, new, of m",
        ),
        ([1, 2], "2 rows: 1, 2."),
    ],
)
def test_an_output_is_told_in_plain_words(value: Any, text: str) -> None:
    assert words_of(value, Wording()) == text


def test_of_a_long_output_the_beginning_is_told_and_how_much_more_there_is() -> None:
    rows = [
        {"id": f"row-{number}", "size": number, "words": f"{number}" * 50}
        for number in range(5_000)
    ]
    assert words_of({"rows": rows}, Wording()).splitlines()[-1] == "- and 4,970 more"
    assert words_of({"rows": [row["size"] for row in rows]}, Wording()).endswith(
        ", 299, and 4,700 more."
    )
    several = words_of({name: rows for name in ("first", "second", "third")}, Wording())
    assert len(several) < 6_100 and several.splitlines()[-1].endswith(" more")


def once(task: str, otherwise: Doing) -> tuple[Doing, list[str]]:
    """An executor that gives rows for every step but the first run of one task; and the tasks in the order they ran."""
    ran: list[str] = []

    async def doing(scope: StepScope, services: PlanServices) -> str | None:
        ran.append(scope.step.task)
        work = otherwise if scope.step.task == task and ran.count(task) == 1 else gives_rows
        return await work(scope, services)

    return doing, ran


async def raises(scope: StepScope, services: PlanServices) -> str | None:
    raise OSError("the service is gone")


async def hangs(scope: StepScope, services: PlanServices) -> str | None:
    await asyncio.sleep(3600)


async def gives_up(scope: StepScope, services: PlanServices) -> str | None:
    scope.insufficient = ("three passes are needed", "split it")
    await scope.journal.write(
        "subagent.insufficient", reason="three passes are needed", suggestion="split it"
    )


async def breaks_the_contract(scope: StepScope, services: PlanServices) -> str | None:
    report = await services.memory.write(
        scope.task, "rows", {"rows": 3}, scope.step.return_spec["shape"]
    )
    assert report["status"] == "contract_violation"


async def says_it_is_done(scope: StepScope, services: PlanServices) -> str | None:
    return "All done, trust me."


@pytest.mark.req("AS-5", "AS-23", "AS-18")
@pytest.mark.parametrize(
    ("fault", "trigger", "words"),
    [
        (raises, "failed", "it is not available right now"),
        (hangs, "failed", "it took too long to answer"),
        (gives_up, "insufficient", "three passes"),
        (breaks_the_contract, "contract_violation", "rows"),
        (says_it_is_done, "failed", "without an output"),
    ],
)
async def test_what_fails_is_planned_anew_and_what_is_done_stays(
    fault: Doing, trigger: str, words: str, tmp_path: Path
) -> None:
    doing, ran = once("two", fault)
    kit = plan_kit(
        tmp_path,
        draft("one", "two", "three"),
        draft("two again", "three", first=2),
        doing=doing,
    )
    reply = await run_turn("Do it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert plan.status == "complete" and ran == ["one", "two", "two again", "three"]
    assert [step.task for step in plan.steps] == ["one", "two again", "three"]
    (entry,) = plan.replan_history
    assert (entry.attempt, entry.trigger, entry.failed_step) == (1, trigger, 2)
    assert words in entry.reason
    (failed,) = entry.failed_steps
    assert (failed.step_index, failed.task, failed.status) == (2, "two", "failed")
    assert failed.return_spec["shape"] == SHAPE and failed.failure_kind == trigger
    assert (failed.started_at or 0) > plan.created_at
    assert (failed.finished_at or 0) >= (failed.started_at or 0)
    asked = str(kit.planner.seen[3][-1].content)
    told = ('"completed_steps"', str(plan.steps[0].memory_key), words)
    assert all(part in asked for part in told)
    assert ('"suggestion": "split it"' in asked) is (fault is gives_up)
    assert "two again" in reply.text and "one" in reply.text
    assert reply.text.endswith(
        "\nI did this in 3 steps. On the way step 2 failed, and the rest was planned anew."
    )
    assert [event.payload for event in await events_of(kit, "plan.revised")] == [
        {"revised_steps": [2, 3]}
    ]


@pytest.mark.req("AS-5", "AS-18")
async def test_after_three_replans_the_plan_fails_and_says_so_with_what_is_done(
    tmp_path: Path,
) -> None:
    async def doing(scope: StepScope, services: PlanServices) -> str | None:
        return await (gives_rows if scope.step.task == "one" else raises)(scope, services)

    drafts = [
        draft("one", "two"),
        *(draft(f"two, try {n}", first=2) for n in range(2, 5)),
        draft("never written", first=2),
    ]
    kit = plan_kit(tmp_path, *drafts, doing=doing)
    reply = await run_turn("Do it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (plan.status, plan.replan_count) == ("failed", 3)
    assert plan.failure == {
        "reason": "max replan attempts reached",
        "completed_steps": [1],
        "last_failure": {"step": 2, "reason": plan.steps[1].failure_reason},
    }
    assert "wasn't able to finish" in reply.text and "OSError" not in reply.text
    assert "Done so far:\n\n**1. one:** 1 row: one." in reply.text
    assert [outcome.kind for outcome in reply.outcomes] == ["failure"]


@pytest.mark.req("AS-2")
async def test_a_task_that_no_plan_does_ends_in_plain_words(tmp_path: Path) -> None:
    kit = plan_kit(tmp_path, "there is no skill that books flights: E_NO_SKILL")
    reply = await run_turn("Book a flight to Rome.", ALICE, kit)
    assert "make a plan" in reply.text and "E_NO_SKILL" not in reply.text
    plan = await plan_of(kit, reply)
    assert plan.failure == {
        "reason": "infeasible: there is no skill that books flights: E_NO_SKILL",
        "completed_steps": [],
        "last_failure": None,
    }


CHATTER = "First I would list the outlets, then rank them."


@pytest.mark.req("AS-2")
@pytest.mark.parametrize("words", [CHATTER, 'submit_plan({"steps": []})'])
async def test_a_planner_that_answers_in_words_is_asked_once_more_for_its_plan(
    words: str, tmp_path: Path
) -> None:
    kit = plan_kit(tmp_path, draft("find tea"))
    kit.planner.script.insert(0, Line(words))
    reply = await run_turn("Find tea.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (plan.status, [step.task for step in plan.steps]) == ("complete", ["find tea"])
    assert CHATTER not in reply.text
    first, second = [str(messages[-1].content) for messages in kit.planner.seen[:2]]
    assert "calling submit_plan" in second and second.endswith(first), "it says what was missing"


async def test_a_planner_that_only_talks_is_asked_twice_and_no_third_time(tmp_path: Path) -> None:
    kit = plan_kit(tmp_path, draft("find tea"))
    kit.planner.script[:] = [Line(CHATTER)] * 3
    reply = await run_turn("Find tea.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (reply.status, plan.status, plan.failure_kind) == ("failed", "failed", "no_plan")
    assert len(kit.planner.seen) == 2 and CHATTER not in reply.text
    assert plan.usage["tokens_in"] == reply.usage.input_tokens, "both count as the plan's"


@pytest.mark.req("AS-31")
async def test_the_reminder_of_a_planner_is_made_within_the_budget_of_its_plan(
    tmp_path: Path,
) -> None:
    async def planned(name: str, budget: Policy) -> tuple[Plan, int]:
        kit = plan_kit(tmp_path, draft("find tea"), name=name, budget=budget)
        kit.planner.script[:] = [Line(CHATTER)] * 2
        plan = await plan_of(kit, await run_turn("Find tea.", ALICE, kit))
        return plan, len(kit.planner.seen)

    both, requests = await planned("both.db", Policy())
    assert requests == 2
    enough_for_one = round(both.usage["tokens_in"] * 0.75)
    plan, requests = await planned("less.db", Policy(tokens_in=enough_for_one))
    assert (plan.failure_kind, requests) == ("budget", 1)


async def test_a_clause_that_the_planner_dropped_is_owned_up_to(tmp_path: Path) -> None:
    dropped = "compare their menus with those of Oakfield"
    ranks = "Rank the active outlets in Rivermont"
    kit = plan_kit(tmp_path, draft(ranks))
    reply = await run_turn(f"{ranks}, and {dropped}", ALICE, kit)
    assert reply.routing is not None and reply.routing.left_out.parts == (dropped,)
    assert f"I left out “{dropped}”" in reply.text
    whole = plan_kit(tmp_path, draft(ranks, dropped), name="whole.db")
    reply = await run_turn(f"{ranks}, and {dropped}", ALICE, whole)
    assert reply.routing is not None and reply.routing.left_out.parts == ()
    assert "left out" not in reply.text


async def test_another_way_is_spoken_of_only_where_one_was_tried(tmp_path: Path) -> None:
    once_only = plan_kit(tmp_path, draft("find them"), "there is no other way", doing=raises)
    reply = await run_turn("Do it.", ALICE, once_only)
    assert reply.text == (
        "I wasn't able to finish this: I could not get through “find them”. No step of it was finished."
    )
    drafts = [draft("find them"), draft("find them again"), "there is no third way"]
    twice = plan_kit(tmp_path, *drafts, doing=raises, name="twice.db")
    reply = await run_turn("Do it.", ALICE, twice)
    assert "could not get through “find them again”, though I tried another way." in reply.text


class Unreachable(Described):
    """A service that does not answer."""

    async def find(self, query: str) -> Any:
        return SkillFault(skill=FIND, reason="gone", detail="connection refused")

    async def load(self, name: str) -> Any:
        return SkillFault(skill=name, reason="gone", detail="connection refused")


async def test_a_service_that_is_gone_is_said_to_be_gone_and_no_lack_of_a_plan(
    tmp_path: Path,
) -> None:
    kit = plan_kit(tmp_path, "there is no skill for this", skills=Unreachable())
    reply = await run_turn("Do it.", ALICE, kit)
    assert reply.text == (
        "I could not reach the service that I need for this. Please try again in a moment."
    )
    assert reply.status == "failed" and reply.plan is not None
    assert reply.plan.failure is not None
    assert reply.plan.failure["reason"] == "unreachable: gone: connection refused"


@pytest.mark.realtime
@pytest.mark.req("AS-3")
async def test_a_plan_is_free_once_its_holder_has_been_silent_and_what_was_written_counts(
    tmp_path: Path,
) -> None:
    doing, ran = once("", gives_rows)
    kit = plan_kit(tmp_path, doing=doing, lease=0.2)
    plans = kit.services.documents.plans
    steps = Draft(steps=tuple(DraftStep.model_validate(step) for step in draft("one", "two")))
    plan = with_draft(
        new_plan("plan_x", WHO, ALICE.id, "Do it.", kit.services.clock()), steps, ROWS
    )
    dead = await create(plans, with_step(plan, 1, status="executing"), "dead")
    task = Task(WHO, ALICE.id, plan.steps[0].task_id or "", "executor", plan.plan_id, 1)
    await kit.services.memory.write(task, "rows", {"rows": ["from before"]}, SHAPE)
    began = asyncio.get_running_loop().time()
    reply = await run_turn("Do it.", ALICE, kit, resumed("plan_x"))
    assert ran == ["two"] and "from before" in reply.text
    assert (await read_plan(kit, "plan_x")).fence == dead.plan.fence + 1
    assert asyncio.get_running_loop().time() - began >= 0.2, "it was taken from a living one"
    with pytest.raises(VersionConflict):
        await dead.move(lambda plan: plan)


async def test_an_output_of_another_shape_does_not_end_the_step_of_a_plan_that_is_taken_up(
    tmp_path: Path,
) -> None:
    doing, ran = once("", gives_rows)
    kit = plan_kit(tmp_path, doing=doing)
    steps = Draft(steps=tuple(DraftStep.model_validate(step) for step in draft("one", "two")))
    plan = with_draft(new_plan("plan_x", WHO, ALICE.id, "Do it.", 0.0), steps, ROWS)
    await kit.services.documents.plans.create(with_step(plan, 1, status="executing"))
    task = Task(WHO, ALICE.id, plan.steps[0].task_id or "", "executor", plan.plan_id, 1)
    await kit.services.memory.write(task, "rows", {"rows": [1]}, {"rows": "array<integer>"})
    reply = await run_turn("Do it.", ALICE, kit, resumed("plan_x"))
    assert ran == ["one", "two"] and "1 row: one." in reply.text


@pytest.mark.req("AS-31")
@pytest.mark.parametrize(
    ("resource", "spent", "status"),
    [
        ("tokens_in", 100_000, "failed"),
        ("dollars", 0.4, "complete"),
        ("dollars", 0.6, "failed"),
    ],
)
async def test_what_a_plan_took_before_it_was_taken_up_counts_against_its_budget(
    tmp_path: Path, resource: str, spent: float, status: str
) -> None:
    budget = Policy(tokens_in=50_000, cost=0.5)
    kit = plan_kit(tmp_path, budget=budget, lease=0.2)
    plans = kit.services.documents.plans
    steps = Draft(steps=(DraftStep.model_validate(draft("one")[0]),))
    plan = with_draft(new_plan("plan_x", WHO, ALICE.id, "Do it.", 0.0), steps, ROWS)
    await create(plans, plan.replace(usage={resource: spent}), "dead")
    await run_turn("Do it.", ALICE, kit, resumed("plan_x"))
    plan = await read_plan(kit, "plan_x")
    assert plan.status == status and plan.usage[resource] >= spent
    assert (plan.failure or {}).get("reason") == (None if status == "complete" else "budget")


@pytest.mark.req("AS-31")
@pytest.mark.parametrize(
    "budget", [Policy(tokens_in=700), Policy(tokens_out=90), Policy(time_budget_ms=18_000)]
)
async def test_a_plan_that_is_stopped_and_taken_up_again_and_again_ends_with_its_budget(
    budget: Policy, tmp_path: Path
) -> None:
    """Each turn is stopped five seconds into the call of its step. The first reads about 390 tokens and writes 60,
    each later one 110 and 11."""
    clock = asyncio.get_running_loop().time
    kit = plan_kit(tmp_path, draft("one"), doing=None, skills=Waits(), budget=budget, clock=clock)
    statuses: list[str] = []
    turn = run_turn("Do it.", ALICE, kit, turn_id="first")
    while len(statuses) < 5:
        async for event in turn:
            if isinstance(event.body, ToolStarted) and event.body.tool == "call_skill":
                await asyncio.sleep(5)
                turn.cancel()
        reply = await turn
        statuses.append(reply.status)
        if reply.status != "cancelled":
            break
        turn = run_turn("Do it.", ALICE, kit, resumed("plan_first"))
    plan = await read_plan(kit, "plan_first")
    assert (plan.status, plan.failure_kind) == ("failed", "budget")
    assert statuses == ["cancelled", "cancelled", "cancelled", "failed"]
