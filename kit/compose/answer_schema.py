"""The schema of a sub-agent's answers: checked with the deck, compiled once; `maxSentences` joins
the standard words."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kit.core.schema.json_value import is_list, is_mapping
from kit.core.schema.validator import Validator, validator

_ASKING = re.compile(r"question|clarif|ask_?user|follow_?up", re.IGNORECASE)
_ABBREVIATION = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Vol|vs|Jr|Sr|e\.g|i\.e)\.")
_ENDING = re.compile('(?<=[.!?…])["”’)]*\\s+(?=["“(]*[A-Z0-9])|(?<=[。\uff01\uff1f])\\s*(?=\\S)')


def answer_validator(schema: Mapping[str, Any]) -> Validator:
    """Compiles a schema that `schema_faults` found nothing wrong with."""
    return validator(schema, {"maxSentences": _max_sentences})


def schema_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """What keeps a schema from being a sub-agent's: it is no schema, or has a field for a question to the user."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield f"no JSON Schema, at {error.json_path}: {error.message}"
        return
    for name in _properties(schema):
        if _ASKING.search(name):
            yield f"field {name!r} would put a question to the user; take it out and let a low confidence speak"


def sentences(text: str) -> int:
    """How many sentences a text has; titles and the usual abbreviations end none."""
    parts = _ENDING.split(_ABBREVIATION.sub("", text))
    return sum(1 for part in parts if part and part.strip())


def _max_sentences(_: Any, limit: int, text: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    # Of anything but a text the keyword says nothing, as JSON Schema's own do.
    if isinstance(text, str) and sentences(text) > limit:
        yield ValidationError(f"{sentences(text)} sentences, {limit} allowed")


def _properties(schema: Any) -> Iterator[str]:
    if is_mapping(schema):
        for key, value in schema.items():
            if key == "properties" and is_mapping(value):
                yield from value
            yield from _properties(value)
    elif is_list(schema):
        for value in schema:
            yield from _properties(value)
