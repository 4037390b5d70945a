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
        fields: Fields = {}
        for name, part in schema["properties"].items():
            fields[name] = project(value[name], part, keep)
        return fields
    if isinstance(value, list) and "items" in schema:
        items: Fields = schema["items"]
        rows: list[Any] = []
        for row in cast(list[Any], value):
            if fits(row, keep):
                rows.append(project(row, items, keep))
        if len(items.get("properties", {})) == 1:
            # Rows are dictionaries, which no set takes.
            return list({repr(row): row for row in rows}.values())
        return rows
    return cast(Any, value)


def fits(row: Any, keep: dict[str, list[Any]]) -> bool:
    """Whether a row has one of the values to keep in each of these fields that it has."""
    if isinstance(row, dict):
        for name, values in keep.items():
            if name in row and row[name] not in values:
                return False
    return True


def collect(value: Any, name: str, pattern: str, field: str = "") -> list[str]:
    """Returns the texts in a value that a pattern describes, or where there is none those that
    stand under a name, each once."""
    if isinstance(value, str):
        is_meant = re.search(pattern, value) if pattern else field in (name, name.removesuffix("s"))
        return [value] if is_meant else []
    texts: list[str] = []
    if isinstance(value, dict):
        for key, part in cast(Fields, value).items():
            texts += collect(part, name, pattern, key)
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            texts += collect(part, name, pattern, field)
    return list(dict.fromkeys(texts))
