"""Tool calls that a model wrote as text, where its endpoint should have made calls of them."""

import re
from collections.abc import Collection
from typing import Any, cast

from kit.core.limits import read_json

_WRAPPING = re.compile(r"```\w*|</?(?:tool_call|function_call|tools?)>|<\|[\w ]+\|>")
"""Fences and tags that models put around such a call."""
OPENINGS = ("{", "[{", "```json", "<tool", "<function")
"""How a text begins that may be such a call: nobody reads it before all of it is there."""
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "tool_input", "action_input")
_LIST_KEYS = ("tool_calls", "function_call")
NAME_FIELD = re.compile(rf'"(?:{"|".join(_NAME_KEYS)})"\s*:\s*"([^"]{{1,100}})"')
_PYTHON = re.compile(r"\A([A-Za-z_][\w.]*)\(.*\)", re.S)


def is_written_call(text: str, tools: Collection[str] = ()) -> bool:
    """Whether a reply is a tool call written as text: JSON of a name with arguments, or one that names a tool of
    `tools` anywhere in it.

    Prose about calls is none, nor is a JSON answer that has other fields.
    """
    # nearly every reply
    if "{" not in text and "(" not in text:
        return False
    body = _WRAPPING.sub("", text).strip()
    python = _PYTHON.fullmatch(body)
    if python is not None and python[1] in tools:
        return True
    if any(name in tools for name in NAME_FIELD.findall(body)):
        return True
    try:
        value: object = read_json(body)
    except ValueError:
        return False
    return _is_call(value)


def _is_call(value: object) -> bool:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return bool(items) and all(_is_call(item) for item in items)
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, Any]", value)
    if any(key in fields for key in _LIST_KEYS):
        return True
    has_name = any(isinstance(fields.get(key), str) for key in _NAME_KEYS)
    with_arguments = any(isinstance(fields.get(key), dict | str) for key in _ARGUMENT_KEYS)
    if has_name and with_arguments:
        return True
    function = fields.get("function")
    return isinstance(function, dict) and _is_call(cast("object", function))
