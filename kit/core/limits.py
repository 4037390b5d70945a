"""How much data from outside may hold: so deep, so large, and numbers that every reader can take."""

import math
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field

DEPTH = 32
"""Lists and objects inside one another."""
ITEMS = 20_000
"""Values and keys in all."""
CHARACTERS = 1_000_000
"""In all of its texts."""
LARGEST = 2**63 - 1
"""The largest whole number that the store can hold; anything that counts is far below."""


def excess(value: Any) -> str | None:
    """Says what is too much in JSON data: depth, size or a number; None for data within the limits."""
    items = characters = 0
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        items += 1
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, float):
            if not math.isfinite(item):
                return "a number that is none"
        elif isinstance(item, int):
            if abs(item) > LARGEST:
                return "a number of too many digits"
        elif isinstance(item, dict | list | tuple):
            if depth == DEPTH:
                return f"more than {DEPTH} levels"
            inner = cast("Any", item)
            waiting += [(part, depth + 1) for part in inner]
            if isinstance(item, dict):
                waiting += [(part, depth + 1) for part in inner.values()]
        if items + len(waiting) > ITEMS or characters > CHARACTERS:
            return f"more than {ITEMS:,} values or {CHARACTERS:,} characters"
    return None


def _limited(value: dict[str, Any]) -> dict[str, Any]:
    if problem := excess(value):
        raise ValueError(f"it holds {problem}")
    return value


Data = Annotated[dict[str, Any], AfterValidator(_limited)]
"""An object from outside. A value with more than the limits allow is refused where it is made."""
Count = Annotated[int, Field(ge=0, le=10**12)]
"""Tokens and calls: whoever reports other numbers is not believed."""
Dollars = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
