"""A step in words with the arguments of its skill: as the stand-in writes them when it plans, and
reads them when it executes.

`Rank the active outlets in Rivermont: weeks 8, outlet ids from outlets[].id of step 1.` is read by
any model, and exactly.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kit.models.offline.json_schema import Schema, kind_of, properties_of
from kit.models.offline.similarity import spoken

_SOURCE = re.compile(r"from (\S+) of step \d+")
_PLACE = re.compile(r"[^.\[\]]+|\[\d*\]")


def step_words(
    lead: str, values: Mapping[str, Any], sources: Mapping[str, str], step: int | None
) -> str:
    """A lead, the values of arguments, and the places in the output of a step that others are taken from."""
    pieces: list[str] = []
    for name, value in values.items():
        pieces.append(f"{spoken(name)} {_text(value)}")
    pieces += [f"{spoken(name)} from {place} of step {step}" for name, place in sources.items()]
    lead = lead.strip().rstrip(".?!:;, ")
    lead = f"{lead[:1].upper()}{lead[1:]}"
    if pieces:
        return f"{lead}: {', '.join(pieces)}."
    return f"{lead}."


def arguments_in(words: str, schema: Schema, source: Any = None) -> dict[str, Any] | None:
    """The arguments that a step's words give a skill with this input schema, some of them from the output it works on.

    None where its words are not of `step_words`, or that output has nothing at a place that they name.
    """
    names = {spoken(name): name for name in sorted(properties_of(schema), key=len)}
    arguments: dict[str, Any] = {}
    for piece in words.strip().removesuffix(".").rpartition(": ")[2].split(", "):
        name = next(
            (name for label, name in reversed(names.items()) if piece.startswith(f"{label} ")), None
        )
        if name is None:
            return None
        text = piece[len(spoken(name)) + 1 :]
        place = _SOURCE.fullmatch(text)
        if place:
            value = at(source, place[1])
        else:
            value = _value(text, properties_of(schema)[name])
        if value is None or value == []:
            return None
        arguments[name] = value
    return arguments


def at(value: Any, place: str) -> Any:
    """What stands at a place such as `rows[0].id`, or as a list at `rows[].id`; None where nothing does."""
    values = [value]
    many = False
    for part in _PLACE.findall(place):
        if part == "[]":
            values = [
                item for one in values if isinstance(one, list) for item in cast("list[Any]", one)
            ]
            many = True
        elif part[0] == "[":
            number = int(part[1:-1])
            lists: list[list[Any]] = []
            for one in values:
                if isinstance(one, list):
                    lists.append(cast("list[Any]", one))
            values: list[Any] = []
            for items in lists:
                if number < len(items):
                    values.append(items[number])
        else:
            values = [
                cast("Mapping[str, Any]", one)[part]
                for one in values
                if isinstance(one, Mapping) and part in one
            ]
    if many:
        return values
    if values:
        return values[0]
    return None


def _text(value: Any) -> str:
    """A value as it stands in a sentence: a comma would end it."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " and ".join(_text(item) for item in cast("Sequence[Any]", value))
    if isinstance(value, str):
        return " ".join(part.strip() for part in re.split("[,;:]", value))
    return json.dumps(value)


def _value(text: str, spec: Schema) -> Any:
    match kind_of(spec):
        case "string":
            return text
        case "array":
            return [_value(one, spec.get("items") or {}) for one in text.split(" and ")]
        case _:
            try:
                return json.loads(text)
            except ValueError:
                return None
