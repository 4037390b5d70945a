"""Lenient search over a few hundred rows: folded words, rare ones weigh more, and something is always found."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import log
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Match = Literal["named", "closest", "all"]
"""Rows that fit the words asked for; the best of all, because none fits; all, because no word was asked for."""
KEPT = 0.5
"""Share of the best row's score a row needs to be found beside it."""

_TOKEN = re.compile(r"[a-z0-9]+(?:-[0-9]+)?")
_NOISE = frozenset(
    """a about all also am an and any are at available be best but buy by can could currently deal did didn do does doesn don each
    earn every everything few find for from get give good got had has have help her here his how i if in info information into is
    it item its just know last latest like list little look looking lookup lot main many may me mean month more most much my near
    nearby nearest need new now of offer on one or our out over people place please point put receipt recent right search see
    send service shop should show so some something store t tell than thank that the their them then there these they thing this
    those to today told top try up us use user using ve want was way we week were what when where which who why will with work
    would you your""".split()
)


def fold(token: str) -> str:
    """A word without its plural ending."""
    if len(token) > 3 and token.endswith("ies"):
        return token[:-3] + "y"
    if len(token) > 4 and token.endswith(("ches", "shes", "sses", "xes")):
        return token[:-2]
    return token[:-1] if len(token) > 3 and token.endswith("s") and not token.endswith(("ss", "us", "is")) else token


def tokens(text: str) -> list[str]:
    """Every word of a text, folded, in order."""
    return [fold(token) for token in _TOKEN.findall(text.lower())]


def wanted(text: str) -> list[str]:
    """The words of a request that can name something, each once, in order."""
    return list(dict.fromkeys(token for token in tokens(text) if token not in _NOISE))


def weigh(parts: Iterable[tuple[float, str]]) -> dict[str, float]:
    """Words of a row with their weight; a word in two parts keeps the heavier one."""
    weights: dict[str, float] = {}
    for weight, text in parts:
        for token in tokens(text):
            weights[token] = max(weight, weights.get(token, 0.0))
    return weights


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What a search gave, best first; never empty unless there is no row at all."""

    rows: tuple[T, ...]
    match: Match
    topic: str = ""
    """The words that fit (`named`), or that did not (`closest`)."""


class Index(Generic[T]):
    """Rows with their words; rows are given in the order that breaks ties."""

    def __init__(self, rows: Iterable[T], describe: Callable[[T], Iterable[tuple[float, str]]]):
        self.rows: tuple[T, ...] = tuple(rows)
        self._words: tuple[Mapping[str, float], ...] = tuple(weigh(describe(row)) for row in self.rows)
        counts = Counter(token for words in self._words for token in words)
        self._rarity = {token: log(1 + len(self.rows) / count) for token, count in counts.items()}

    def search(self, text: str) -> Found[T]:
        """The rows that fit the words of `text`."""
        asked = wanted(text)
        known = [token for token in asked if token in self._rarity]
        if not known:
            return Found(self.rows, "closest" if asked else "all", " ".join(asked[:5]))
        scores = [sum(self._rarity[token] * words.get(token, 0.0) for token in known) for words in self._words]
        least = max(scores) * KEPT
        ranked = sorted((index for index, score in enumerate(scores) if score >= least), key=lambda index: -scores[index])
        hit = [token for token in known if any(token in self._words[index] for index in ranked)]
        return Found(tuple(self.rows[index] for index in ranked), "named", " ".join(hit[:5]))
