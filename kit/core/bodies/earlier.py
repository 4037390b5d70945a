"""Shapes in which earlier versions stored calls, read at the one border where a stored value becomes a body.

A call was once stored as the text `name({'query': 'beans'})`, a message as a line with its
calls behind it, and how a call failed only in the words of its error.
"""

import ast
from typing import Any, get_args

from kit.core.errors import STOP
from kit.core.outcome import Reason
from kit.core.schema.json_value import is_object

_CALL = "\n→ "
"""What stood before each call in the line of a model's message."""
_REASONS: frozenset[str] = frozenset(get_args(Reason))
_NOT_CALLED = ("are no JSON object", "not asked again in this turn")
"""How the errors of tool calls ended that no tool was called for."""
_KINDS: dict[str, Reason] = {
    "TimeoutError": "timeout",
    "OverBudget": "budget",
    "Paused": "paused",
    STOP: "cancelled",
}
"""Kinds of failures by the name that stood in their place."""


def call_fields(value: Any) -> Any:
    """Returns the fields of a call; arguments that are no literal are kept under the name `text`."""
    if not isinstance(value, str):
        return value
    name, _, arguments = value.partition("(")
    text = arguments.removesuffix(")")
    try:
        args = ast.literal_eval(text)
    # What a model called with was any text, so its literal may be anything, also one without end.
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        args = None
    if is_object(args):
        return {"name": name, "args": args}
    return {"name": name, "args": {"text": text}}


def message_fields(value: Any) -> Any:
    """Returns the fields of a message that was stored as a line, such as `human: hello`."""
    if not isinstance(value, str):
        return value
    role, _, text = value.partition(": ")
    # Only a model's message had calls behind it; a person may write the same arrow.
    if role != "ai":
        return {"role": role, "text": text}
    text, *calls = text.split(_CALL)
    return {"role": role, "text": text, "calls": calls}


def model_end_fields(value: Any) -> Any:
    """Returns the fields of a model call's end, with the failure that only its error told of."""
    if not _lacks_failure(value):
        return value
    error = str(value["error"])
    name, _, text = error.partition(": ")
    if name in _KINDS:
        failure = {"kind": _KINDS[name], "type": name, "text": text}
    elif name.isidentifier():
        failure = {"kind": "exception", "type": name, "text": text}
    else:
        failure = {"kind": "exception", "type": "RuntimeError", "text": error}
    return {**value, "failure": failure}


def tool_end_fields(value: Any) -> Any:
    """Returns the fields of a tool call's end, with the failure that only its error told of."""
    if not _lacks_failure(value):
        return value
    error = str(value["error"])
    was_called = not error.startswith("not_allowed") and not error.endswith(_NOT_CALLED)
    return {**value, "failure": _tool_failure(error), "was_called": was_called}


def act_fields(value: Any) -> Any:
    """Returns the fields of an act, with the failure that only its error told of."""
    if not _lacks_failure(value):
        return value
    return {**value, "failure": _tool_failure(str(value["error"]))}


def _lacks_failure(value: Any) -> bool:
    if not is_object(value):
        return False
    return bool(value.get("error")) and not value.get("failure")


def _tool_failure(error: str) -> dict[str, str]:
    name, _, text = error.partition(": ")
    if name in _REASONS:
        return {"kind": name, "text": text}
    return {"kind": _KINDS.get(name, "exception"), "type": name, "text": text}
