"""Turns the structured (JSON) answer of a model into sentences for a person."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from kit.core.limits import excess, read_json


def prose(text: str) -> str:
    """The sentences of a JSON object, an item a line, without ids and figures about itself; any other text as it is."""
    if text[:1] != "{":
        return text
    try:
        value: object = read_json(text)
    except ValueError:
        return text
    if isinstance(value, dict) and not excess(value):
        return "\n".join(_lines(cast("Mapping[str, Any]", value)))
    return text


def _lines(value: Mapping[str, Any]) -> Iterator[str]:
    strings: list[tuple[str, str]] = []
    for key, part in value.items():
        if isinstance(part, str) and part and not _names(key):
            strings.append((key, part))
    body = " ".join(dict.fromkeys(_sentence(part) for key, part in strings if key != "title"))
    title = next((part for key, part in strings if key == "title"), "")
    if body or title:
        yield body if body.startswith(title) else f"{title}: {body}"
    for part in value.values():
        for item in cast(
            "list[object]",
            part if isinstance(part, list) else [part] if isinstance(part, dict) else [],
        ):
            if isinstance(item, dict):
                yield from _lines(cast("Mapping[str, Any]", item))
            elif isinstance(item, str) and " " in item:
                yield _sentence(item)


def _names(key: str) -> bool:
    return key == "id" or key.endswith(("_id", "_ids"))


def _sentence(text: str) -> str:
    if text[-1:] in ".!?…":
        return text
    return f"{text}."
