"""What a JSON Pointer such as `#/$defs/name` leads to inside its own schema."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from kit.core.json_value import is_list


def pointer_target(root: Any, reference: str) -> Any:
    """Returns what a reference leads to; None for one that leads nowhere, or to another document."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    target = root
    for step in unquote(reference).split("/")[1:]:
        # In this order: `~01` stands for `~1`, which is no slash.
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping):
            target = cast("Mapping[str, Any]", target).get(name)
        # Python refuses to read a number of thousands of digits, which no list has as a position.
        elif is_list(target) and name.isdecimal() and len(name) < 10:
            target = target[int(name)] if int(name) < len(target) else None
        else:
            return None
    return target
