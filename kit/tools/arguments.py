"""What a tool makes of the arguments of a call: held against its schema, its defaults filled in, in one spelling.

A model writes 20, "20" and 20.0 for one amount, and leaves out or names what is the default. An act is asked for, and
known again, by what its tool would do.
"""

import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, cast

import langchain_core.tools.base
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from kit.core.errors import BindError
from kit.core.schema.json_value import is_list, is_mapping, is_object
from kit.tools.mcp.json_schema import SchemaTooCostly, find_misfit

_langchain: Any = langchain_core.tools.base
_TRUTHS = {"true": True, "false": False}
_MOST_DIGITS = 30
"""Digits of a decimal number that are written out; a model may write one with a thousand million zeros."""


async def read_arguments(tool: BaseTool, call: ToolCall) -> dict[str, Any]:
    """Returns the arguments of a call as JSON, as the tool is to get them.

    A tool that reads them in a way of its own has a `read_arguments`. Raises ValueError, or whatever the tool's own
    validators raise, for arguments that the tool refuses.
    """
    arguments: Any = dict(call["args"])
    schema = tool.args_schema
    own_reader = getattr(tool, "read_arguments", None)
    if own_reader is not None:
        arguments = await own_reader(arguments)
    elif isinstance(schema, dict):
        arguments = await fitted(schema, arguments)
    elif schema is not None:
        plain: Any = tool
        values: Mapping[str, Any] = plain._parse_input(arguments, call["id"])
        # The rest is injected: no model writes it, and it differs from call to call.
        of_model = _langchain.get_fields(tool.tool_call_schema)
        arguments = {name: value for name, value in values.items() if name in of_model}
    return _one_spelling(arguments)


async def fitted(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments as a JSON Schema means them. Raises ValueError, which says where they do not fit."""
    values = _as_schema_says(schema, dict(arguments))
    try:
        misfit = await find_misfit(schema, values)
    except (SchemaTooCostly, BindError):
        # A schema that nobody can run says nothing of the call; the tool itself will.
        misfit = None
    if misfit is not None:
        raise ValueError(misfit)
    return values


def _as_schema_says(schema: Mapping[str, Any], value: Any) -> Any:
    """Returns a value in the type that its schema names, where its text can be read so, with the defaults of its
    fields."""
    if isinstance(value, str):
        value = _read_text(value, schema.get("type"))
    if is_object(value):
        fields: dict[str, Any] = dict(value)
        properties = schema.get("properties", {})
        for name, field in properties.items() if is_mapping(properties) else ():
            if not is_mapping(field):
                continue
            if name in fields:
                fields[name] = _as_schema_says(field, fields[name])
            elif field.get("default") is not None:
                fields[name] = field["default"]
        return fields
    items = schema.get("items")
    if is_list(value) and is_mapping(items):
        return [_as_schema_says(items, item) for item in value]
    return value


def _read_text(text: str, kind: object) -> Any:
    """Returns what stands in a text, where the schema asks for a value of another type."""
    if kind == "boolean":
        return _TRUTHS.get(text.lower(), text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("integer", "number") and is_number and math.isfinite(value):
        return value
    if (kind == "object" and is_object(value)) or (kind == "array" and is_list(value)):
        return value
    return text


def _one_spelling(value: Any) -> Any:
    """Returns a value as JSON, the same for whatever is equal."""
    match value:
        case Enum():
            return _one_spelling(value.value)
        case float() if value.is_integer():
            return int(value)
        case Decimal():
            return _decimal_text(value)
        case BaseModel():
            return _one_spelling(value.model_dump())
        case Mapping():
            fields = cast("Mapping[Any, Any]", value)
            return {str(name): _one_spelling(field) for name, field in fields.items()}
        case set() | frozenset():
            return sorted(_list_of(cast("Iterable[Any]", value)), key=json.dumps)
        case list() | tuple():
            return _list_of(cast("Iterable[Any]", value))
        case _:
            return to_jsonable_python(value, fallback=str)


def _list_of(values: Iterable[Any]) -> list[Any]:
    return [_one_spelling(value) for value in values]


def _decimal_text(number: Decimal) -> str:
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return str(number)
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text
