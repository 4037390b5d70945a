"""Steps that wait for nothing run at the same time; acts keep the order that was planned."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.runtime.turn import run_turn
from tests.kits import ALICE
from tests.plan_kits import (
    WHO,
    Described,
    draft,
    events_of,
    gives_rows,
    manifest,
    plan_kit,
    plan_of,
)

LOOKUP = Described(manifest("rows", idempotent=True))
ACT = Described(manifest("rows"), manifest("looks", idempotent=True))


@dataclass
class Slow:
    """Executors that take two seconds a step, one of which fails on its first try; and what they saw."""

    broken: str = ""
    at_work: set[str] = field(default_factory=set[str])
    most_at_work: int = 0
    ended: list[str] = field(default_factory=list[str])

    async def __call__(self, scope: StepScope, services: PlanServices) -> str | None:
        task = scope.step.task
        self.at_work.add(task)
        self.most_at_work = max(self.most_at_work, len(self.at_work))
        try:
            await asyncio.sleep(2)
        finally:
            self.at_work.remove(task)
        self.ended.append(task)
        if task == self.broken and self.ended.count(task) == 1:
            raise OSError("the service is gone")
        return await gives_rows(scope, services)


def joined(*sources: int) -> Mapping[str, Any]:
    """A step that works on the outputs of others."""
    (step,) = draft("join them", first=max(sources) + 1)
    return {**step, "input_from_step": None, "input_from_steps": list(sources)}


@pytest.mark.req("AS-2")
async def test_steps_that_wait_for_nothing_are_at_work_at_once_and_a_join_gets_all_of_their_outputs(
    tmp_path: Path,
) -> None:
    queries: list[Any] = []
    slow = Slow()

    async def doing(scope: StepScope, services: PlanServices) -> str | None:
        queries.append((scope.step.task, scope.step.inputs))
        return await slow(scope, services)

    steps = [*draft("one", "two", "three", "four"), joined(1, 2, 3, 4)]
    kit = plan_kit(tmp_path, steps, doing=doing, skills=LOOKUP)
    reply = await run_turn("Do it.", ALICE, kit)
    assert slow.most_at_work == 4
    plan = await plan_of(kit, reply)
    assert [step.status for step in plan.steps] == ["complete"] * 5
    assert queries[-1] == ("join them", (1, 2, 3, 4))
    assert reply.text.endswith("**5. join them:** 1 row: join them.\n\nI did this in 5 steps.")


async def test_the_executor_of_a_join_reads_each_output_by_the_name_of_its_step(
    tmp_path: Path,
) -> None:
    steps = [*draft("one", "two"), joined(1, 2)]
    kit = plan_kit(tmp_path, steps, doing=gives_rows, skills=LOOKUP)
    asked: list[str] = []
    executor = kit.team.agents["executor"]

    @dataclass(frozen=True)
    class Listening:
        card = executor.card
        time_budget = executor.time_budget

        async def run(self, call: Any, ctx: Any) -> Any:
            asked.append(call.query)
            return await executor.run(call, ctx)

    kit.team = kit.team.with_agents({"executor": Listening()})
    await run_turn("Do it.", ALICE, kit)
    brief = json.loads(asked[-1].partition("\n\n")[2])
    assert brief["input"] == {"step_1": {"rows": ["one"]}, "step_2": {"rows": ["two"]}}


async def test_no_more_steps_are_at_work_than_the_deck_says(tmp_path: Path) -> None:
    slow = Slow()

    kit = plan_kit(tmp_path, draft(*"abcdef"), doing=slow, skills=LOOKUP, steps_at_once=2)
    reply = await run_turn("Do it.", ALICE, kit)
    assert slow.most_at_work == 2
    assert (await plan_of(kit, reply)).status == "complete"


async def test_a_step_that_may_act_runs_alone_and_in_its_planned_place(tmp_path: Path) -> None:
    slow = Slow()

    looks = draft("look", "look again", skill="looks")
    acts = draft("act", first=3)
    after = draft("look after", first=4, skill="looks")
    kit = plan_kit(tmp_path, [*looks, *acts, *after], doing=slow, skills=ACT)
    await run_turn("Do it.", ALICE, kit)
    assert slow.most_at_work == 2
    assert slow.ended[2:] == ["act", "look after"]


@pytest.mark.req("AS-5")
async def test_what_ends_beside_a_failed_step_stays_and_keeps_its_number(
    tmp_path: Path,
) -> None:
    slow = Slow(broken="one")

    kit = plan_kit(
        tmp_path,
        draft("one", "two", "three"),
        draft("one", first=1),
        doing=slow,
        skills=LOOKUP,
    )
    reply = await run_turn("Do it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert plan.status == "complete"
    assert [(step.step_index, step.task) for step in plan.steps] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
    ]
    assert [entry.failed_step for entry in plan.replan_history] == [1]
    assert sorted(slow.ended) == ["one", "one", "three", "two"]
    for task in ("one", "two", "three"):
        assert task in reply.text
    assert [outcome.kind for outcome in reply.outcomes] == ["answer"] * 3


@pytest.mark.req("AS-3")
async def test_of_steps_that_fail_at_the_same_time_the_history_keeps_each(tmp_path: Path) -> None:
    async def breaks(scope: StepScope, services: PlanServices) -> str | None:
        if scope.step.task == "two":
            return await gives_rows(scope, services)
        raise OSError("the service is gone")

    drafts = draft("one", "two", "three"), draft("two again", first=4)
    kit = plan_kit(tmp_path, *drafts, doing=breaks, skills=LOOKUP)
    await run_turn("Do it.", ALICE, kit)
    (plan,) = await kit.services.documents.plans.of(WHO)
    first = plan.replan_history[0]
    assert [(step.step_index, step.task) for step in first.failed_steps] == [
        (1, "one"),
        (3, "three"),
    ]
    assert all(step.failure_reason and step.finished_at for step in first.failed_steps)


@pytest.mark.req("AS-3")
async def test_of_steps_that_fail_at_the_same_time_each_says_why_also_where_the_plan_ends_of_it(
    tmp_path: Path,
) -> None:
    async def breaks(scope: StepScope, services: PlanServices) -> str | None:
        scope.insufficient = (f"{scope.step.task} is too much", "")
        return None

    kit = plan_kit(tmp_path, *[draft("one", "two")] * 4, doing=breaks, skills=LOOKUP)
    await run_turn("Do it.", ALICE, kit)
    (plan,) = await kit.services.documents.plans.of(WHO)
    assert (plan.status, plan.failure_kind) == ("failed", "exhausted")
    reasons = [step.failure_reason for step in plan.steps]
    assert reasons == ["one is too much", "two is too much"]
    for number in (1, 2):
        assert len(await events_of(kit, f"step_{number}.failed")) == 4, "once for each try"
