"""What of a result a step returns: the fields that its return spec names, of the rows that its task
names.

The stand-in runs this over what it can read, and as the source of its script over what it cannot:
it imports what a script may.
"""

import re
from typing import Any, cast

Fields = dict[str, Any]


def project(value: Any, schema: Fields, keep: dict[str, list[Any]]) -> Any:
    """Returns the parts of a value that a JSON Schema names. Raises KeyError with the field that is not there.

    `keep`: field -> the values that a row may have in it. Rows that are left with one field are given once each.
    """
    if isinstance(value, dict) and "properties" in schema:
        fields = cast(Fields, value)
        return {
            name: project(fields[name], part, keep) for name, part in schema["properties"].items()
        }
    if isinstance(value, list) and "items" in schema:
        items: Fields = schema["items"]
        parts: list[Any] = []
        for row in cast(list[Any], value):
            if fits(row, keep):
                parts.append(project(row, items, keep))
        if len(items.get("properties", {})) == 1:
            return list({repr(part): part for part in parts}.values())
        return parts
    return cast(Any, value)


def fits(row: Any, keep: dict[str, list[Any]]) -> bool:
    """Whether a row has one of the values to keep in each of these fields that it has."""
    return not isinstance(row, dict) or all(
        row[name] in values for name, values in keep.items() if name in row
    )


def collect(value: Any, name: str, pattern: str, place: str = "") -> list[str]:
    """Returns the texts in a value that a pattern describes, or where there is none those that
    stand under a name, each once."""
    if isinstance(value, dict):
        pairs = list(cast(Fields, value).items())
    elif isinstance(value, list):
        pairs = [(place, one) for one in cast(list[Any], value)]
    else:
        own = isinstance(value, str) and (
            re.search(pattern, value) if pattern else place in (name, name.removesuffix("s"))
        )
        if own:
            return [value]
        return []
    return list(
        dict.fromkeys(text for place, part in pairs for text in collect(part, name, pattern, place))
    )
