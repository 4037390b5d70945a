"""The life of a plan as functions from one stored value to the next; nothing here reads a clock or a store."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from kit.core.context import Principal
from kit.core.documents.document import Plan, PlanStatus, PlanStep, Replan
from kit.core.errors import ShapeError
from kit.core.schema.json_value import is_object
from kit.core.schema.shape import schema_of
from kit.planning.draft import Draft, DraftStep
from kit.tools.skill import SkillManifest

MOST_REPLANS = 3
Trigger = Literal["insufficient", "failed", "contract_violation", "nothing_looked_up"]
"""Why the rest of a plan is written anew. `nothing_looked_up`: an executor handed in what it cannot know."""
FailureKind = Literal[
    "exhausted", "uncertain", "budget", "infeasible", "unreachable", "no_plan", "failed"
]
"""Planned anew often enough; an act of which nobody knows; its budget is used up; the planner says that there is no
plan; the service of the skills did not answer the planner; the planner handed in no plan that holds; a stored step that
cannot be run."""
FAILURE_WORDS: Mapping[FailureKind, str] = {
    "exhausted": "max replan attempts reached",
    "no_plan": "no plan",
}
"""How the reason of a failure begins, where that is not its kind itself."""
OVER = ("complete", "failed")
"""The states of a plan that has ended."""


def new_plan(plan_id: str, principal: Principal, session_id: str, task: str, now: float) -> Plan:
    """A plan before its planner runs (decisions 22)."""
    return Plan(
        plan_id=plan_id,
        session_id=session_id,
        tenant_id=principal.tenant_id,
        user_id=principal.user_id,
        status="pending",
        original_task=task,
        created_at=now,
    )


def complete_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """The steps that are complete."""
    return tuple([step for step in plan.steps if step.status == "complete"])


def ready_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """The steps that can be run now, at the same time; nothing where all are complete.

    A step waits for those whose outputs it works on. One that may call a skill which acts waits for every step before
    it, and those after it wait for it: what a plan does in the world, it does in the order that was planned.
    """
    complete = {step.step_index for step in complete_steps(plan)}
    incomplete = [step for step in plan.steps if step.step_index not in complete]
    ready: list[PlanStep] = []
    for step in incomplete:
        if acts(plan, step):
            if step is incomplete[0]:
                ready.append(step)
            break
        if complete.issuperset(step.inputs):
            ready.append(step)
    # Of a stored plan that somebody has damaged no step may be ready: the first one then says what it lacks.
    return tuple(ready or incomplete[:1])


def acts(plan: Plan, step: PlanStep) -> bool:
    """Says whether a step may call a skill that does more than look something up; so does one that nobody can read."""
    by_skill: Any = plan.manifests
    if not is_object(by_skill):
        return True
    for skill in step.skills:
        manifest = by_skill.get(skill)
        if not is_object(manifest):
            return True
        if manifest.get("idempotent") is not True:
            return True
    return False


def steps_at_work(plan: Plan) -> tuple[PlanStep, ...]:
    """The steps that have begun and not ended."""
    return tuple([step for step in plan.steps if step.status == "executing"])


def declined_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """The steps that their user said no to, in a plan that is kept as it stood then: its turn goes no further."""
    if plan.status != "cancelled":
        return ()
    return tuple([step for step in plan.steps if step.status == "declined"])


def with_draft(plan: Plan, draft: Draft, manifests: Mapping[str, Mapping[str, Any]]) -> Plan:
    """The plan with the steps of a draft in the place of all that are not complete, and with what
    is known of their skills."""
    steps = list(complete_steps(plan))
    for draft_step in draft.steps:
        steps.append(_step(plan.plan_id, draft_step, plan.replan_count))
    by_skill: Any = plan.manifests
    all_manifests: dict[str, Any] = {**(by_skill if is_object(by_skill) else {}), **manifests}
    # A plan is run by the manifests that it was verified against, whatever the service says later.
    manifests_of_steps: dict[str, Any] = {}
    for step in steps:
        for skill in step.skills:
            if skill in all_manifests:
                manifests_of_steps[skill] = all_manifests[skill]
    steps.sort(key=lambda step: step.step_index)
    return plan.replace(
        status="executing",
        steps=tuple(steps),
        manifests=manifests_of_steps,
        # It stays what it was first called, however the rest is planned anew.
        task_type=plan.task_type or draft.task_type,
    )


def with_step(plan: Plan, step_index: int, **changes: Any) -> Plan:
    """The plan with one of its steps changed."""
    steps = list(plan.steps)
    for position, step in enumerate(steps):
        if step.step_index == step_index:
            steps[position] = step.replace(**changes)
    return plan.replace(steps=tuple(steps))


def with_replan(plan: Plan, trigger: Trigger, step: PlanStep, reason: str, now: float) -> Plan:
    """The plan whose rest is about to be written anew, because of that step. Completed steps stay as they are, and
    what the new steps take the place of is kept in the history where it has failed."""
    attempt = plan.replan_count + 1
    entry = Replan(
        attempt=attempt,
        trigger=trigger,
        failed_step=step.step_index,
        reason=reason,
        revised_at=now,
        failed_steps=tuple([step for step in plan.steps if step.status == "failed"]),
    )
    return plan.replace(
        status="replanning", replan_count=attempt, replan_history=(*plan.replan_history, entry)
    )


def end_plan(plan: Plan, status: Literal["complete", "failed"], now: float) -> Plan:
    """The plan at its end; nobody holds it any more."""
    return plan.replace(status=status, completed_at=now, holder=None)


def status_of_work(plan: Plan) -> PlanStatus:
    """The state in which a plan goes on that its user stopped, or that waited: it follows from its steps."""
    if not plan.steps:
        return "pending"
    # A failed step stands in a plan only until the steps after it are planned anew.
    if failed_step(plan) is not None:
        return "replanning"
    return "executing"


def failed_step(plan: Plan) -> PlanStep | None:
    """The step that the plan failed of, or is planned anew for; None where none failed.

    Of several it is the one that may have acted, else the first.
    """
    for status in ("uncertain", "failed"):
        for step in plan.steps:
            if step.status == status:
                return step
    return None


def made_up_steps(plan: Plan) -> tuple[str, ...]:
    """The numbers of the steps whose executor handed in what it cannot know, each once, in order."""
    numbers: set[int] = set()
    steps = list(plan.steps)
    for replan in plan.replan_history:
        steps += replan.failed_steps
    for step in steps:
        if step.failure_kind == "nothing_looked_up":
            numbers.add(step.step_index)
    return tuple([str(number) for number in sorted(numbers)])


def step_fault(plan: Plan, step: PlanStep) -> str | None:
    """Says why a stored step cannot be run; None for one that can.

    Whoever can write to the store's file can put anything into a plan.
    """
    spec: Any = step.return_spec
    if not is_object(spec) or "shape" not in spec:
        return "the stored step says nothing of what it returns"
    try:
        schema_of(spec["shape"])
    except ShapeError as error:
        return f"the stored step cannot be run: {error}"
    manifests: Any = plan.manifests
    for skill in step.skills:
        if not isinstance(manifests, dict) or skill not in manifests:
            return f"the stored plan has no manifest of {skill!r}"
        try:
            SkillManifest.model_validate(manifests[skill])
        except ValidationError as error:
            fields = ", ".join(str(fault["loc"][0]) for fault in error.errors() if fault["loc"])
            return f"the stored manifest of {skill!r} cannot be read: {fields or 'it is none'}"
    return None


def stored_usage(plan: Plan) -> dict[str, float]:
    """What a plan has taken so far; whatever else stands there counts as nothing."""
    usage: Any = plan.usage
    if not is_object(usage):
        return {}
    return {name: value for name, value in usage.items() if isinstance(value, int | float)}


def _step(plan_id: str, draft: DraftStep, revision: int) -> PlanStep:
    """A step with the id of its task, which stays the same however often the plan is resumed."""
    inputs = draft.inputs
    return PlanStep(
        step_index=draft.step,
        task=draft.task,
        skills=draft.skills,
        return_spec=draft.return_spec.stored(),
        input_from_step=inputs[0] if len(inputs) == 1 else None,
        input_from_steps=inputs if len(inputs) > 1 else (),
        task_id=f"{plan_id}.{revision}.{draft.step}",
    )
