"""Holds a value against a JSON Schema that a server gave. The schema is a stranger's, so what it may cost is bounded.

A reference to elsewhere is not followed. Patterns are matched by RE2, in time proportional to the text; Python's `re`
takes exponential time for some and holds the interpreter meanwhile. A pattern that RE2 cannot take is refused.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kit.core.errors import describe_error
from kit.core.limits import excess
from kit.core.schema.json_value import is_list, is_mapping, is_object
from kit.core.schema.pointer import pointer_target

SHORT = 2_000
"""Characters of a schema that is read on the event loop; that takes some twenty milliseconds at most."""
MOST_CHARACTERS = 200_000
"""Characters of one schema, written as JSON."""
MOST_LEVELS = 64
"""Objects and lists inside one another in a schema: some thirty levels of properties."""
MOST_PLACES = 5_000
"""Places a schema has once each `$ref` is replaced by what it refers to, as readers of schemas do."""
FEW_STEPS = 2_000
"""Steps of a validation on the event loop, some ten milliseconds; one that takes more moves to a thread."""
MOST_STEPS = 500_000
"""Steps of a validation; one that takes more is given up, and that is the schema's fault."""
REFERENCE_STEPS = 10
"""Steps that following a reference counts for: it takes as long as ten simple checks."""
_REFERENCES = ("$dynamicRef", "$recursiveRef", "$ref")
_OVER_PARTS = (
    "additionalItems", "additionalProperties", "contains", "items", "patternProperties", "prefixItems",
    "propertyNames", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
"""Keywords that look at each part of a value, whatever they say of it."""
_CODE_POINT = re.compile(r"\\u([0-9a-fA-F]{4})")
_DATA = ("const", "default", "enum", "examples")
"""Keywords beneath which no schema stands."""


class SchemaTooCostly(Exception):
    """A schema that is not run: it has a pattern that RE2 does not take, or takes too many steps, or has no end."""


async def find_schema_fault(*schemas: Mapping[str, Any]) -> str | None:
    """The first fault of these schemas, as `schema_fault` words it; a long one is read on a thread."""
    for schema in schemas:
        # `json.dumps` raises for what is nested deeper than Python's own limit, so depth comes first.
        if not excess(schema, MOST_LEVELS) and len(json.dumps(schema)) < SHORT:
            fault = schema_fault(schema)
        else:
            fault = await asyncio.to_thread(schema_fault, schema)
        if fault:
            return fault
    return None


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """What keeps this from being a schema that the kit reads; None for one that it does."""
    if problem := excess(schema, MOST_LEVELS):
        return f"it holds {problem}"
    text = json.dumps(schema)
    if len(text) > MOST_CHARACTERS:
        return f"it has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read"
    return _schema_fault(text)


# A server describes the same tools at each connection, and to check a schema takes milliseconds. So
# few are remembered that the largest there may be take some ten megabytes.
@lru_cache(maxsize=64)
def _schema_fault(text: str) -> str | None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    schema = json.loads(text)
    if not isinstance(schema.get("$schema", ""), str):
        return "its $schema is no text"
    kind: Any = validator_for(schema)
    try:
        # Without a checker of formats: Python's `re` would be asked whether each pattern is one.
        kind.check_schema(schema, format_checker=None)
        _check_places(schema)
        # One that refers to itself at its root has no end whatever the value; deeper ones are found by the call.
        first_misfit(schema, {})
    except SchemaError as error:
        return error.message
    except SchemaTooCostly as error:
        return str(error)
    if '"patternProperties"' in text and '"unevaluatedProperties"' in text:
        # The only place left where jsonschema would run a pattern by Python's `re`.
        return (
            "it has both patternProperties and unevaluatedProperties, which are not read together"
        )
    return None


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    """Compiles a pattern. Raises SchemaTooCostly for a back-reference, a look-around, a count over 1,000."""
    from kit.core.extra import require

    require("mcp", "re2")
    import re2  # type: ignore[reportMissingTypeStubs]

    library: Any = re2
    options = library.Options()
    options.log_errors = False
    # Of one pattern, and its states while it matches. A pattern that needs more is refused.
    options.max_mem = 2_000_000
    # ECMA's way to write a character by its number, which RE2 spells otherwise.
    re2_pattern = _CODE_POINT.sub(r"\\x{\1}", pattern)
    try:
        return library.compile(re2_pattern, options=options)
    except (library.error, UnicodeEncodeError) as error:
        # RE2 gives its reasons as bytes.
        reason = error.args[0] if error.args else "it cannot be read"
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise SchemaTooCostly(
            f"its pattern {pattern[:100]!r} is not one that RE2 takes, and no other is run: {words[:200]}"
        ) from error


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text. Raises SchemaTooCostly for a pattern that RE2 does not take."""
    # RE2 reads UTF-8, which half of a surrogate pair has no place in.
    return _compile(pattern).search(text.encode("utf-8", "replace").decode()) is not None


def _check_places(root: Mapping[str, Any]) -> None:
    """Raises SchemaTooCostly for too many places, or for a pattern that is not run. Places are counted as whoever
    replaces each `$ref` by its target meets them: a chain of definitions that each refer twice to the next has as
    many as two to the power of its length."""
    places = 0
    waiting: list[tuple[Any, frozenset[str]]] = [(root, frozenset())]
    while waiting:
        value, references = waiting.pop()
        if is_list(value):
            waiting.extend((item, references) for item in value)
        if not is_mapping(value):
            continue
        places += 1
        if places > MOST_PLACES:
            raise SchemaTooCostly(
                f"with each $ref replaced by what it refers to it has more than {MOST_PLACES:,} places"
            )
        patterns: list[Any] = [value.get("pattern")]
        if is_mapping(by_pattern := value.get("patternProperties")):
            patterns += by_pattern
        for pattern in patterns:
            if isinstance(pattern, str):
                _compile(pattern)
        for keyword, part in value.items():
            if keyword not in _DATA:
                waiting.append((part, references))
        reference = value.get("$ref")
        # A target inside itself is met once on each way down, so a tree's schema has few places.
        if isinstance(reference, str) and reference not in references:
            waiting.append((pointer_target(root, reference), references | {reference}))


def json_fault(value: Any) -> str | None:
    """What keeps a value from being sent as JSON, such as half of a surrogate pair; None for one that can be."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return describe_error(error)
    return None


async def find_misfit(schema: Mapping[str, Any], value: Any) -> str | None:
    """Does what `first_misfit` does, on a thread once it has taken more than a few milliseconds."""
    try:
        return first_misfit(schema, value, most_steps=FEW_STEPS)
    except SchemaTooCostly:
        return await asyncio.to_thread(first_misfit, schema, value)


def first_misfit(
    schema: Mapping[str, Any], value: Any, *, most_steps: int = MOST_STEPS
) -> str | None:
    """The first place where a value breaks a schema, and how; None for a value that fits.

    Raises SchemaTooCostly once that takes more than `most_steps`.
    """
    from jsonschema.exceptions import UnknownType
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = _counting_kind(validator_for(schema))
    # A context variable, because jsonschema calls the checks of keywords with arguments of its own.
    token = _current_steps.set(_Steps(most_steps))
    try:
        # An empty registry: jsonschema's own would fetch a reference over the network.
        fault = next(kind(schema, registry=Registry[Any]()).iter_errors(value), None)
    except RecursionError as error:
        raise SchemaTooCostly("it refers to itself without end") from error
    except (Unresolvable, UnknownType) as error:
        raise SchemaTooCostly(f"it cannot be read: {describe_error(error)[:200]}") from error
    finally:
        _current_steps.reset(token)
    if fault:
        return f"{fault.json_path}: {fault.message}"[:500]
    return None


@dataclass(slots=True)
class _Steps:
    """What one validation may still cost."""

    limit: int
    count: int = 0

    def add(self, steps: int) -> None:
        self.count += steps
        if self.count > self.limit:
            raise SchemaTooCostly(
                f"to hold a value against it takes more than {self.limit:,} steps"
            )


_current_steps: ContextVar[_Steps] = ContextVar("steps of this validation")
Check = Callable[[Any, Any, Any, Mapping[str, Any]], Any]
"""How jsonschema checks one keyword: validator, the keyword's value, the instance, the schema around it."""


@lru_cache(maxsize=16)
def _counting_kind(kind: Any) -> Any:
    """The same validator, each of whose keywords takes steps before it looks at a value."""
    import jsonschema.validators

    checks: dict[str, Check] = {**kind.VALIDATORS, **_OWN_CHECKS}
    checks_in_steps = {keyword: _in_steps(keyword, check) for keyword, check in checks.items()}
    library: Any = jsonschema.validators
    return library.extend(kind, checks_in_steps)


def _in_steps(keyword: str, check: Check) -> Check:
    def check_in_steps(validator: Any, words: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        steps = 1 + _length(words)
        if keyword in _REFERENCES:
            steps += REFERENCE_STEPS
        if keyword in _OVER_PARTS:
            steps += _length(instance)
        # These compare whole values, so each place of the instance is looked at for each word.
        if keyword in ("const", "enum", "uniqueItems"):
            steps *= _places_within(instance)
        _current_steps.get().add(steps)
        return check(validator, words, instance, schema)

    return check_in_steps


def _length(value: Any) -> int:
    if is_list(value) or is_object(value):
        return len(value)
    return 0


def _places_within(value: Any) -> int:
    """How many values there are in a value, itself counted."""
    places = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        places += 1
        if is_object(item):
            waiting.extend(item.values())
        elif is_list(item):
            waiting.extend(item)
    return places


def _unique_items(
    validator: Any, wish: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Exception]:
    """Finds equal items in one pass; jsonschema's own check compares each object with each other one."""
    from jsonschema.exceptions import ValidationError

    if not wish or not is_list(instance):
        return
    texts = {json.dumps(item, sort_keys=True) for item in instance}
    if len(texts) < len(instance):
        yield ValidationError("its items are not all different")


def _pattern(
    validator: Any, pattern: str, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance[:200]!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, schemas: Mapping[str, Any], instance: Any, schema: Mapping[str, Any]
) -> Iterator[Exception]:
    if not is_object(instance):
        return
    for pattern, subschema in schemas.items():
        for name, value in instance.items():
            _current_steps.get().add(1)
            if _matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if not is_object(instance):
        return
    patterns: Mapping[str, Any] = schema.get("patternProperties", {})
    for name, value in instance.items():
        _current_steps.get().add(1 + len(patterns))
        if name in schema.get("properties", {}):
            continue
        if any(_matches(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError(
                f"Additional properties are not allowed ({name[:100]!r} was unexpected)"
            )
        else:
            yield from validator.descend(value, allowed, path=name)


_OWN_CHECKS: Mapping[str, Check] = {
    "additionalProperties": _additional_properties,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
"""What jsonschema would check by Python's `re`, or in quadratic time."""
