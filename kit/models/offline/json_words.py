"""A JSON result in words: each field by its name, so that nothing of it is lost and nobody reads braces."""

from collections.abc import Iterator
from typing import cast

from kit.core.limits import excess, read_json
from kit.models.offline.similarity import spoken


def in_words(text: str) -> str:
    """`{"day": "Monday", "room": 3}` as `Day Monday, room 3.`, an object a line; any other text as it is."""
    if text[:1] not in "{[":
        return text
    try:
        value: object = read_json(text)
    except ValueError:
        return text
    if excess(value):
        return text
    return "\n".join(_lines(value)) or "Nothing."


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, list):
        items = cast("list[object]", value)
        plain = ", ".join([_plain(item) for item in items if _is_plain(item)])
        if plain:
            yield f"{plain}."
        for item in items:
            yield from _lines(item)
    elif isinstance(value, dict):
        pairs: list[str] = []
        nested: list[str] = []
        for key, part in cast("dict[object, object]", value).items():
            name = spoken(str(key))
            words = " ".join(_lines(part))
            if _is_plain(part):
                pairs.append(f"{name} {_plain(part)}")
            elif words:
                nested.append(f"{name.capitalize()}: {words}")
        if pairs:
            line = ", ".join(pairs)
            yield f"{line[:1].upper()}{line[1:]}."
        yield from nested


def _is_plain(value: object) -> bool:
    return value not in ("", None) and not isinstance(value, dict | list)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).rstrip(".")
