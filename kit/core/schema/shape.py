"""The notation of shapes, `array<{outlet_id, score: number}>`: what somebody is to return, read
into JSON Schema.

A shape is a text or a mapping from fields to shapes. Its types are string, number, integer,
boolean, null, any, object, `array`, `array<type>` and `{field, field: type}`, which names one field
at least; a field without a type may hold anything.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from kit.core.errors import ShapeError, nearest
from kit.core.schema.json_value import is_mapping

Shape: TypeAlias = str | Mapping[str, Any]
SCALARS = ("string", "number", "integer", "boolean", "null")
TYPES = (*SCALARS, "any", "object", "array")
DEEPEST = 32
"""Levels of a shape; what lies deeper in a value is `any`."""
_TOKEN = re.compile(r"\s*(?:([A-Za-z_][\w-]*)|(.))")


def schema_of(shape: Shape, *, closed: bool = True) -> dict[str, Any]:
    """Returns the JSON Schema of a shape: every field is required, and where it is `closed` there is no other.

    Raises ShapeError, which names the field and the character, for a text that is no shape.
    """
    return _schema(shape, closed, "", 0)


def shape_of(value: Any) -> Shape:
    """Returns the narrowest shape in the notation that a JSON value has."""
    if is_mapping(value) and value:
        return {key: _text(_type(item, 1)) for key, item in value.items()}
    return _text(_type(value, 0))


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, field_path: str, closed: bool):
        self.text = text
        self.field_path = field_path
        self.closed = closed
        self.position = 0

    def fault(self, wanted: str) -> ShapeError:
        remaining = self.text[self.position :].strip()
        field = f"field {self.field_path!r}, " if self.field_path else ""
        return ShapeError(
            f"shape {self.text!r}: {field}character {self.position + 1}: {wanted}, not {remaining[:20]!r}"
        )

    def token(self) -> tuple[str, str]:
        """The word, or else the sign, that comes next; both empty at the end."""
        match = _TOKEN.match(self.text, self.position)
        # White space at the end is a sign of its own to the pattern, and none here.
        if match and match.group().strip():
            return (match[1] or "", match[2] or "")
        return ("", "")

    def step(self) -> None:
        match = _TOKEN.match(self.text, self.position)
        if match:
            self.position = match.end()

    def accept(self, sign: str) -> bool:
        fits = self.token()[1] == sign
        if fits:
            self.step()
        return fits

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.fault(f"expected {sign!r}")

    def type(self, depth: int) -> dict[str, Any]:
        word, sign = self.token()
        if depth > DEEPEST:
            raise self.fault(f"expected at most {DEEPEST} levels")
        if sign == "{":
            return self.fields(depth)
        if word not in TYPES:
            hint = f" ({nearest(word, TYPES)})" if word else ""
            raise self.fault(f"expected a type{hint}")
        self.step()
        if word == "any":
            return {}
        schema: dict[str, Any] = {"type": word}
        if word == "array" and self.accept("<"):
            items = self.type(depth + 1)
            self.expect(">")
            # `array<any>` is `array`: an empty schema of items would promise nothing.
            if items:
                schema["items"] = items
        return schema

    def fields(self, depth: int) -> dict[str, Any]:
        self.expect("{")
        properties: dict[str, Any] = {}
        while True:
            name, _ = self.token()
            if not name:
                raise self.fault("expected the name of a field")
            if name in properties:
                raise self.fault("expected a field that is not there yet")
            self.step()
            properties[name] = self.type(depth + 1) if self.accept(":") else {}
            if not self.accept(","):
                self.expect("}")
                return _object(properties, self.closed)


def _schema(shape: Any, closed: bool, field_path: str, depth: int) -> dict[str, Any]:
    if isinstance(shape, str):
        reader = _Reader(shape, field_path, closed)
        schema = reader.type(depth)
        if reader.token() != ("", ""):
            raise reader.fault("expected the end")
        return schema
    label = f"field {field_path!r}" if field_path else f"shape {shape!r}"
    if not is_mapping(shape) or depth > DEEPEST:
        raise ShapeError(f"{label}: expected a text, or a mapping of at most {DEEPEST} levels")
    if not shape:
        raise ShapeError(f"{label}: expected the name of a field, or `object` for whatever it has")
    properties: dict[str, Any] = {}
    for name, part in shape.items():
        path = f"{field_path}.{name}" if field_path else name
        properties[name] = _schema(part, closed, path, depth + 1)
    return _object(properties, closed)


def _object(properties: dict[str, Any], closed: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["required"] = list(properties)
    if closed:
        schema["additionalProperties"] = False
    return schema


def _type(value: Any, depth: int) -> Any:
    """Returns a type as the word, as the fields of an object, or as ("array", type of the items)."""
    match value:
        case _ if depth > DEEPEST:
            return "any"
        case None:
            return "null"
        # Before int: to Python a truth value is a number.
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            fields: dict[str, Any] = {}
            for key, item in cast("Mapping[Any, Any]", value).items():
                fields[str(key)] = _type(item, depth + 1)
            # The notation has no quotes, so a field of another name cannot be written in it.
            if fields and all(re.fullmatch(r"[A-Za-z_][\w-]*", name) for name in fields):
                return fields
            return "object"
        case list() | tuple():
            kinds = [_type(item, depth + 1) for item in cast("Sequence[Any]", value)]
            return ("array", _common(kinds) if kinds else "any")
        case _:
            return "any"


def _common(kinds: Sequence[Any]) -> Any:
    """Returns the narrowest type that covers all of these."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(isinstance(kind, dict) and kind.keys() == first.keys() for kind in kinds):
        return {name: _common([kind[name] for kind in kinds]) for name in first}
    if all(isinstance(kind, tuple) for kind in kinds):
        return ("array", _common([kind[1] for kind in kinds]))
    if set(map(str, kinds)) <= {"integer", "number"}:
        return "number"
    if all(kind == "object" or isinstance(kind, dict) for kind in kinds):
        return "object"
    return "any"


def _text(kind: Any) -> str:
    match kind:
        case ("array", items):
            if items == "any":
                return "array"
            return f"array<{_text(items)}>"
        case dict():
            fields: list[str] = []
            for name, part in cast("dict[str, Any]", kind).items():
                fields.append(name if part == "any" else f"{name}: {_text(part)}")
            return "{" + ", ".join(fields) + "}"
        case _:
            return kind
