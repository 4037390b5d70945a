"""What a planner hands in: steps, each with what it has to return; and every reason why they cannot be run."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import Field

from kit.core.card import StepInputs
from kit.core.errors import ShapeError
from kit.core.schema.containment import lack
from kit.core.schema.shape import Shape, schema_of
from kit.core.value import Value

MOST_STEPS = 10
"""Steps that a plan has at most, those that are done included."""


class ReturnSpec(Value):
    """What a step returns, and what it is needed for."""

    shape: str | dict[str, Any]
    """In the notation of kit.core.schema.shape."""
    reason: str = ""


class DraftStep(StepInputs):
    """One step as a planner writes it."""

    step: int = Field(ge=1)
    task: str = Field(min_length=1)
    skills: tuple[str, ...] = Field(min_length=1)
    """The skills that its executor may call."""
    return_spec: ReturnSpec


class Draft(Value):
    """The steps that are still to be run, in order."""

    steps: tuple[DraftStep, ...]
    task_type: str | None = None
    """Of what kind the task is, in the planner's word; None where it has none."""


class Infeasible(Value):
    """Says that no plan of MOST_STEPS steps does the task with these skills."""

    reason: str


def faults(
    steps: Sequence[DraftStep],
    outputs: Mapping[str, Mapping[str, Any]],
    complete: Collection[int] = (),
) -> tuple[str, ...]:
    """Returns why steps cannot be run, each reason with its step; nothing where they can.

    `outputs`: skill -> its output schema, of the skills that the planner has loaded. `complete`: the
    numbers of the steps that are done, which no new step may have.
    """
    reasons: list[str] = []
    size = len(complete) + len(steps)
    if not steps:
        reasons.append("a plan needs at least one step")
    if size > MOST_STEPS:
        reasons.append(f"a plan has at most {MOST_STEPS} steps, this one would have {size}")
    numbers: set[int] = set()
    for step in steps:
        if step.step in complete:
            reasons.append(f"step {step.step}: a complete step has this number; take a free one")
        elif step.step <= max(numbers, default=0):
            reasons.append(
                f"step {step.step}: the steps are numbered in order, and {max(numbers)} stands before it"
            )
        for source in step.inputs:
            if source not in complete and source not in numbers:
                reasons.append(f"step {step.step}: its input, step {source}, is no step before it")
        numbers.add(step.step)
        unknown = [skill for skill in step.skills if skill not in outputs]
        if unknown:
            reasons.append(
                f"step {step.step}: skill {unknown[0]!r} was not loaded; load it, or leave it out"
            )
        elif fault := unmet(step.return_spec.shape, [outputs[skill] for skill in step.skills]):
            reasons.append(f"step {step.step}: {fault}")
    return tuple(reasons)


def unmet(shape: Shape, outputs: Collection[Mapping[str, Any]]) -> str | None:
    """Returns why a step cannot return a shape from the outputs of its skills; None where one of
    them promises each part."""
    try:
        if not schema_of(shape):
            return "its return_spec holds for anything: name the fields that the step is to return, or a type"
        parts: list[Shape] = [shape]
        if isinstance(shape, Mapping):
            # Each field by itself: one skill may promise the first, and another the second.
            parts = [{name: part} for name, part in shape.items()]
        for part in parts:
            lacks = [lack(part, output) for output in outputs]
            if None not in lacks:
                return f"no skill of this step promises {lacks[0]} of its return_spec, as its output schema says"
    except ShapeError as error:
        return str(error)
    return None
