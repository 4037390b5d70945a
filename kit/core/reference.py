"""A place in what was shown: which one "the third offer", "#2" or "the last one" means (PC1-S5.6d)."""

import re

from kit.core.words import listed, words

LAST = 0
"""Stands for the last of however many there were."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = re.compile(
    rf"\b(?:the|that|this|your|my)\s+(?P<name>{'|'.join(_ORDINALS)}|last|\d{{1,2}}(?:st|nd|rd|th))\b(?P<rest>[^.?!,;]*)", re.I
)
_NUMBER = re.compile(r"(?:\b(?:number|option|no\.?)\s*|#)(?P<name>\d{1,2})\b(?P<rest>)", re.I)
_OF_TIME = listed("day days week weeks weekend month months year years time times night visit purchase order")
"""What "last" and "first" say when, not which, of."""


def place(text: str) -> tuple[int, str] | None:
    """The place a text speaks of, 1 for the first and LAST for the last, and the noun after it ("" for "one" or nothing).

    None where it speaks of none: "last week" is a time, not a place.
    """
    for found in (*_ORDINAL.finditer(text), *_NUMBER.finditer(text)):
        noun = next(iter(words(found["rest"])), "")
        if noun not in _OF_TIME:
            name = found["name"].lower()
            return _number(name), "" if noun in ("one", "ones") else noun.rstrip("s")
    return None


def _number(name: str) -> int:
    if name == "last":
        return LAST
    return _ORDINALS.index(name) + 1 if name in _ORDINALS else int(re.sub(r"\D", "", name))
