"""Reads a JSON schema: its references and choices, the type of a field, and whether a request can fill it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

Schema = Mapping[str, Any]


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    """The fields of an object schema by name; empty where it declares none."""
    return cast(Mapping[str, Schema], schema.get("properties") or {})


def resolve(schema: Schema, root: Schema) -> Schema:
    """Follows references, merges `allOf`, and picks the first branch of a choice that is not null."""
    for _ in range(8):
        if "$ref" in schema:
            target: Any = root
            for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
                target = target.get(step, {})
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif schema.get("allOf"):
            union: dict[str, Any] = {}
            for part in schema["allOf"]:
                union |= resolve(part, root)
            schema = {**union, **{key: value for key, value in schema.items() if key != "allOf"}}
        elif choice := schema.get("anyOf") or schema.get("oneOf"):
            first = next((branch for branch in choice if branch.get("type") != "null"), choice[0])
            schema = {
                **{key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")},
                **first,
            }
        else:
            return schema
    return schema


def inlined(schema: Schema) -> Schema:
    """A schema whose fields and items, down to a depth, need no reference; of a choice with null the type is a list."""
    return _inlined(schema, schema, 8)


def _inlined(spec: Schema | bool, root: Schema, depth: int) -> Schema:
    if isinstance(spec, bool):  # anything, or nothing: neither says more than no keyword does
        return {}
    branches = spec.get("anyOf") or spec.get("oneOf") or ()
    spec = resolve(spec, root)
    parts: dict[str, Any] = {}
    if any(branch.get("type") == "null" for branch in branches):
        parts["type"] = [kind_of(spec), "null"]
    if depth and spec.get("properties"):
        parts["properties"] = {
            name: _inlined(part, root, depth - 1) for name, part in properties_of(spec).items()
        }
    if depth and isinstance(items := spec.get("items"), Mapping | bool):
        parts["items"] = _inlined(cast("Schema | bool", items), root, depth - 1)
    return {**spec, **parts}


def kind_of(spec: Schema) -> str:
    """The JSON type of a field, without `null`; guessed from its keywords where none is given."""
    kind = spec.get("type")
    if isinstance(kind, list):
        kind = next((k for k in cast(list[str], kind) if k != "null"), "null")
    if kind is None:
        if "properties" in spec:
            kind = "object"
        elif "items" in spec:
            kind = "array"
        else:
            kind = "string"
    return str(cast(object, kind))


def fillable(schema: Schema) -> bool:
    """False when a required field needs something no request holds (an object, a list of objects)."""
    properties = properties_of(schema)
    for name in cast(Sequence[str], schema.get("required") or ()):
        spec = resolve(properties.get(name) or {}, schema)
        kind = kind_of(spec)
        if kind == "object" or (
            kind == "array" and kind_of(resolve(spec.get("items") or {}, schema)) == "object"
        ):
            return False
    return True
