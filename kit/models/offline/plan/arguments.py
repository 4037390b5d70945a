"""Fills the arguments of a skill for a step of a plan: from the words of its task, and from the
output of the step before."""

import re
from collections.abc import Mapping
from typing import Any, cast

from kit.models.offline.arguments import Source, fill
from kit.models.offline.extraction import identifiers, numbers, quoted
from kit.models.offline.json_schema import Schema, kind_of, properties_of
from kit.models.offline.plan.projection import collect
from kit.models.offline.plan.step_words import arguments_in

_COUNTS = ("limit", "count", "top", "size")
_SOURCE = re.compile(r" from \S+ of step \d+$")
_SPAN = re.compile(r"\b\w+ (?:days?|weeks?|months?|years?)\b", re.I)


def step_arguments(schema: Schema, task: str, value: Any = None) -> dict[str, Any]:
    """Returns arguments for an input schema: those that the stand-in's planner wrote into the task,
    else what its words give.

    Ids come from the input where the task names none; a number is what it stands beside, else how
    many rows are asked for; where none is asked for, all are.
    """
    if value is None:
        own = _written(task, schema)
    else:
        own = arguments_in(task, schema, value)
    if own is not None:
        return own
    properties = properties_of(schema)
    words: dict[str, Mapping[str, Any]] = {}
    for name, spec in properties.items():
        if kind_of(spec) != "integer":
            words[name] = spec
    required = [name for name in schema.get("required", ()) if name in words]
    filled = fill({"properties": words, "required": required}, Source(task, root=schema))
    arguments = {
        name: one
        for name, one in filled.items()
        if name in required or _is_named(words[name], one, task)
    }
    for name, spec in words.items():
        if (name in required or _lists_or_ids(spec)) and (
            one := _of_input(name, spec, task, value)
        ) is not None:
            arguments[name] = one
    for name, spec in properties.items():
        if kind_of(spec) == "integer" and (number := _number(name, spec, task)) is not None:
            arguments[name] = number
    return arguments


def _written(task: str, schema: Schema) -> dict[str, Any] | None:
    """Returns the arguments that the words of a step give, aside from those that stand in a file."""
    lead, _, rest = task.strip().removesuffix(".").rpartition(": ")
    pieces = rest.split(", ")
    values: list[str] = []
    for piece in pieces:
        if not _SOURCE.search(piece):
            values.append(piece)
    if lead and not values:
        return {}
    return arguments_in(f"{lead}: {', '.join(values)}.", schema)


def _is_named(spec: Schema, value: Any, task: str) -> bool:
    """Whether a task names a value: an option or id that stands in it, a name, a quotation; no
    phrase made of its words."""
    if not isinstance(value, str) or "enum" in spec or "pattern" in spec:
        return True
    return value in quoted(task) or (value in task and value[:1].isupper())


def _of_input(name: str, spec: Schema, task: str, value: Any) -> Any:
    """Returns what the input holds for an argument, one text or a list; None where the task has it, or nobody."""
    if kind_of(spec) == "array":
        items = cast(Mapping[str, Any], spec.get("items") or {})
    else:
        items = spec
    pattern = str(items.get("pattern") or "")
    if items.get("type") != "string" or "enum" in items or (pattern and _matches(pattern, task)):
        return None
    texts = collect(value, name, pattern)
    if not texts:
        return None
    if kind_of(spec) == "array":
        return texts[: spec.get("maxItems")]
    return texts[0]


def _lists_or_ids(spec: Schema) -> bool:
    return kind_of(spec) == "array" or "pattern" in spec


def _matches(pattern: str, task: str) -> bool:
    return any(re.search(pattern, one) for one in identifiers(task))


def _number(name: str, spec: Schema, task: str) -> int | None:
    """Returns the number beside an argument's name; for one that counts rows, the number that
    belongs to nothing else."""
    beside = re.search(rf"(\w+) {re.escape(name)}\b|\b{re.escape(name)} (\d+)", task, re.I)
    if beside:
        texts = numbers(beside[1] or beside[2])
    else:
        texts = []
    if not texts and name in _COUNTS:
        rest = _SPAN.sub("", task)
        for one in identifiers(task):
            rest = rest.replace(one, "")
        texts = numbers(rest)
    least = spec.get("minimum", 0)
    most = spec.get("maximum")
    if texts:
        return int(max(least, texts[0] if most is None else min(most, texts[0])))
    if name in _COUNTS:
        return most
    return None
