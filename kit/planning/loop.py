"""The manager of a plan: asks the planner, sends one executor after another, and has the rest
planned anew where one fails.

Every transition is stored before the next begins, so that a plan whose process died goes on after
its last complete step. The manager calls no skill, and whoever it asks can ask nobody.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from kit.compose.parts import PlanSettings
from kit.core.outcome import AgentCall, Failure, Outcome
from kit.core.schema.shape import Shape, schema_of
from kit.core.schema.validator import validator
from kit.core.secret import without_secrets
from kit.planning.draft import Infeasible
from kit.planning.journal import Journal
from kit.planning.plan import (
    MOST_REPLANS,
    OVER,
    Trigger,
    complete_steps,
    end_plan,
    failed_step,
    next_step,
    step_fault,
    stored_usage,
    with_draft,
    with_replan,
    with_step,
)
from kit.planning.planner import planner_query
from kit.planning.record import PlanRecord
from kit.planning.scope import PlannerScope, StepScope, executes, plans
from kit.planning.services import PlanServices
from kit.planning.skill_call import CALL, START
from kit.planning.step_query import executor_query
from kit.runtime.context import RunContext
from kit.runtime.dispatch import dispatch
from kit.stores.documents.document import AgentEvent, Memory, Plan, PlanStep
from kit.stores.documents.protocol import EventFilter
from kit.tools.skill import SkillManifest
from kit.tools.task_memory import Task


@dataclass(frozen=True, slots=True)
class StepLog:
    """The log of one step, read anew with each question."""

    services: PlanServices
    task: Task

    async def output(self, shape: Shape) -> Memory | None:
        """The last output that the step has written, if it has that shape; None where there is none."""
        written = await self._events("memory.written")
        if not written:
            return None
        memory = await self.services.memory.read(self.task.principal, _payload(written[-1])["key"])
        if memory and validator(schema_of(shape)).wrong(memory.value) is None:
            return memory
        return None

    async def suggestion(self) -> str:
        """What its executor said should be planned in its place; empty where it said nothing."""
        signals = await self._events("subagent.insufficient")
        if signals:
            return str(_payload(signals[-1]).get("suggestion", ""))
        return ""

    async def violation(self) -> str | None:
        """How its last output broke the return spec, as JSON; None where none did."""
        violations = await self._events("contract_violation")
        if violations:
            return json.dumps(violations[-1].payload)
        return None

    async def calls_begun(self) -> tuple[int, set[str]]:
        """How many calls of skills it has made, and the keys of those that may not be made twice."""
        starts = await self._events(START)
        calls = await self._events(CALL)
        return len(calls), {event.event_id for event in starts}

    async def lost_act(self) -> str | None:
        """The skill that may have acted, to an end that nobody knows, and may not be called twice;
        None where there is none."""
        calls = await self._events(CALL)
        for event in calls:
            if _payload(event).get("uncertain"):
                return event.skill_id
        starts = Counter(event.skill_id for event in await self._events(START))
        ends = Counter(event.skill_id for event in calls)
        # One that was started more often than it came back was at work when its process died.
        for skill in starts - ends:
            return skill
        return None

    async def _events(self, kind: str) -> list[AgentEvent]:
        by = EventFilter(
            tenant_id=self.task.principal.tenant_id,
            plan_id=self.task.plan_id,
            task_id=self.task.id,
            event_type=kind,
        )
        return await self.services.documents.events.query(by)


def _payload(event: AgentEvent) -> dict[str, Any]:
    return cast("dict[str, Any]", event.payload or {})


EXHAUSTED = "max replan attempts reached"
UNCERTAIN = "uncertain"
OVER_BUDGET = "budget"
INFEASIBLE = "infeasible"
"""How the reason begins where the planner says that there is no plan."""
UNREACHABLE = "unreachable"
"""How the reason begins where the service of the skills did not answer the planner."""
NO_PLAN = "no plan"
"""How the reason begins where a planner has neither handed in a plan that holds nor said that there is none."""


@dataclass
class Manager:
    """Drives one plan in one turn."""

    ctx: RunContext
    services: PlanServices
    settings: PlanSettings
    record: PlanRecord
    journal: Journal
    earlier_usage: dict[str, float] = field(default_factory=dict[str, float])
    """What the plan had taken when this turn took it up."""
    began: float = 0.0
    failure: Failure | None = None
    """How the agent that was asked last failed; None where it did not."""

    @property
    def plan(self) -> Plan:
        return self.record.plan

    async def drive(self) -> None:
        """Takes the plan to its end, from wherever it stands."""
        self.earlier_usage = stored_usage(self.plan)
        self.began = self.services.clock()
        self._limit()
        seconds_left = None
        if self.settings.budget.time_budget_ms is not None:
            seconds_left = self.settings.budget.time_budget_ms / 1000 - self._seconds()
        try:
            if seconds_left is not None and seconds_left <= 0:
                raise TimeoutError
            async with asyncio.timeout(seconds_left):
                await self._drive()
        except TimeoutError:
            # Its last write may have been on its way when the time was over.
            if self.plan.status in OVER:
                return
            step = next_step(self.plan)
            if not (step and step.status == "executing"):
                step = None
            if step is None or not await self._ended_in_doubt(step):
                await self._fail(OVER_BUDGET, step, "the time of the plan was over")

    async def _drive(self) -> None:
        while self.plan.status not in OVER:
            if self.plan.status != "executing":
                await self._plan()
            elif step := next_step(self.plan):
                await self._run(step)
            else:
                await self._end("complete")

    async def _plan(self) -> None:
        """Has the planner write the steps that are to come, and stores what it hands in."""
        replan = self.plan.status == "replanning"
        # A plan whose process died in the middle of a replan stays one: its failed step is still to be told of.
        if not replan:
            await self._move(lambda plan: plan.replace(status="planning"))
        complete = complete_steps(self.plan)
        number = self.plan.replan_count
        task_id = f"{self.plan.plan_id}.{number}.plan"
        scope = PlannerScope(
            self.journal.of_task(task_id, self.settings.planner), first=len(complete) + 1
        )
        await self.journal.write(
            "subagent_a.spawned", task_id=task_id, mode="replan" if replan else "plan"
        )
        remaining = [step for step in self.plan.steps if step.status != "complete"]
        failed = failed_step(self.plan)
        suggestion = ""
        if failed:
            suggestion = await self._log(failed).suggestion()
        conversation = self.ctx.turn.memory.history("")
        query = planner_query(
            self.plan.original_task, complete, failed, suggestion, remaining, conversation
        )
        with plans(scope):
            outcome = await self._dispatch(self.settings.planner, query, task_id, number + 1)
        draft = scope.result
        if draft is None or isinstance(draft, Infeasible):
            over = isinstance(outcome, Failure) and outcome.reason == "budget"
            if over:
                reason = OVER_BUDGET
            elif scope.unreachable:
                reason = f"{UNREACHABLE}: {scope.unreachable}"
            elif draft is None:
                reason = f"{NO_PLAN}: {_detail(outcome, scope.refusals)}"
            else:
                reason = f"{INFEASIBLE}: {draft.reason}"
            await self._fail(reason)
            return
        if not replan:
            await self.journal.write("plan.received", steps=len(draft.steps))
        await self._move(lambda plan: with_draft(plan, draft, scope.manifests))
        await self.journal.write("plan.persisted", status=self.plan.status)
        if replan:
            await self.journal.write(
                "plan.revised", revised_steps=[step.step for step in draft.steps]
            )

    async def _run(self, step: PlanStep) -> None:
        """Runs one step in an executor of its own; what it wrote before its process died counts."""
        if fault := step_fault(self.plan, step):
            await self._fail("failed", step, fault)
            return
        log = self._log(step)
        value = await self._input(step)
        task = log.task
        shape = step.return_spec["shape"]
        if step.input_from_step and value is None:
            await self._fail(
                "failed", step, f"the output of step {step.input_from_step} is no longer kept"
            )
            return
        began = self.services.clock()
        if step.status == "executing":
            # Its process may have died between the write and the transition.
            if memory := await log.output(shape):
                await self._complete(step, memory)
                return
            if await self._ended_in_doubt(step):
                return
        await self._move(
            lambda plan: with_step(plan, step.step_index, status="executing", started_at=began)
        )
        name = f"step_{step.step_index}"
        await self.journal.write(f"{name}.started", task_id=task.id, skill=", ".join(step.skills))
        scope, outcome = await self._execute(step, task, value)
        memory = await log.output(shape)
        if memory:
            status = "complete"
        elif scope.insufficient:
            status = "insufficient"
        else:
            status = "failed"
        if scope.uncertain:
            status = UNCERTAIN
        key = memory and memory.key
        duration = round((self.services.clock() - began) * 1000)
        await scope.journal.write(
            "subagent.finish", status=status, duration_ms=duration, memory_key=key
        )
        if scope.uncertain:
            await self._fail(UNCERTAIN, step, _may_have_acted(scope.uncertain))
        elif memory:
            await self._complete(step, memory)
        else:
            if scope.insufficient:
                suggestion = scope.insufficient[1]
            else:
                suggestion = ""
            await self._revise(step, *await self._failure(scope, outcome), suggestion)

    async def _execute(self, step: PlanStep, task: Task, value: Any) -> tuple[StepScope, Outcome]:
        """Sends an executor, over the skills of the step alone; its files are gone when it is."""
        # What a process left that died in this step is nobody's any more.
        self.services.files.wipe(task)
        stored = cast("dict[str, Any]", self.plan.manifests)
        manifests: dict[str, SkillManifest] = {}
        for skill in step.skills:
            manifests[skill] = SkillManifest.model_validate(stored[skill])
        try:
            async with self.services.skills.step(step.skills) as skills:
                scope = StepScope(
                    self.journal.of_task(task.id, task.agent), task, step, manifests, skills
                )
                if self.ctx.turn.acts.entries:
                    # The acts that its user said yes to are known by their arguments and not made again.
                    # Without them in the count, the next call would get the key of one of them.
                    scope.calls, scope.act_keys = await self._log(step).calls_begun()
                with executes(scope):
                    query = executor_query(scope, value, self.services)
                    return scope, await self._dispatch(task.agent, query, task.id, step.step_index)
        finally:
            self.services.files.wipe(task)

    async def _complete(self, step: PlanStep, memory: Memory) -> None:
        changes = {
            "status": "complete",
            "memory_key": memory.key,
            "validated": True,
            "finished_at": self.services.clock(),
        }
        # First the plan, then the key: until the plan points to this memory nobody may write over it.
        await self._move(lambda plan: with_step(plan, step.step_index, **changes))
        await self.services.memory.confirm(self.record.principal, memory)
        await self.journal.write(f"step_{step.step_index}.complete", task_id=step.task_id)

    async def _revise(
        self, step: PlanStep, trigger: Trigger, reason: str, suggestion: str = ""
    ) -> None:
        """Has the rest planned anew, or ends the plan where that was done often enough."""
        if self.plan.replan_count >= MOST_REPLANS:
            await self._fail(EXHAUSTED, step, reason)
            return
        now = self.services.clock()

        def change(plan: Plan) -> Plan:
            failed = with_step(
                plan, step.step_index, status="failed", failure_reason=reason, finished_at=now
            )
            return with_replan(
                failed,
                trigger,
                step,
                "; suggestion: ".join(filter(None, (reason, suggestion))),
                now,
            )

        await self._move(change)
        await self.journal.write(
            f"step_{step.step_index}.failed", task_id=step.task_id, reason=reason
        )
        attempt = self.plan.replan_count
        await self.journal.write(
            "replan.triggered", attempt=attempt, failed_step=step.step_index, trigger=trigger
        )

    async def _failure(self, scope: StepScope, outcome: Outcome) -> tuple[Trigger, str]:
        """Returns what a step failed of, and in which words the planner is told."""
        if scope.insufficient:
            return "insufficient", scope.insufficient[0]
        if violation := await StepLog(self.services, scope.task).violation():
            return "contract_violation", f"the output is not of the shape asked for: {violation}"
        return "failed", _detail(
            outcome, [scope.fault] if scope.fault else ["it ended without an output"]
        )

    async def _fail(self, reason: str, step: PlanStep | None = None, detail: str = "") -> None:
        """Ends the plan, and stores why in the form that callers of the service get."""
        if step:
            last = {"step": step.step_index, "reason": detail}
        else:
            last = None
        if reason == UNCERTAIN:
            status = UNCERTAIN
        else:
            status = "failed"
        now = self.services.clock()

        def change(plan: Plan) -> Plan:
            if step is not None:
                plan = with_step(
                    plan, step.step_index, status=status, failure_reason=detail, finished_at=now
                )
            complete = [done_step.step_index for done_step in complete_steps(plan)]
            return plan.replace(
                failure={"reason": reason, "completed_steps": complete, "last_failure": last}
            )

        await self._end("failed", change)
        if step is not None:
            await self.journal.write(
                f"step_{step.step_index}.failed", task_id=step.task_id, reason=detail
            )
        await self.journal.write("plan.failed", reason=reason)

    async def _end(self, status: Any, change: Callable[[Plan], Plan] = lambda plan: plan) -> None:
        await self._move(lambda plan: end_plan(change(plan), status, self.services.clock()))

    async def _move(self, change: Callable[[Plan], Plan]) -> None:
        usage = self._usage()
        secrets = self.ctx.turn.log.secrets
        await self.record.move(
            lambda plan: without_secrets(change(plan).replace(usage=usage), secrets)
        )

    async def _ended_in_doubt(self, step: PlanStep) -> bool:
        """Ends the plan where a skill of the step may have acted, and may not be called twice (decisions 41)."""
        skill = await self._log(step).lost_act()
        if skill is not None:
            await self._fail(UNCERTAIN, step, _may_have_acted(skill))
        return skill is not None

    async def _input(self, step: PlanStep) -> Any:
        """Returns the output of the step that this one works on; None where it works on none."""
        for source in self.plan.steps:
            if source.step_index == step.input_from_step:
                return await self.value(source)
        return None

    async def value(self, step: PlanStep) -> Any:
        """Returns the output of a complete step."""
        memory = await self.services.memory.read(self.record.principal, step.memory_key or "")
        if memory:
            return memory.value
        return None

    def _log(self, step: PlanStep) -> StepLog:
        task = Task(
            self.record.principal,
            self.plan.session_id,
            step.task_id or "",
            self.settings.executor,
            self.plan.plan_id,
            step.step_index,
        )
        return StepLog(self.services, task)

    async def _dispatch(self, agent: str, query: str, task_id: str, position: int) -> Outcome:
        self.ctx.turn.rounds += 1
        call = AgentCall(call_id=task_id, agent=agent, query=query, fields={})
        outcome = await dispatch(call, self.ctx, f"{self.ctx.turn.rounds}.{position}")
        if isinstance(outcome, Failure):
            self.failure = outcome
        else:
            self.failure = None
        return outcome

    def _limit(self) -> None:
        """Takes what the plan has used up in other turns out of what this one may take."""
        # A plan that is taken up ten times may not spend its budget ten times.
        limits = self.ctx.ledger.limits
        for resource, name in (
            ("input_tokens", "tokens_in"),
            ("output_tokens", "tokens_out"),
            ("cost", "dollars"),
        ):
            if resource in limits:
                limits[resource] -= self.earlier_usage.get(name, 0)

    def _seconds(self) -> float:
        return self.earlier_usage.get("seconds", 0.0) + max(0.0, self.services.clock() - self.began)

    def _usage(self) -> dict[str, float]:
        ledger = self.ctx.ledger
        earlier = self.earlier_usage
        return {
            "tokens_in": earlier.get("tokens_in", 0) + ledger.input_tokens,
            "tokens_out": earlier.get("tokens_out", 0) + ledger.output_tokens,
            "dollars": earlier.get("dollars", 0) + (ledger.cost or 0),
            "seconds": round(self._seconds(), 3),
        }


def _may_have_acted(skill: str) -> str:
    return f"a call of {skill} came to no known end; it may have acted"


def _detail(outcome: Outcome, reasons: list[str]) -> str:
    """Returns why an agent has nothing to show: its failure, else the last of the other reasons."""
    if isinstance(outcome, Failure):
        return f"{outcome.reason}: {outcome.detail}"
    if reasons:
        return reasons[-1]
    return "nothing was handed in"
