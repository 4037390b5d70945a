"""Which card a request is worded like, learnt from the requests that the descriptions of the cards list.

Word vectors say what a text is about. Only its wording says that "find a coffee deal" and "when does the coffee deal
end" are for two agents, and a description that lists requests shows both wordings.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kit.core.language.words import words
from kit.models.offline.english import NEGATED

Floats = NDArray[np.float32]

FEWEST_ITEMS = 6
"""Items from which on a sentence parted by semicolons is a list of requests."""
MOST_REQUESTS = 2000
"""Requests that are learnt from: the time it takes grows with the third power of their number."""
RIDGE = 0.5
"""How much the weights are held back. From 0.1 to 1 the consumer deck is routed equally well."""
LONGEST_WORD = 40
SIZES = (3, 4, 5)
"""Lengths of the character n-grams that a word is compared by."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
LEAD_IN = re.compile(r"^.*?(?:\bsuch as\b|\bfor example\b|:)\s*", re.IGNORECASE)


def requests_in(description: str) -> list[str]:
    """Returns the requests that a description lists, as in "Use it for requests such as a; b; c"."""
    requests: list[str] = []
    for sentence in SENTENCE_END.split(description):
        items = sentence.split(";")
        if len(items) < FEWEST_ITEMS or NEGATED.search(sentence):
            continue
        items[0] = LEAD_IN.sub("", items[0])
        for item in items:
            if words(item):
                requests.append(item.strip())
    return requests


class ExampleRequests:
    """A linear classifier of requests by the documents that list them: ridge regression over words, pairs of words and
    parts of words."""

    def __init__(self, descriptions: Sequence[str]):
        self._count = len(descriptions)
        requests: list[str] = []
        owners: list[int] = []
        for number, description in enumerate(descriptions):
            for request in requests_in(description):
                requests.append(request)
                owners.append(number)
        self._lists_none = ~np.isin(np.arange(self._count), owners)
        self.is_empty = len(set(owners)) < 2 or len(requests) > MOST_REQUESTS
        if not self.is_empty:
            self._learn(requests, np.array(owners))

    def _learn(self, requests: Sequence[str], owners: NDArray[np.intp]) -> None:
        features = [_features(request) for request in requests]
        spread: Counter[str] = Counter()
        for counts in features:
            spread.update(counts.keys())
        self._row = {feature: row for row, feature in enumerate(spread)}
        documents = np.array(list(spread.values()), np.float32)
        self._rarity = np.log((len(requests) + 1) / (documents + 0.5))
        table = np.zeros((len(requests), len(spread)), np.float32)
        for line, counts in zip(table, features, strict=True):
            rows, values = self._known(counts)
            line[rows] = values
        sizes = np.bincount(owners, minlength=self._count)
        # A card that lists many requests must not draw requests for that reason alone.
        penalty = RIDGE * sizes[owners] / sizes[owners].mean()
        wanted = np.zeros((len(requests), self._count), np.float32)
        wanted[np.arange(len(requests)), owners] = 1.0
        wanted -= wanted.mean(axis=0)
        kernel = table @ table.T + np.diag(penalty)
        shares = np.asarray(np.linalg.solve(kernel, wanted), np.float64)
        self._weights = np.asarray(table.T @ shares, np.float32)

    def score(self, text: str) -> Floats:
        """How much a text is worded like the requests of each document: about 0 for nothing, 1 for one of them.

        How a document that lists none would be asked is not known: it scores as the best of the others, so that wording
        decides nothing between the two.
        """
        if self.is_empty:
            return np.zeros(self._count, np.float32)
        rows, values = self._known(_features(text))
        scores = values @ self._weights[rows]
        scores = np.asarray(scores - scores.mean(), np.float32)
        scores[self._lists_none] = max(0.0, float(scores.max()))
        return scores

    def _known(self, counts: Counter[str]) -> tuple[list[int], Floats]:
        """The features of a text that some request has, with their weights: rare ones count for more."""
        rows: list[int] = []
        numbers: list[int] = []
        for feature, number in counts.items():
            row = self._row.get(feature)
            if row is not None:
                rows.append(row)
                numbers.append(number)
        if not rows:
            return [], np.zeros(0, np.float32)
        values = (1 + np.log(np.array(numbers, np.float32))) * self._rarity[rows]
        return rows, np.asarray(values / np.linalg.norm(values), np.float32)


def _features(text: str) -> Counter[str]:
    """Counts the words of a text, its pairs of neighbours and the n-grams of its words."""
    text_words = words(text)[:400]
    counts = Counter(text_words)
    previous = "^"
    for word in [*text_words, "$"]:
        counts[f"{previous} {word}"] += 1
        previous = word
    for word in text_words:
        padded = f"_{word[:LONGEST_WORD]}_"
        for size in SIZES:
            for start in range(len(padded) - size + 1):
                counts[padded[start : start + size]] += 1
    return counts
