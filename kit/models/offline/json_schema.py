"""Reads a JSON schema: its references and choices, the type of a field, and whether a request can fill it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.utils.json_schema import dereference_refs

Schema = Mapping[str, Any]


def without_references(schema: Schema) -> Schema:
    """The schema with every `$ref` replaced by what it names; one that names itself becomes an empty schema."""
    if "$defs" in schema or "definitions" in schema:
        return dereference_refs(dict(schema), skip_keys=[])
    return schema


def properties_of(schema: Schema) -> dict[str, Schema]:
    """The fields of an object schema by name, each as `plain` returns it; empty where it declares none."""
    fields: dict[str, Schema] = {}
    specs = cast("Mapping[str, Schema | bool]", schema.get("properties") or {})
    for name, spec in specs.items():
        fields[name] = plain(spec)
    return fields


def plain(spec: Schema | bool) -> Schema:
    """Merges `allOf` into a schema, and takes the first branch of a choice that is not null."""
    if isinstance(spec, bool):
        # JSON Schema has true for anything and false for nothing.
        return {}
    for part in spec.get("allOf") or ():
        spec = {**plain(part), **spec}
    branches = spec.get("anyOf") or spec.get("oneOf") or ()
    for branch in branches:
        branch = plain(branch)
        if branch.get("type") != "null":
            return {**spec, **branch}
    return spec


def kind_of(spec: Schema) -> str:
    """The JSON type of a field, without `null`; guessed from its keywords where none is given."""
    kind = spec.get("type")
    if isinstance(kind, list):
        kind = next((name for name in cast("list[str]", kind) if name != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in spec:
        return "object"
    if "items" in spec:
        return "array"
    return "string"


def fillable(schema: Schema) -> bool:
    """False when a required field needs something no request holds (an object, a list of objects)."""
    fields = properties_of(schema)
    for name in cast("Sequence[str]", schema.get("required") or ()):
        spec = fields.get(name, {})
        if kind_of(spec) == "array":
            spec = plain(spec.get("items") or {})
        if kind_of(spec) == "object":
            return False
    return True
