"""The manager of a plan: asks the planner, sends an executor for each step, those of ready steps at
the same time, and has the rest planned anew where one fails.

Every transition is stored before the next begins, so that a plan whose process died goes on after
its last complete step. The manager calls no skill, and whoever it asks can ask nobody.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kit.compose.parts import PlanSettings
from kit.core.documents.document import SKILLS, WAITING, Memory, Plan, PlanStep
from kit.core.outcome import AgentCall, Failure, FanOut, Outcome
from kit.core.secret import without_secrets
from kit.planning.draft import Draft, Infeasible
from kit.planning.executor import CALL
from kit.planning.journal import Journal
from kit.planning.plan import (
    FAILURE_WORDS,
    MOST_REPLANS,
    OVER,
    FailureKind,
    Trigger,
    complete_steps,
    end_plan,
    failed_step,
    ready_steps,
    status_of_work,
    step_fault,
    steps_at_work,
    stored_usage,
    with_draft,
    with_replan,
    with_step,
)
from kit.planning.planner import MOST_DRAFTS, REMINDER, planner_query
from kit.planning.recall import earlier_answers, session_summary
from kit.planning.record import PlanRecord
from kit.planning.scope import PlannerScope, StepScope, executes, plans
from kit.planning.services import PlanServices
from kit.planning.step_end import (
    StepFailure,
    StepRun,
    detail_of,
    failure_of,
    is_made_up,
    may_have_acted,
    status_of,
)
from kit.planning.step_log import StepLog
from kit.planning.step_query import ANSWER, executor_query, output_of, request_of
from kit.runtime.agents.api_agent import ApiAgent
from kit.runtime.context import RunContext
from kit.runtime.dispatch import Carrier, dispatch, fan_out
from kit.tools.skill import Fence, SkillManifest, Skills
from kit.tools.task_memory import Task, write_data

ENDS = (*OVER, "cancelled")
"""The states in which the manager leaves a plan: it has ended, or its user said no to what it would do next."""


@dataclass
class Manager:
    """Drives one plan in one turn."""

    ctx: RunContext
    services: PlanServices
    settings: PlanSettings
    record: PlanRecord
    journal: Journal
    skills: Skills = field(init=False)
    earlier_usage: dict[str, float] = field(default_factory=dict[str, float])
    """What the plan had taken when this turn took it up."""
    began: float = 0.0
    failure: Failure | None = None
    """How the agent that was asked last failed; None where it did not."""

    @property
    def plan(self) -> Plan:
        return self.record.plan

    @property
    def _calls_skills(self) -> bool:
        """Whether the executor has the kit's tool for skills: what another agent looks up is seen by nobody here."""
        executor = self.ctx.turn.agents[self.settings.executor]
        return CALL in executor.card.tools and not isinstance(executor, ApiAgent)

    async def drive(self, skills: Skills) -> None:
        """Takes the plan to its end, from wherever it stands, with the skills that its request opens."""
        self.skills = skills
        if self.plan.status in WAITING:
            await self.record.move(lambda plan: plan.replace(status=status_of_work(plan)))
        self.earlier_usage = stored_usage(self.plan)
        self.began = self.services.clock()
        self.record.usage = self._usage
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
            if self.plan.status in ENDS:
                return
            at_work = steps_at_work(self.plan)
            for step in at_work:
                if await self._ended_in_doubt(step):
                    return
            step = at_work[0] if at_work else None
            await self._fail("budget", step, "the time of the plan was over")

    async def _drive(self) -> None:
        while self.plan.status not in ENDS:
            if self.plan.status != "executing":
                await self._plan()
            elif steps := ready_steps(self.plan):
                await self._run(steps[: self.settings.steps_at_once])
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
            self.journal.of_task(task_id, self.settings.planner),
            self.skills,
            complete={step.step_index: step.return_spec.get("shape", "any") for step in complete},
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
        earlier = await earlier_answers(self.services, self.plan, self.settings.recall)
        summary = await session_summary(self.services, self.plan, self.settings.recall)
        query = planner_query(
            self.plan.original_task,
            complete,
            failed,
            suggestion,
            remaining,
            conversation,
            self.settings.task_types,
            earlier,
            summary,
        )
        call = AgentCall(call_id=task_id, agent=self.settings.planner, query=query, fields={})
        began = self.services.clock()
        with plans(scope):
            outcome = await self._ask(call)
            if _has_only_talked(scope, outcome):
                reminder = f"{REMINDER} {query}"
                outcome = await self._ask(call.replace(call_id=f"{task_id}.again", query=reminder))
        draft = scope.result
        await _finish(scope.journal, _planner_status(draft), self.services.clock() - began)
        if draft is None or isinstance(draft, Infeasible):
            over = isinstance(outcome, Failure) and outcome.reason == "budget"
            if over:
                await self._fail("budget")
            elif scope.unreachable:
                await self._fail("unreachable", why=scope.unreachable)
            elif draft is None:
                await self._fail("no_plan", why=detail_of(outcome, scope.refusals))
            else:
                await self._fail("infeasible", why=draft.reason)
            return
        if not replan:
            await self.journal.write("plan.received", steps=len(draft.steps))
        await self._move(lambda plan: with_draft(plan, draft, scope.manifests))
        await self.journal.write("plan.persisted", status=self.plan.status)
        if replan:
            await self.journal.write(
                "plan.revised", revised_steps=[step.step for step in draft.steps]
            )

    async def _run(self, steps: Sequence[PlanStep]) -> None:
        """Runs steps at the same time, each in an executor of its own."""
        runs: dict[str, StepRun] = {}
        for step in steps:
            run = await self._prepare(step)
            if self.plan.status in OVER:
                return
            if run is not None:
                runs[run.task.id] = run
        for run in runs.values():
            await self._begin(run)
        failures: list[StepFailure] = []

        async def carry_out(
            call: AgentCall, ctx: RunContext, position: str, endings: dict[str, Outcome]
        ) -> Outcome:
            run = runs[call.call_id]
            scope, outcome = await self._execute(run, call, position, endings)
            failure = await self._close(run, scope, outcome)
            if failure is not None:
                failures.append(failure)
            return outcome

        calls: list[AgentCall] = []
        for task_id, run in runs.items():
            calls.append(
                AgentCall(call_id=task_id, agent=run.task.agent, query=run.step.task, fields={})
            )
        await self._send(calls, carry_out)
        await self._end_or_revise(failures)

    async def _prepare(self, step: PlanStep) -> StepRun | None:
        """Gathers what a step needs to run; None where it need not, or where the plan ends because it cannot.

        What it wrote before its process died counts.
        """
        if fault := step_fault(self.plan, step):
            await self._fail("failed", step, fault)
            return None
        log = self._log(step)
        outputs: dict[int, Any] = {}
        for source in self.plan.steps:
            if source.step_index in step.inputs:
                outputs[source.step_index] = await self.value(source)
        for number in step.inputs:
            if outputs.get(number) is None:
                await self._fail("failed", step, f"the output of step {number} is no longer kept")
                return None
        if step.status == "executing":
            # Its process may have died between the write and the transition.
            memory = await log.output(step.return_spec["shape"])
            if memory and not (self._calls_skills and await is_made_up(step, log)):
                await self._complete(step, memory)
                return None
            if await self._ended_in_doubt(step):
                return None
        return StepRun(step, log, self._calls_skills, outputs, began=self.services.clock())

    async def _begin(self, run: StepRun) -> None:
        number = run.step.step_index
        await self._move(
            lambda plan: with_step(plan, number, status="executing", started_at=run.began)
        )
        await self.journal.write(
            f"step_{number}.started", task_id=run.task.id, skill=SKILLS.join(run.step.skills)
        )

    async def _execute(
        self, run: StepRun, call: AgentCall, position: str, endings: dict[str, Outcome]
    ) -> tuple[StepScope, Outcome]:
        """Sends an executor, over the skills of the step alone; its files are gone when it is."""
        task = run.task
        # What a process left that died in this step is nobody's any more.
        self.services.files.wipe(task)
        stored = cast("dict[str, Any]", self.plan.manifests)
        manifests: dict[str, SkillManifest] = {}
        for skill in run.step.skills:
            manifests[skill] = SkillManifest.model_validate(stored[skill])
        try:
            fence = Fence(plan_id=self.plan.plan_id, number=self.plan.fence)
            async with self.skills.step(run.step.skills, fence) as skills:
                scope = StepScope(
                    self.journal.of_task(task.id, task.agent),
                    task,
                    run.step,
                    manifests,
                    skills,
                    acts=self.ctx.turn.acts,
                    fence=fence.number,
                )
                if self.ctx.turn.acts.entries:
                    # The acts that its user said yes to are known by their arguments and not made again.
                    # Without them in the count, the next call would get the key of one of them.
                    scope.calls, scope.act_keys = await run.log.calls_begun()
                with executes(scope):
                    if isinstance(self.ctx.turn.agents[task.agent], ApiAgent):
                        call = call.replace(query=request_of(scope, run.outputs))
                        outcome = await dispatch(call, self.ctx, position, endings)
                        await self._take_answer(scope, outcome)
                        return scope, outcome
                    query = executor_query(scope, run.outputs, self.services)
                    call = call.replace(query=query)
                    return scope, await dispatch(call, self.ctx, position, endings)
        finally:
            self.services.files.wipe(task)

    async def _take_answer(self, scope: StepScope, outcome: Outcome) -> None:
        """Writes down what an executor without tools of the kit's has answered, as the output of its step."""
        if isinstance(outcome, Failure):
            return
        shape = scope.step.return_spec["shape"]
        data = output_of(outcome.text, shape)
        await write_data(self.services.memory, scope.task, ANSWER, data, shape)

    async def _close(self, run: StepRun, scope: StepScope, outcome: Outcome) -> StepFailure | None:
        """Stores how a step ended that came to an output; returns what is wrong with every other."""
        memory = await run.log.output(run.step.return_spec["shape"])
        ended = self.services.clock()
        failure = await failure_of(run, scope, outcome, memory, ended)
        status = "complete" if failure is None else status_of(failure)
        await _finish(scope.journal, status, ended - run.began, memory)
        if failure is None and memory:
            await self._complete(run.step, memory)
        return failure

    async def _complete(self, step: PlanStep, memory: Memory) -> None:
        finished_at = self.services.clock()
        # First the plan, then the key: until the plan points to this memory nobody may write over it.
        await self._move(
            lambda plan: with_step(
                plan,
                step.step_index,
                status="complete",
                memory_key=memory.key,
                validated=True,
                finished_at=finished_at,
            )
        )
        await self.services.memory.confirm(self.plan.owner, memory)
        await self._journal_end(step, "complete")

    async def _end_or_revise(self, failures: Sequence[StepFailure]) -> None:
        """Ends the plan where a step may have acted, or where the rest was planned anew often enough;
        else has that done again."""
        if not failures:
            return
        in_doubt = [failure for failure in failures if failure.trigger == "uncertain"]
        after_no = [failure for failure in failures if failure.trigger == "declined"]
        in_order = sorted(failures, key=lambda failure: failure.step.step_index)
        blamed = (in_doubt or after_no or in_order)[0]
        self.failure = None
        if isinstance(blamed.outcome, Failure):
            self.failure = blamed.outcome
        if blamed.trigger == "uncertain":
            await self._fail("uncertain", blamed.step, blamed.reason)
        elif blamed.trigger == "declined":
            await self._decline(blamed.step)
        elif self.plan.replan_count >= MOST_REPLANS:
            await self._fail("exhausted", blamed.step, blamed.reason, failures=failures)
        else:
            await self._revise(blamed, blamed.trigger, failures)

    async def _decline(self, step: PlanStep) -> None:
        """Stops the plan at a step that its user said no to: nothing has failed, nothing is planned in its place."""
        number = step.step_index
        await self._move(
            lambda plan: with_step(plan, number, status="declined", started_at=None).replace(
                status="cancelled"
            )
        )
        await self._journal_end(step, "declined")

    async def _revise(
        self, blamed: StepFailure, trigger: Trigger, failures: Sequence[StepFailure]
    ) -> None:
        """Notes which steps failed, and that the rest is planned anew."""
        now = self.services.clock()
        reasons = [blamed.reason]
        if blamed.suggestion:
            reasons.append(blamed.suggestion)

        def change(plan: Plan) -> Plan:
            plan = _with_failures(plan, failures)
            return with_replan(plan, trigger, blamed.step, "; suggestion: ".join(reasons), now)

        await self._move(change)
        for failure in failures:
            await self._journal_end(failure.step, "failed", reason=failure.reason)
        await self.journal.write(
            "replan.triggered",
            attempt=self.plan.replan_count,
            failed_step=blamed.step.step_index,
            trigger=trigger,
        )

    async def _fail(
        self,
        kind: FailureKind,
        step: PlanStep | None = None,
        detail: str = "",
        *,
        failures: Sequence[StepFailure] = (),
        why: str = "",
    ) -> None:
        """Ends the plan, and stores why in the form that callers of the service get.

        `step` is the one it failed of, `detail` what went wrong in it, `failures` those that failed at the same time,
        itself among them; `why` is what a planner said.
        """
        reason = FAILURE_WORDS.get(kind, kind)
        if why:
            reason = f"{reason}: {why}"
        if step:
            last = {"step": step.step_index, "reason": detail}
        else:
            last = None
        if kind == "uncertain":
            status = "uncertain"
        else:
            status = "failed"
        now = self.services.clock()

        def change(plan: Plan) -> Plan:
            plan = _with_failures(plan, failures)
            for other in steps_at_work(plan):
                plan = with_step(
                    plan,
                    other.step_index,
                    status="failed",
                    failure_reason="the plan ended before it did",
                    finished_at=now,
                )
            if step is not None:
                plan = with_step(
                    plan, step.step_index, status=status, failure_reason=detail, finished_at=now
                )
            complete = [done_step.step_index for done_step in complete_steps(plan)]
            failure = {
                "reason": reason,
                "completed_steps": complete,
                "last_failure": last,
            }
            return plan.replace(failure=failure, failure_kind=kind)

        await self._end("failed", change)
        for failure in failures:
            if failure.step is not step:
                await self._journal_end(failure.step, "failed", reason=failure.reason)
        if step is not None:
            await self._journal_end(step, "failed", reason=detail)
        await self.journal.write("plan.failed", reason=reason)

    async def _journal_end(self, step: PlanStep, end: str, **fields: Any) -> None:
        """Notes how a step ended. Its skills are named too: by them failures are counted."""
        await self.journal.write(
            f"step_{step.step_index}.{end}",
            task_id=step.task_id,
            skill_id=SKILLS.join(step.skills) or None,
            **fields,
        )

    async def _end(self, status: Any, change: Callable[[Plan], Plan] = lambda plan: plan) -> None:
        await self._move(lambda plan: end_plan(change(plan), status, self.services.clock()))

    async def _move(self, change: Callable[[Plan], Plan]) -> None:
        secrets = self.ctx.turn.log.secrets
        await self.record.move(lambda plan: without_secrets(change(plan), secrets))

    async def _ended_in_doubt(self, step: PlanStep) -> bool:
        """Ends the plan where a skill of the step may have acted, and may not be called twice (decisions 41)."""
        skill = await self._log(step).lost_act()
        if skill is not None:
            await self._fail("uncertain", step, may_have_acted(skill))
        return skill is not None

    async def value(self, step: PlanStep) -> Any:
        """Returns the output of a complete step."""
        memory = await self.services.memory.read(self.plan.owner, step.memory_key or "")
        if memory:
            return memory.value
        return None

    def _log(self, step: PlanStep) -> StepLog:
        task = Task(
            self.plan.owner,
            self.plan.session_id,
            step.task_id or "",
            self.settings.executor,
            self.plan.plan_id,
            step.step_index,
            step.task,
        )
        return StepLog(self.services, task)

    async def _ask(self, call: AgentCall) -> Outcome:
        """Asks one agent, and notes how it failed where it did."""
        fan = await self._send([call])
        (outcome,) = fan.outcomes
        self.failure = None
        if isinstance(outcome, Failure):
            self.failure = outcome
        return outcome

    async def _send(self, calls: Sequence[AgentCall], through: Carrier = dispatch) -> FanOut:
        """Sends agents at the same time. Each is told what it needs by its query."""
        try:
            return await fan_out(calls, self.ctx, through, tell_earlier=False)
        finally:
            # The user is owed no answer by a planner or an executor, but by the plan.
            self.ctx.turn.disregard(calls)

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


