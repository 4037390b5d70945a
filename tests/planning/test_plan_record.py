"""Who works on a plan: one turn at a time, which stops when it no longer holds it, whatever its store is like."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.core.bodies.turn import PlanTaken
from kit.core.card import Policy
from kit.core.documents.document import AgentEvent, Plan
from kit.core.errors import ResumeError, StoreBusy
from kit.core.outcome import Failure
from kit.models.scripted import Line
from kit.patterns.plan_execute import resumed
from kit.planning.draft import Draft, DraftStep
from kit.planning.plan import new_plan, with_draft, with_step
from kit.planning.record import take
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.planning.skill_call import START
from kit.runtime.handle import Reply, Turn
from kit.runtime.turn import run_turn
from kit.stores.documents.protocol import EventStore, PlanStore
from kit.tools.skill import Fence, SkillFault, SkillResult
from tests.kits import ALICE
from tests.plan_kits import (
    WHO,
    Described,
    PlanKit,
    Rows,
    draft,
    events_of,
    gives_rows,
    manifest,
    opened_plans,
    plan_kit,
    plan_of,
    read_plan,
    row_result,
)


@dataclass
class SlowPlans:
    """Plans in another place: each answer takes a while after the write, and some writes find the store busy."""

    plans: PlanStore
    seconds: float = 0.0
    busy: Collection[int] = ()
    """Numbers of the writes that it refuses."""
    writes: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plans, name)

    async def replace(self, plan: Plan) -> Plan:
        self.writes += 1
        if self.writes in self.busy:
            raise StoreBusy("somebody else is writing")
        newer = await self.plans.replace(plan)
        await asyncio.sleep(self.seconds)
        return newer


async def test_a_plan_at_work_is_taken_by_nobody_even_where_a_beat_finds_the_store_busy(
    tmp_path: Path,
) -> None:
    """Its first beat is the fourth write, after those of planning, the draft and the step."""

    async def works(scope: StepScope, services: PlanServices) -> str | None:
        (plan,) = await services.documents.plans.of(WHO)
        with pytest.raises(ResumeError):
            await take(services.documents.plans, plan.plan_id, WHO, "other", 0.6)
        return await gives_rows(scope, services)

    kit = plan_kit(
        tmp_path,
        draft("one"),
        doing=works,
        lease=0.6,
        plans=partial(SlowPlans, busy=(4,)),
    )
    reply = await run_turn("Do it.", ALICE, kit)
    assert (await plan_of(kit, reply)).status == "complete"


@pytest.mark.req("AS-3")
@pytest.mark.parametrize("given_back", [False, True])
async def test_whoever_lost_the_plan_is_stopped_in_the_middle_of_its_step(
    given_back: bool, tmp_path: Path
) -> None:
    acts: list[str] = []

    async def acts_on(scope: StepScope, services: PlanServices) -> str | None:
        for _ in range(100):
            acts.append(scope.step.task)
            await asyncio.sleep(0.1)
        return await gives_rows(scope, services)

    kit = plan_kit(tmp_path, draft("one"), doing=acts_on, lease=0.6)
    turn = run_turn("Do it.", ALICE, kit)
    await asyncio.sleep(0.5)
    plans = kit.services.documents.plans
    (plan,) = await plans.of(WHO)
    other = await plans.replace(plan.replace(holder=None if given_back else "other"))
    reply, before = await turn, len(acts)
    assert reply.status == "interrupted" and before < 10, f"it went on for {before} acts"
    assert await plans.read(WHO, plan.plan_id) == other, "it wrote what was no longer its own"


@pytest.mark.req("AS-3", "AS-14")
async def test_an_act_that_another_turn_has_begun_in_the_meantime_is_not_made_twice(
    tmp_path: Path,
) -> None:
    """This turn was asleep between its look at the log and its own word in it; the plan was taken."""

    class Late:
        """Events of which a word of the other turn comes before each word of this one."""

        def __init__(self, events: EventStore):
            self.events = events

        def __getattr__(self, name: str) -> Any:
            return getattr(self.events, name)

        async def append(self, event: AgentEvent) -> AgentEvent:
            if event.event_type == START:
                await self.events.append(event.replace(payload={"fence": 2}))
            return await self.events.append(event)

    calls: list[str] = []

    class Acts(Described):
        async def call(
            self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
        ) -> SkillResult | SkillFault:
            calls.append(skill)
            return row_result(skill, "done")

    kit = plan_kit(tmp_path, draft("one"), doing=None, skills=Acts(manifest("rows")), events=Late)
    reply = await run_turn("Do it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert calls == [] and plan.failure_kind == "uncertain"


@pytest.mark.req("AS-3", "AS-31")
@pytest.mark.parametrize(
    ("ms", "step", "words"),
    [
        (500, "pending", "No step of it was finished."),
        (1_000, "failed", "No step of it was finished."),
        (1_400, "complete", "Done so far:\n\n**1. one:** 1 row: one."),
    ],
)
async def test_a_plan_whose_time_ends_within_a_write_fails_of_its_budget_and_is_not_left_half_written(
    ms: int, step: str, words: str, tmp_path: Path
) -> None:
    """The writes are those of planning, the draft, the step, and that it is complete; each of them stands."""
    kit = plan_kit(
        tmp_path,
        draft("one"),
        budget=Policy(time_budget_ms=ms),
        plans=partial(SlowPlans, seconds=0.4),
    )
    reply = await run_turn("Do it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (plan.status, plan.holder) == ("failed", None) and plan.failure["reason"] == "budget"
    assert [one.status for one in plan.steps] == [step] and plan.failure["completed_steps"] == [
        1
    ] * (step == "complete")
    assert "within what it may take" in reply.text and words in reply.text


class Hanging(Described):
    """Skills that are called and never answer."""

    @asynccontextmanager
    async def step(self, allowed: Collection[str], fence: Fence) -> AsyncGenerator["Hanging"]:
        yield self

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult | SkillFault:
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits that long")


@pytest.mark.parametrize(("repeatable", "reason"), [(False, "uncertain"), (True, "budget")])
async def test_a_plan_whose_time_ends_within_an_act_says_that_its_end_is_unknown(
    repeatable: bool, reason: str, tmp_path: Path
) -> None:
    skills, budget = Hanging(manifest("rows", idempotent=repeatable)), Policy(time_budget_ms=2_000)
    kit = plan_kit(tmp_path, draft("order it"), doing=None, skills=skills, budget=budget)
    reply = await run_turn("Order it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert plan.failure["reason"] == reason
    assert failure_of(reply) == ("executor", reason)
    assert [step.status for step in plan.steps] == ["failed" if repeatable else "uncertain"]


@pytest.mark.req("AS-3")
async def test_a_turn_that_took_a_plan_up_and_was_stopped_is_resumed_by_its_own_id(
    tmp_path: Path,
) -> None:
    async with opened_plans(tmp_path, Rows(idempotent=True)) as kit:
        first = await stopped(kit.ask("the best three", kit.session("s")))
        second = await stopped(kit.resume(first.turn_id))
        third = await kit.resume(second.turn_id)
        plans = await kit.store.open_documents().plans.of(kit.session("s").principal)
    assert [plan.plan_id for plan in plans] == [f"plan_{first.turn_id}"], (
        "it was planned a second time"
    )
    assert plans[0].status == "complete" and third.status == "ok"


def failure_of(reply: Reply) -> tuple[str, str]:
    """Who failed in a turn, and how."""
    (outcome,) = reply.outcomes
    assert isinstance(outcome, Failure)
    return outcome.agent, outcome.reason


@pytest.mark.parametrize(
    ("line", "reason"), [(Line(delay=600.0), "timeout"), (Line(error=OSError("gone")), "exception")]
)
async def test_a_planner_that_fails_does_so_as_any_agent_and_nobody_says_that_there_is_no_plan(
    line: Line, reason: str, tmp_path: Path
) -> None:
    kit, now = plan_kit(tmp_path, draft("one")), asyncio.get_running_loop().time
    kit.planner.script.insert(0, line)
    began = now()
    reply = await run_turn("Do it.", ALICE, kit)
    assert reply.status == "failed" and failure_of(reply) == ("planner", reason)
    assert now() - began == pytest.approx(
        kit.team.agents["planner"].time_budget if reason == "timeout" else 0, abs=0.5
    )
    assert reply.text == "I wasn't able to look into that right now. Please try again in a moment."


async def stopped(turn: Turn) -> Reply:
    """Stops a turn as soon as it works on its plan."""
    async for event in turn:
        if isinstance(event.body, PlanTaken):
            turn.cancel()
    return await turn


async def test_no_key_stands_in_a_plan_or_its_events(tmp_path: Path) -> None:
    key = "a-key-that-nobody-may-read"

    async def gives_up(scope: StepScope, services: PlanServices) -> str | None:
        if scope.step.task == "one":
            await scope.journal.write(
                "subagent.insufficient", reason=f"it said {key}", suggestion=key
            )
            scope.insufficient = f"it said {key}", key
            return None
        raise OSError(f"401 for {key}")

    drafts = (draft("one"), draft("two"), f"the service refuses {key}")
    kit = plan_kit(tmp_path, *drafts, doing=gives_up)
    kit.team = replace(kit.team, secrets=frozenset({key}))
    reply = await run_turn(f"Do it with {key}.", ALICE, kit)
    plan = await plan_of(kit, reply)
    stored = (plan, *await events_of(kit))
    text = " ".join(document.model_dump_json() for document in stored)
    assert key not in text and len(plan.replan_history) == 2 and text.count("[secret]") >= 5


async def test_a_step_whose_input_is_gone_fails_and_does_not_work_on_nothing(
    tmp_path: Path,
) -> None:
    kit = plan_kit(tmp_path)
    plan = with_step(stored("one", "two", kit=kit), 1, status="complete", memory_key="gone")
    await kit.services.documents.plans.create(plan)
    reply = await run_turn("Do it.", ALICE, kit, resumed(plan.plan_id))
    assert "**1. one:** It is done; its result is gone." in reply.text
    assert reply.text.startswith("I wasn't able to finish this: I could not get through “two”.")
    failed = (await read_plan(kit, plan.plan_id)).steps[1]
    assert (failed.status, failed.failure_reason) == (
        "failed",
        "the output of step 1 is no longer kept",
    )


def stored(*tasks: str, kit: PlanKit) -> Plan:
    """A plan whose steps are written, each working on the one before, and that nobody holds."""
    steps = Draft(steps=tuple(DraftStep.model_validate(step) for step in draft(*tasks, chain=True)))
    plan = new_plan("plan_x", WHO, ALICE.id, "Do it.", kit.services.clock())
    return with_draft(plan, steps, {"rows": manifest("rows").model_dump()})
