"""Resolves references by position: which shown component "the third offer", "#2" or "the last one" means."""

import re
from collections.abc import Sequence

from kit.core.language.words import word_set, words
from kit.core.record import ShownComponent

LAST = 0
"""Stands for the last of however many there were."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = re.compile(
    rf"\b(?:the|that|this|your|my)\s+(?P<name>{'|'.join(_ORDINALS)}|last|\d{{1,2}}(?:st|nd|rd|th))\b(?P<rest>[^.?!,;]*)", re.I
)
_NUMBER = re.compile(r"(?:\b(?:number|option|no\.?)\s*|#)(?P<name>\d{1,2})\b(?P<rest>)", re.I)
_OF_TIME = word_set("day days week weeks weekend month months year years time times night visit purchase order")
"""What "last" and "first" say when, not which, of."""
_THINGS = ("deal", "item", "result", "option", "thing")
"""Words for whatever was shown."""


def parse_ordinal(text: str) -> tuple[int, str] | None:
    """The place a text speaks of, 1 for the first and LAST for the last, and the noun after it ("" for "one" or nothing).

    None where it speaks of none: "last week" is a time, not a place.
    """
    match = _match(text)
    if match is None:
        return None
    noun = _noun(match)
    return _number(match["name"].lower()), "" if noun in ("one", "ones") else noun.rstrip("s")


def resolve(text: str, components: Sequence[ShownComponent]) -> ShownComponent | None:
    """Which of the things last shown a text means by its place; None where it names none, or one that was not there."""
    ordinal = parse_ordinal(text)
    if ordinal is None:
        return None
    number, noun = ordinal
    among = [one for one in components if noun and one.type.startswith(noun)] or list(components)
    if number == LAST:
        return among[-1] if among else None
    return next((one for one in among if one.position == number), None)


def spell_out(text: str, one: ShownComponent) -> str:
    """The text with what it means in place of the words that point: "when does the third one end" as "when does X end"."""
    match = _match(text)
    if match is None:
        return text
    noun, rest = _noun(match), text[match.end("name") :]
    if noun in ("one", "ones") or noun.rstrip("s") in (one.type, *_THINGS):
        rest = re.sub(rf"^\s*{noun}", "", rest, flags=re.I)
    rest = re.sub(r"^\s+(?:that\s+)?you\s+(?:showed|gave|listed|found)(?:\s+me)?\b", "", rest, flags=re.I)
    return f"{text[: match.start()]}{one.title or one.id}{rest}"


def _match(text: str) -> re.Match[str] | None:
    return next((m for m in (*_ORDINAL.finditer(text), *_NUMBER.finditer(text)) if _noun(m) not in _OF_TIME), None)


def _noun(match: re.Match[str]) -> str:
    return next(iter(words(match["rest"])), "")


def _number(name: str) -> int:
    if name == "last":
        return LAST
    return _ORDINALS.index(name) + 1 if name in _ORDINALS else int(re.sub(r"\D", "", name))
