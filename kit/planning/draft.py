"""What a planner hands in: steps, each with what it has to return; and every reason why they cannot be run."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
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
    derived: tuple[str, ...] = ()
    """The fields that no skill gives and the executor works out, such as a count: held against the shape when they
    are written, and against nothing before."""

    def stored(self) -> dict[str, Any]:
        """Returns the form in which a plan keeps it: `derived` stands in it where something is."""
        unsaid = None if self.derived else {"derived"}
        return self.model_dump(mode="json", exclude=unsaid)


class DraftStep(StepInputs):
    """One step as a planner writes it."""

    step: int = Field(ge=1)
    task: str = Field(min_length=1)
    skills: tuple[str, ...]
    """The skills that its executor may call; none where it works on what earlier steps left, and on that alone."""
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
    complete: Mapping[int, Shape] = {},
) -> tuple[str, ...]:
    """Returns why steps cannot be run, each reason with its step; nothing where they can.

    `outputs`: skill -> its output schema, of the skills that the planner has loaded. `complete`: the
    numbers of the steps that are done, which no new step may have -> the shape of what each left.
    """
    reasons: list[str] = []
    size = len(complete) + len(steps)
    if not steps:
        reasons.append("a plan needs at least one step")
    if size > MOST_STEPS:
        reasons.append(f"a plan has at most {MOST_STEPS} steps, this one would have {size}")
    numbers: set[int] = set()
    promised_by_step: dict[int, Mapping[str, Any]] = {}
    for number, shape in complete.items():
        # Of a stored plan that somebody has damaged a shape may be none: then it promises nothing.
        with suppress(ShapeError):
            promised_by_step[number] = schema_of(shape)
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
            continue
        promises = [outputs[skill] for skill in step.skills]
        # What it was given it can also pass on.
        promises += [
            promised_by_step[source] for source in step.inputs if source in promised_by_step
        ]
        if not step.skills and not step.inputs:
            reasons.append(
                f"step {step.step}: it has nothing to go by; name a skill, or the steps whose outputs it works on"
            )
        elif fault := unmet(step.return_spec, promises):
            reasons.append(f"step {step.step}: {fault}")
        else:
            promised_by_step[step.step] = schema_of(step.return_spec.shape)
    return tuple(reasons)


def unmet(spec: ReturnSpec, promises: Collection[Mapping[str, Any]]) -> str | None:
    """Returns why a step cannot return what it is to return; None where each part is derived or promised by one of
    these schemas, which are those of its skills and of the steps it works on."""
    shape = spec.shape
    try:
        schema = schema_of(shape)
        if not schema:
            return "its return_spec holds for anything: name the fields that the step is to return, or a type"
        for name in spec.derived:
            if name not in schema.get("properties", {}):
                return f"{name!r} is said to be derived, and is no field of its return_spec"
        parts: list[Shape] = [shape]
        if isinstance(shape, Mapping):
            # Each field by itself: one skill may promise the first, and another the second.
            parts = [{name: part} for name, part in shape.items() if name not in spec.derived]
        for part in parts:
            lacks = [lack(part, schema) for schema in promises]
            if None not in lacks:
                return (
                    f"no skill of this step promises {lacks[0]} of its return_spec, as its output schema says; where "
                    "the step works it out, such as a count or a sum, name the field under derived too"
                )
    except ShapeError as error:
        return str(error)
    return None
