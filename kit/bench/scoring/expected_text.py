"""Scorers of what an answer must say, where a case knows it as one text."""

import re
import unicodedata

from kit.bench.case import Case, plain
from kit.bench.scoring.observation import Observation

EXPECTED_TEXT = ("contains", "equals")
"""Names of the scorers below."""
_AT_THE_ENDS = " .,;:!?\"'“”"


def contains(case: Case, observation: Observation) -> float | None:
    """The answer holds the expected text, as whole words and numbers, however it is spaced and cased."""
    expected = case.turns[observation.turn].expected_text
    if expected is None:
        return None
    pattern = rf"(?<![\w.]){re.escape(normalised(expected))}(?!\w|\.\d)"
    return float(re.search(pattern, normalised(observation.text)) is not None)


def equals(case: Case, observation: Observation) -> float | None:
    """The answer is the expected text and nothing else, however it is spaced and cased."""
    expected = case.turns[observation.turn].expected_text
    if expected is None:
        return None
    return float(normalised(observation.text) == normalised(expected))


def normalised(text: str) -> str:
    """A text without letter case, commas within numbers, width and ligatures of its characters (NFKC),
    runs of blanks, and the punctuation around it."""
    characters = plain(unicodedata.normalize("NFKC", text))
    return " ".join(characters.split()).strip(_AT_THE_ENDS)