def _has_only_talked(scope: PlannerScope, outcome: Outcome) -> bool:
    """Says whether a planner has answered in words, and could have handed in a plan: it is asked once more then."""
    # Where the service of the skills is gone there is nothing to plan with, and after MOST_DRAFTS no plan is taken.
    if scope.result is not None or scope.unreachable or len(scope.refusals) >= MOST_DRAFTS:
        return False
    # A call written into the text is a call that its model meant to make.
    return not isinstance(outcome, Failure) or outcome.reason == "contract_violation"


def _with_failures(plan: Plan, failures: Sequence[StepFailure]) -> Plan:
    """The plan with what is wrong with each of its steps that failed."""
    for failure in failures:
        plan = with_step(
            plan,
            failure.step.step_index,
            status="failed",
            failure_reason=failure.reason,
            failure_kind=failure.trigger,
            finished_at=failure.ended,
        )
    return plan


def _planner_status(draft: Draft | Infeasible | None) -> str:
    if draft is None:
        return "failed"
    if isinstance(draft, Infeasible):
        return "infeasible"
    return "complete"


async def _finish(
    journal: Journal, status: str, seconds: float, memory: Memory | None = None
) -> None:
    """Notes that an agent has ended, and where it left its output."""
    key = memory and memory.key
    duration = round(1000 * max(0.0, seconds))
    await journal.write("subagent.finish", status=status, duration_ms=duration, memory_key=key)
