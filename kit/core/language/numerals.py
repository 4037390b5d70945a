"""Reads the numbers of a text, in digits and in words."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_NUMBER_OR_WORD = re.compile(
    r"(?<![\w.])(?P<digits>-?\d[\d,]*(?:\.\d+)?)(?P<thousands>k\b)?|(?P<word>[^\W\d_]+)"
)
_BETWEEN = ("", "and", "y")
"""What stands between the words of one number: two hundred and fifty, cuarenta y cinco, thirty-five."""
_SCALES = (100, 1_000, 1_000_000, 1_000_000_000)
"""Values that multiply what stands before them."""


class Number(NamedTuple):
    """A number of a text."""

    value: float
    in_words: bool
    """Whether some of it is written in words."""


def read_numbers(text: str, numerals: Mapping[str, float]) -> list[Number]:
    """Returns the numbers of a text in order: "1.5k", "two hundred and fifty", "5 thousand".

    `numerals`: the words for numbers, in lower case, with their values.
    """
    numbers: list[Number] = []
    text = text.lower()
    end = 0
    for match in _NUMBER_OR_WORD.finditer(text):
        word = match["word"]
        value = numerals.get(word) if word else _in_digits(match)
        if value is None:
            continue
        total = None
        if word and numbers and text[end : match.start()].strip(" -") in _BETWEEN:
            total = _sum(numbers[-1], value)
        if total is None:
            numbers.append(Number(value, in_words=word is not None))
        else:
            numbers[-1] = Number(total, in_words=True)
        end = match.end()
    return [number for number in numbers if abs(number.value) < 1e15]


def _in_digits(match: re.Match[str]) -> float:
    value = float(match["digits"].replace(",", ""))
    if match["thousands"]:
        value *= 1000
    return value


def _sum(number: Number, value: float) -> float | None:
    """A number with the number word after it: 25 and 100 is 2,500, 200 and 50 is 250. None where they are two."""
    if value in _SCALES:
        # "Two thousand five hundred" are 2,005 and 100: the hundred multiplies the five alone.
        scaled = number.value % (1000 if value == 100 else value * 1000)
        if 0 < scaled < value:
            return number.value - scaled + scaled * value
    room = 10 ** len(str(int(value)))
    has_room = number.value >= room and number.value % room == 0
    # Ten and five are two numbers, twenty and five are one.
    if number.in_words and has_room and number.value % 100 != 10:
        return number.value + value
    return None
