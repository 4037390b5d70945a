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


def lack(shape: Shape, output: Schema) -> str | None:
    """Returns the place of the first part of a shape that an output schema does not promise; None
    where it promises all.

    Sound: what validates against `output` then validates against `schema_of(shape, closed=False)`.
    Keywords that are not understood promise nothing, and neither do alternatives. Raises ShapeError.
    """
    # A reference below an `$id` of its own means another document, so none is followed there.
    has_inner_ids = json.dumps(output, default=str).count('"$id"') > int("$id" in output)
    document = _Output({} if has_inner_ids else output)
    return document.lack([output], schema_of(shape, closed=False), "$")


@dataclass(frozen=True, slots=True)
class _Output:
    root: Schema
    """What `#/...` refers to."""

    def lack(self, schemas: Sequence[Any], part: Schema, field_path: str) -> str | None:
        """Returns the first place at which a value that fits all these schemas need not fit the part."""
        if not part:
            return None
        every = list(self.flat(schemas))
        if any(_only(schema, part) for schema in every):
            return None
        wanted_types = {part["type"]}
        # To JSON Schema every integer is a number too.
        if part["type"] == "number":
            wanted_types.add("integer")
        if not any(types and types <= wanted_types for types in map(_types, every)):
            return field_path
        for name, field in part.get("properties", {}).items():
            spot = f"{field_path}.{name}"
            if not any(name in _list(schema.get("required")) for schema in every):
                return spot
            inner: list[Any] = []
            for schema in every:
                properties = schema.get("properties")
                if is_mapping(properties):
                    inner.append(properties.get(name))
            if reason := self.lack(inner, field, spot):
                return reason
        if items := part.get("items"):
            # Items at the head of an array may have schemas of their own: then those of the others promise nothing.
            item_schemas = [schema.get("items") for schema in every if "prefixItems" not in schema]
            return self.lack(item_schemas, items, f"{field_path}[]")
        return None

    def flat(self, schemas: Sequence[Any]) -> Iterator[Schema]:
        """Yields these schemas and all that hold along with them: what they refer to, and the members of `allOf`."""
        queue = list(schemas)
        references = set[str]()
        while queue:
            schema = queue.pop(0)
            if not is_mapping(schema):
                continue
            yield schema
            queue += _list(schema.get("allOf"))
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference not in references:
                references.add(reference)
                queue.append(pointer_target(self.root, reference))


def _only(schema: Schema, part: Schema) -> bool:
    """Whether a schema lists its values, and each fits the part."""
    if "const" in schema:
        values = [schema["const"]]
    else:
        values = _list(schema.get("enum"))
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
