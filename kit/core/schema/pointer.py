"""What a JSON Pointer such as `#/$defs/name` leads to inside its own schema."""

from typing import Any
from urllib.parse import unquote

from kit.core.schema.json_value import is_list, is_mapping


def pointer_target(root: Any, reference: str) -> Any:
    """Returns what a reference leads to; None for one that leads nowhere, or to another document."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    target = root
    for step in unquote(reference).split("/")[1:]:
        # In this order: `~01` stands for `~1`, which is no slash.
        name = step.replace("~1", "/").replace("~0", "~")
        if is_mapping(target):
            target = target.get(name)
        # Python refuses to read a number of thousands of digits, which no list has as a position.
        elif is_list(target) and name.isdecimal() and len(name) < 10:
            target = target[int(name)] if int(name) < len(target) else None
        else:
            return None
    return target
