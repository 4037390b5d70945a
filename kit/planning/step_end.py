"""How one run of a step ended: with an output that counts, or why with none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kit.core.documents.document import Memory, PlanStep
from kit.core.outcome import Failure, Outcome
from kit.planning.plan import Trigger
from kit.planning.scope import StepScope
from kit.planning.step_log import StepLog
from kit.runtime.act_ledger import DECLINED
from kit.tools.task_memory import Task

MADE_UP = "it answered without looking anything up"


@dataclass(frozen=True, slots=True)
class StepRun:
    """A step that is about to be run."""

    step: PlanStep
    log: StepLog
    calls_skills: bool
    """Whether its executor calls skills, and by the kit's tool."""
    outputs: Mapping[int, Any]
    """Step -> its output, of those that it works on."""
    began: float

    @property
    def task(self) -> Task:
        return self.log.task


@dataclass(frozen=True, slots=True)
class StepFailure:
    """A step that came to no output that counts."""

    step: PlanStep
    trigger: Trigger | Literal["uncertain", "declined"]
    reason: str
    """In which words the planner is told."""
    outcome: Outcome
    """How its executor ended."""
    ended: float
    suggestion: str = ""
    """What its executor said should be planned in its place."""


async def failure_of(
    run: StepRun, scope: StepScope, outcome: Outcome, memory: Memory | None, ended: float
) -> StepFailure | None:
    """Says why a step that has ended is not complete; None for one that is. `memory`: the output that it wrote."""
    if scope.uncertain:
        reason = may_have_acted(scope.uncertain)
        return StepFailure(run.step, "uncertain", reason, outcome, ended)
    if scope.is_declined:
        return StepFailure(run.step, "declined", DECLINED, outcome, ended)
    if memory:
        if not scope.has_source and run.calls_skills and await is_made_up(run.step, run.log):
            return StepFailure(run.step, "nothing_looked_up", MADE_UP, outcome, ended)
        return None
    if scope.insufficient:
        reason, suggestion = scope.insufficient
        return StepFailure(run.step, "insufficient", reason, outcome, ended, suggestion)
    if violation := await run.log.violation():
        reason = f"the output is not of the shape asked for: {violation}"
        return StepFailure(run.step, "contract_violation", reason, outcome, ended)
    reason = detail_of(outcome, [scope.fault or "it ended without an output"])
    return StepFailure(run.step, "failed", reason, outcome, ended)


async def is_made_up(step: PlanStep, log: StepLog) -> bool:
    """Says whether nothing that a step was given or has looked up can have led to the output that it wrote."""
    # What earlier steps left is something to go by: to rank it, to pick from it or to word it takes no further lookup,
    # and nobody can tell from outside whether this step needed one. A step without it knows its own words alone.
    if step.inputs:
        return False
    return not await log.has_looked_up()


def status_of(failure: StepFailure) -> str:
    """How a step that is not complete is called in the log."""
    if failure.trigger in ("uncertain", "declined", "insufficient"):
        return failure.trigger
    return "failed"


def may_have_acted(skill: str) -> str:
    """Says of a skill that nobody knows what its call has done."""
    return f"a call of {skill} came to no known end; it may have acted"


def detail_of(outcome: Outcome, reasons: list[str]) -> str:
    """Returns why an agent has nothing to show: its failure, else the last of the other reasons."""
    if isinstance(outcome, Failure):
        return outcome.why
    if reasons:
        return reasons[-1]
    return "nothing was handed in"
