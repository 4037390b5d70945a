"""What the tools of a planner or an executor know of the task they work in; set around its
dispatch, seen by no model."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from kit.core.documents.document import PlanStep
from kit.core.schema.shape import Shape
from kit.planning.draft import Draft, Infeasible
from kit.planning.journal import Journal
from kit.runtime.act_ledger import ActLedger
from kit.tools.skill import SkillManifest, Skills, StepSkills
from kit.tools.task_memory import Task, within_task


@dataclass(slots=True)
class PlannerScope:
    """One run of a planner: what it has loaded, and what it hands in."""

    journal: Journal
    skills: Skills
    """Finds and describes them."""
    complete: Mapping[int, Shape] = field(default_factory=dict[int, Shape])
    """The numbers of the steps that are done, which no step that it writes may have -> the shape of what each left."""
    manifests: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Skill -> its manifest, of the skills that it has loaded."""
    result: Draft | Infeasible | None = None
    """What it handed in and what held; the last one counts."""
    refusals: list[str] = field(default_factory=list[str])
    """Why drafts were sent back."""
    unreachable: str | None = None
    """Why the service of the skills gave nothing when the planner last asked about skills; None where it answered."""


@dataclass(slots=True)
class StepScope:
    """One run of an executor: the step, what it may call, and what it signals."""

    journal: Journal
    task: Task
    step: PlanStep
    manifests: Mapping[str, SkillManifest]
    """Skill -> manifest, as the plan was made from it, of the skills that it may call and no others."""
    skills: StepSkills
    """Calls them."""
    acts: ActLedger = field(default_factory=ActLedger)
    """Those of the plan, with what its user said to them."""
    fence: int = 0
    """By which this run of the plan is told from those before and after it."""
    calls: int = 0
    """Skill calls made so far; each has a number, by which a service knows it again."""
    insufficient: tuple[str, str] | None = None
    """Its reason and its suggestion, when it says that one step cannot do this."""
    has_read: bool = False
    """Whether it has read a memory that another task left."""
    fault: str | None = None
    """What went wrong with the last skill call; None where that gave data."""
    uncertain: str | None = None
    """The skill of which nobody knows whether it acted: a call of it, here or in a process that
    died, came to no known end."""
    act_keys: set[str] = field(default_factory=set[str])
    """The keys of the calls made here of skills that may not be called again."""
    open_calls: dict[str, str] = field(default_factory=dict[str, str])
    """Skill with arguments -> the key of a call that gave nothing and may have acted: made again, it is known again."""

    @property
    def is_declined(self) -> bool:
        """Whether its user said no to something that the step wanted to do: then nothing more is done in it."""
        return any(entry.what == self.step.task for entry in self.acts.in_state("declined"))

    @property
    def has_source(self) -> bool:
        """Whether it knows something that no call of its own gave: a memory, or an act that its plan made before."""
        if self.has_read:
            return True
        # An act that its user said yes to is known by its arguments, and told again to whichever step asks for it.
        for entry in self.acts.entries.values():
            if entry.what == self.step.task and entry.state == "done" and not entry.has_failed:
                return True
        return False


# Not an argument of the tools: a model would see it, and could name another step's.
_planner: ContextVar[PlannerScope | None] = ContextVar("planner_scope", default=None)
_step: ContextVar[StepScope | None] = ContextVar("step_scope", default=None)


def planner_scope() -> PlannerScope | None:
    """The run of the planner whose tool this is; None outside of plans."""
    return _planner.get()


def step_scope() -> StepScope | None:
    """The run of the executor whose tool this is; None outside of plans."""
    return _step.get()


@contextmanager
def plans(scope: PlannerScope) -> Generator[None]:
    """Sets the scope for the tools that are called inside."""
    token = _planner.set(scope)
    try:
        yield
    finally:
        _planner.reset(token)


@contextmanager
def executes(scope: StepScope) -> Generator[None]:
    """Sets the scope, and its task, for the tools that are called inside."""
    token = _step.set(scope)
    try:
        with within_task(scope.task):
            yield
    finally:
        _step.reset(token)
