"""Turns JSON that a model or a tool gave into sentences for a person."""

from collections.abc import Iterator
from typing import Any

from kit.core.language.words import spoken
from kit.core.limits import excess, read_json
from kit.core.schema.json_value import is_list, is_object

WORDLESS = frozenset({"", "null", "[]", "{}", "true", "false"})
"""What a tool returns, as text, where it returns nothing that a person can read."""


def prose(text: str, *, with_names: bool = False) -> str:
    """The sentences of a JSON object, an item a line, without ids and figures about itself; any other text as it is.

    `with_names`: every field by its name instead, of a list too, so that nothing is lost: `{"day": "Monday"}` is
    `Day Monday.`
    """
    if text[:1] not in ("{", "["):
        return text
    try:
        value: object = read_json(text)
    except ValueError:
        return text
    if excess(value) or not (with_names or is_object(value)):
        return text
    sentences = "\n".join(_lines(value, with_names))
    if with_names and not sentences:
        return "Nothing."
    return sentences


def _lines(value: Any, with_names: bool) -> Iterator[str]:
    """Yields what stands in an object or a list itself, then what is nested in it."""
    fields = value.items() if is_object(value) else [("", item) for item in value]
    title = ""
    # A dictionary for its order and its keys: a sentence that a model repeats is read once.
    sentences: dict[str, None] = {}
    pairs: list[str] = []
    nested: list[str] = []
    for key, part in fields:
        if is_object(part) or is_list(part):
            lines = list(_lines(part, with_names))
            if with_names and key and lines:
                lines = [f"{spoken(key).capitalize()}: {' '.join(lines)}"]
            nested += lines
        elif with_names:
            if part not in ("", None):
                pairs.append(f"{spoken(key)} {_plain(part)}".strip())
        elif not isinstance(part, str) or not part or _is_id(key):
            continue
        elif key == "title":
            title = part
        # Of a single word in a list, such as a tag, nobody knows what it says.
        elif key or " " in part:
            sentences[_sentence(part)] = None
    if pairs:
        words = ", ".join(pairs)
        if is_object(value):
            words = f"{words[:1].upper()}{words[1:]}"
        yield _sentence(words)
    body = (" " if is_object(value) else "\n").join(sentences)
    if body or title:
        yield body if body.startswith(title) else f"{title}: {body}"
    yield from nested


def _is_id(key: str) -> bool:
    return key == "id" or key.endswith(("_id", "_ids"))


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).rstrip(".")


def _sentence(text: str) -> str:
    if text[-1:] in ".!?…":
        return text
    return f"{text}."
