"""Whether an output schema promises a shape: decided without a value, and never yes where some value would say no."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.core.schema.json_value import is_list, is_mapping
from kit.core.schema.pointer import pointer_target
from kit.core.schema.shape import Shape, schema_of
from kit.core.schema.validator import validator

Schema = Mapping[str, Any]
SPLITS = 3
"""Alternatives within alternatives that are followed; deeper ones count as unknown."""


def lack(shape: Shape, output: Schema) -> str | None:
    """Returns the place of the first part of a shape that an output schema does not promise; None
    where it promises all.

    Sound: what validates against `output` then validates against `schema_of(shape, closed=False)`.
    Keywords that are not understood promise nothing. Raises ShapeError.
    """
    # A reference below an `$id` of its own means another document, so none is followed there.
    has_inner_ids = json.dumps(output, default=str).count('"$id"') > int("$id" in output)
    document = _Output({} if has_inner_ids else output)
    return document.lack([output], schema_of(shape, closed=False), "$", SPLITS)


@dataclass(frozen=True, slots=True)
class _Output:
    root: Schema
    """What `#/...` refers to."""

    def lack(
        self, schemas: Sequence[Any], part: Schema, field_path: str, splits: int
    ) -> str | None:
        """Returns the first place at which a value that fits all these schemas need not fit the part."""
        if not part:
            return None
        every = list(self.flat(schemas))
        if any(_only(schema, part) for schema in every):
            return None
        reason = self.direct(every, part, field_path, splits)
        if reason is None or self.split(every, part, field_path, splits):
            return None
        return reason

    def flat(self, schemas: Sequence[Any]) -> Iterator[Schema]:
        """Yields these schemas and all that hold along with them: what they refer to, and the members of `allOf`."""
        queue = list(schemas)
        seen = set[str]()
        while queue:
            schema = queue.pop(0)
            if not is_mapping(schema):
                continue
            yield schema
            queue += _list(schema.get("allOf"))
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                queue.append(pointer_target(self.root, reference))

    def direct(
        self, schemas: Sequence[Schema], part: Schema, field_path: str, splits: int
    ) -> str | None:
        """As `lack`, by what holds of every value."""
        wanted = {part["type"]}
        # To JSON Schema every integer is a number too.
        if part["type"] == "number":
            wanted.add("integer")
        if not any(types and types <= wanted for types in map(_types, schemas)):
            return field_path
        for name, field in part.get("properties", {}).items():
            spot = f"{field_path}.{name}"
            if not any(name in _list(schema.get("required")) for schema in schemas):
                return spot
            inner: list[Any | None] = []
            for schema in schemas:
                properties = schema.get("properties")
                if is_mapping(properties):
                    inner.append(properties.get(name))
            if reason := self.lack(inner, field, spot, splits):
                return reason
        if items := part.get("items"):
            return self.items(schemas, items, f"{field_path}[]", splits)
        return None

    def items(
        self, schemas: Sequence[Schema], part: Schema, field_path: str, splits: int
    ) -> str | None:
        """As `lack`, for each item of an array: those at the head have schemas of their own."""
        heads = max((len(_list(schema.get("prefixItems"))) for schema in schemas), default=0)
        for index in range(heads + 1):
            item_schemas: list[Any] = []
            for schema in schemas:
                head = _list(schema.get("prefixItems"))
                item_schemas.append(head[index] if index < len(head) else schema.get("items"))
            if reason := self.lack(item_schemas, part, field_path, splits):
                return reason
        return None

    def split(self, schemas: Sequence[Schema], part: Schema, field_path: str, splits: int) -> bool:
        """Whether some schema has alternatives, each of which, with all else, promises the part."""
        if not splits:
            return False
        for number, schema in enumerate(schemas):
            for word in ("anyOf", "oneOf"):
                options = _list(schema.get(word))
                # `allOf` and `$ref` are followed already: their targets are among the schemas.
                remaining = {**schema, word: None, "allOf": None, "$ref": None}
                known = [*schemas[:number], remaining, *schemas[number + 1 :]]
                if options and all(
                    self.lack([*known, option], part, field_path, splits - 1) is None
                    for option in options
                ):
                    return True
        return False


def _only(schema: Schema, part: Schema) -> bool:
    """Whether a schema lists its values, and each fits the part."""
    values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
    return bool(values) and all(validator(part).wrong(value) is None for value in values)


def _types(schema: Schema) -> set[Any]:
    types = schema.get("type")
    if isinstance(types, str):
        return {types}
    return set(_list(types))


def _list(value: Any) -> list[Any]:
    if is_list(value):
        return value
    return []
