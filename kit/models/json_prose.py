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
    title = ""
    # A dictionary for its order and its keys: a sentence that a model repeats is read once.
    sentences: dict[str, None] = {}
    for key, part in value.items():
        if not isinstance(part, str) or not part or _names(key):
            continue
        if key == "title":
            title = part
        else:
            sentences[_sentence(part)] = None
    body = " ".join(sentences)
    if body or title:
        yield body if body.startswith(title) else f"{title}: {body}"
    for part in value.values():
        items = cast("list[object]", part) if isinstance(part, list) else [part]
        for item in items:
            if isinstance(item, dict):
                yield from _lines(cast("Mapping[str, Any]", item))
            # Of a single word, such as a tag, nobody knows what it says.
            elif isinstance(part, list) and isinstance(item, str) and " " in item:
                yield _sentence(item)


def _names(key: str) -> bool:
    return key == "id" or key.endswith(("_id", "_ids"))


def _sentence(text: str) -> str:
    if text[-1:] in ".!?…":
        return text
    return f"{text}."
