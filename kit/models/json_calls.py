"""Tool calls read from text: what a model without tool calls of its own meant to call."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, ToolCall, ToolMessage

NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
"""Under these models write the name of a tool, and under those its arguments."""
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "tool_input", "action_input")
_TRIES = 64
"""Places in a text where JSON is looked for, so that hostile text costs linear time."""
_JSON = re.compile(r"[{\[]")
_FENCED = re.compile(r"\A\s*```\w*\s(.*)```\s*", re.DOTALL)
_GAP = "\0"
"""Stands where a call was cut out."""
_EMPTY_FRAME = re.compile(
    r"""```\w*[\s,\0]*\0[\s,\0]*(?:```|$)
        |<(\w+)>[\s,\0]*\0[\s,\0]*(?:</\1>|$)
        |<\|\w+\|>[\s,\0]*\0""",
    re.X,
)
_GAPS = re.compile(r"(?:(?<![\s,;])[\s,;]++)?\0[\s,;\0]*+")
_SAY = re.compile(r'\A\s*\{\s*"say"\s*:\s*("(?:[^"\\]|\\.)*)', re.DOTALL)
_decoder = json.JSONDecoder(strict=False)


def take_calls(
    content: str, names: Collection[str], history: Sequence[BaseMessage] = ()
) -> tuple[str, list[ToolCall]]:
    """The text without the tool calls a model wrote in it as JSON, and these in order, each with a
    fresh id.

    Understood are `{"name", "arguments"}` and `{"action", "action_input"}` objects and the like (and OpenAI's own
    nesting), alone, in a list, in code fences or tags, with any text around. Names outside `names`
    and JSON that does not parse are passed over, and a text without calls stays as it is. Never
    raises. A call that stands in what a person or a tool said in the `history` is a quotation, and
    stays in the text.
    """
    calls: list[ToolCall] = []
    texts: list[str] = []
    position = text_from = 0
    for _ in range(_TRIES):
        opener = _JSON.search(content, position)
        if opener is None:
            break
        value, position = _decode(content, opener.start())
        new_calls = list(_calls_of(value, names))
        if new_calls and not all(_is_quoted(call, history, names) for call in new_calls):
            calls += new_calls
            texts.append(content[text_from : opener.start()])
            text_from = position
    if not calls:
        return content, calls
    # What framed a call, such as a code fence or a tag, would be left over empty.
    text = _EMPTY_FRAME.sub(_GAP, _GAP.join([*texts, content[text_from:]]))
    return _GAPS.sub(" ", text).strip(), calls


def _is_quoted(call: ToolCall, history: Sequence[BaseMessage], names: Collection[str]) -> bool:
    for message in history:
        text = str(message.text)
        # Most messages do not name the tool; to look for JSON in each would cost too much.
        if not isinstance(message, HumanMessage | ToolMessage) or call["name"] not in text:
            continue
        for quote in take_calls(text, names)[1]:
            if (quote["name"], quote["args"]) == (call["name"], call["args"]):
                return True
    return False


def read_answer(text: str, names: Collection[str]) -> tuple[str, list[ToolCall]]:
    """What an answer of the form `{"say", "calls"}` says and calls; of one that was cut off, what is whole."""
    fenced = _FENCED.fullmatch(text)
    value, _ = _decode(fenced[1].strip() if fenced else text.strip(), 0)
    if isinstance(value, dict):
        answer = cast("dict[str, object]", value)
        say = answer.get("say")
        if isinstance(say, str):
            return _whole_characters(say), list(_calls_of(answer, names))
    text_alone, calls = take_calls(text, names)
    # Cut off in the middle, it is no JSON; its calls may be whole all the same.
    if _SAY.match(text):
        return say_so_far(text), calls
    return text_alone, calls


def say_so_far(text: str) -> str:
    """What the beginning of such an answer says; "" where that cannot be read yet."""
    beginning = _SAY.match(text)
    if beginning is None:
        return ""
    say = _decode(beginning[1] + '"', 0)[0]
    if not isinstance(say, str):
        return ""
    # The other half of a surrogate pair is still to come.
    if "\ud800" <= say[-1:] <= "\udbff":
        say = say[:-1]
    return _whole_characters(say)


def _whole_characters(text: str) -> str:
    return text.encode(errors="replace").decode()


def _decode(text: str, start: int) -> tuple[object, int]:
    """The JSON value at `start` and where it ends; None and the next place where there is none."""
    try:
        return _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1


def _calls_of(value: object, names: Collection[str]) -> Iterator[ToolCall]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(cast("list[object]", item)))
        elif isinstance(item, dict):
            call = _call(cast("dict[str, object]", item), names)
            if call is not None:
                yield call
            else:
                waiting.extend(reversed(list(cast("dict[str, object]", item).values())))


def _call(item: dict[str, object], names: Collection[str]) -> ToolCall | None:
    name = _field(item, NAME_KEYS)
    if not isinstance(name, str) or name not in names:
        return None
    args = _field(item, _ARGUMENT_KEYS)
    # OpenAI's own form holds the arguments as a text of JSON, and models imitate it.
    if isinstance(args, str):
        args, _ = _decode(args.strip(), 0)
    if not isinstance(args, dict) or not _sendable(cast("object", args)):
        return None
    return ToolCall(
        name=name,
        args=cast("dict[str, Any]", args),
        id=f"call_{uuid4().hex[:24]}",
        type="tool_call",
    )


def _field(item: dict[str, object], keys: Sequence[str]) -> object:
    """The value of the first of these keys that an object has."""
    for key in keys:
        if key in item:
            return item[key]
    return None


def _sendable(value: object) -> bool:
    """Whether a value survives being sent again: NaN, half surrogates and numbers too long to print do not."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True
