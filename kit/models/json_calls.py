"""Tool calls read from text: what a model without tool calls of its own meant to call."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import ToolCall

_TRIES = 64
"""Places in a text where JSON is looked for, so that hostile text costs linear time."""
_JSON = re.compile(r"[{\[]")
_FENCED = re.compile(r"\s*```\w*\s*(.*?)\s*```\s*", re.DOTALL)
_EMPTY_FRAME = re.compile(r"```\w*\s*(?:```|$)|<(\w+)>\s*(?:</\1>|$)")
_SAY = re.compile(r'\s*\{\s*"say"\s*:\s*("(?:[^"\\]|\\.)*)')
_decoder = json.JSONDecoder()


def calls_in(content: str, names: Collection[str]) -> list[ToolCall]:
    """Tool calls that a model wrote as JSON in its text, in order, each with a fresh id.

    Understood are `{"name", "arguments"}` and `{"tool", "args"}` objects (OpenAI's own nesting too), alone, in a list, in code fences
    or tags, with any text around. Names outside `names` and JSON that does not parse are passed over; nothing raises.
    """
    return split(content, names)[1]


def split(content: str, names: Collection[str]) -> tuple[str, list[ToolCall]]:
    """The text without the calls in it, and the calls."""
    calls: list[ToolCall] = []
    rest: list[str] = []
    at = done = 0
    for _ in range(_TRIES):
        opener = _JSON.search(content, at)
        if opener is None:
            break
        try:
            value, at = _decoder.raw_decode(content, opener.start())
        except (ValueError, RecursionError):
            at = opener.end()
            continue
        if found := list(_calls_of(value, names)):
            calls += found
            rest.append(content[done : opener.start()])
            done = at
    if not calls:
        return content, calls
    text = _EMPTY_FRAME.sub("", "".join([*rest, content[done:]])).strip()
    return (text if re.search(r"\w", text) else ""), calls


def _calls_of(value: object, names: Collection[str]) -> Iterator[ToolCall]:
    open_values = [value]
    while open_values:
        match open_values.pop():
            case list() as items:
                open_values.extend(reversed(cast(list[object], items)))
            case dict() as item:
                call = _call(cast(dict[str, object], item), names)
                if call is None:
                    open_values.extend(reversed(list(cast(dict[str, object], item).values())))
                else:
                    yield call
            case _:
                pass


def _call(item: dict[str, object], names: Collection[str]) -> ToolCall | None:
    name = item.get("name", item.get("tool"))
    if not isinstance(name, str) or name not in names:
        return None
    args = item.get("arguments", item.get("args", item.get("parameters")))
    try:
        args = json.loads(args) if isinstance(args, str) else args
        json.dumps(args, ensure_ascii=False, allow_nan=False).encode()  # half surrogates and NaN would break a later request
    except (ValueError, RecursionError):
        return None
    return (
        ToolCall(name=name, args=cast(dict[str, Any], args), id=fresh_id(), type="tool_call") if isinstance(args, dict) else None
    )


def answer(text: str, names: Collection[str]) -> tuple[str, list[ToolCall]]:
    """What a schema-bound answer says and calls; of one that was cut off, what is whole."""
    fenced = _FENCED.fullmatch(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(say := cast(dict[str, object], value).get("say"), str):
        return say, list(_calls_of(cast(object, value), names))
    rest, calls = split(text, names)
    if begun := _SAY.match(text):
        try:
            rest = json.loads(begun[1] + '"')
        except ValueError:
            rest = ""
    return rest, calls


def fresh_id() -> str:
    return f"call_{uuid4().hex[:24]}"


