"""What the bridges to other frameworks share: objects told apart, arguments read, spend told as it grows."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from kit.bridges.part import BridgeFault, Question, Spent
from kit.core.outcome import Usage
from kit.core.schema.json_value import is_object

WAITS = "it waits for a person's decision, which a sub-agent cannot ask for"


def is_a(value: object, package: str, name: str) -> bool:
    """Whether a value is of a class of a package, or of one below it. Nothing is imported: whoever
    made the value has loaded its package."""
    for kind in type(value).__mro__:
        if kind.__name__ == name and kind.__module__.partition(".")[0] == package:
            return True
    return False


def text_with_context(question: Question) -> str:
    """The question, under what was said before: for a system that keeps no history of its own."""
    if question.prior_context:
        return f"{question.prior_context}\n\n{question.text}"
    return question.text


def arguments_of(value: object) -> Mapping[str, Any] | None:
    """The arguments of a call, which frameworks give as an object or as JSON; None where they are neither."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if is_object(value):
        return value
    return None


def text_of(value: object) -> str:
    """A framework's output as text: a value of a class of its own as JSON. Raises BridgeFault where
    that cannot be written."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return to_json(value).decode()
    except PydanticSerializationError as error:
        raise BridgeFault("contract_violation", f"an output that is no JSON: {error}") from error


class Spending:
    """Tells what a framework counts as a sum: each time what has come to it since the last."""

    def __init__(self) -> None:
        self._told = Usage()

    def grown_to(self, usage: Usage) -> Iterator[Spent]:
        """Yields what was spent since it was last asked; nothing where that is nothing."""
        told = self._told
        cost = None
        if usage.cost is not None:
            cost = usage.cost - (told.cost or 0.0)
        difference = Usage(
            input_tokens=usage.input_tokens - told.input_tokens,
            output_tokens=usage.output_tokens - told.output_tokens,
            cached_tokens=usage.cached_tokens - told.cached_tokens,
            model_calls=usage.model_calls - told.model_calls,
            cost=cost,
            untold_tokens=usage.untold_tokens,
        )
        if usage != told:
            self._told = usage
            yield Spent(difference)
