"""Which of several documents a text is worded like, learnt from what people ask of each.

Word vectors say what a text is about. Only its wording says that "find a coffee deal" and "when does the coffee deal
end" are for two agents, and that "how do I boil an egg" is for none of them.
"""

import inspect
import json
import logging
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2s
from importlib.util import cache_from_source
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from kit.core.language.words import words

Floats = NDArray[np.float32]

log = logging.getLogger("kit.models")

MOST_WORDS = 400
"""Words of one text that are compared."""
LONGEST_WORD = 40
GRAM_SIZES = (3, 4)
"""Lengths of the parts of a word that are compared."""
MOST_REQUESTS = 8000
"""Requests that are learnt from, about: six thousand take three seconds, and the time grows with their number."""
LONG_TO_LEARN = 500
"""Requests from which on what was learnt is kept in a file."""
LEARNERS = ("wording.py", "sentence_classifier.py", "minilm.py")
"""The modules beside this one, and itself, whose code decides what is learnt."""
MOST_KEPT = 60
"""Files of what was learnt, a megabyte each at most: every change of a card's requests makes new ones."""
MOST_AGAINST = 4
"""Messages for nobody here that are learnt from, for each request of a deck."""
DRAWN = 2
"""Times that a word counts as seen in its usual places, beside those where it was seen."""
FEWEST = 2
"""Requests that must have a term before anything is learnt of it: it halves the time, and no figure."""
RIDGE = 0.2
"""How much the learnt weights are held back. From 0.05 to 0.5 the requests of the consumer deck tell one another's
cards equally well, each left out once."""
PRECISION = 1e-4
"""What may be missing of the solution, as a share of what is wanted. The weights are then right to 0.00005."""
MOST_STEPS = 500
"""Towards the solution; 80 are enough for 5,000 requests."""
TINY = np.float32(1e-20)
"""Keeps a list that is solved already from dividing by nothing."""


@lru_cache(maxsize=1)
def _all_elsewhere() -> tuple[str, ...]:
    text = Path(__file__).with_name("elsewhere.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def elsewhere(requests: int) -> Sequence[str]:
    """What people ask that a deck of lookups has nothing on: general knowledge, chores, moods, who answers.

    `requests`: those that a deck lists. Of a few, as few are set against them as they can hold their own against.
    """
    lines = _all_elsewhere()
    return lines[:: 1 + len(lines) // (MOST_AGAINST * max(1, requests))]


def grams(tokens: Sequence[str]) -> list[str]:
    """The parts of words."""
    parts: list[str] = []
    for token in tokens:
        padded = f" {token[:LONGEST_WORD]} "
        for size in GRAM_SIZES:
            for start in range(len(padded) - size + 1):
                parts.append(padded[start : start + size])
    return parts


def _terms_of(text: str) -> list[str]:
    """The words of a request, its pairs of neighbours and the parts of its words."""
    tokens = words(text)[:MOST_WORDS]
    pairs = [f"{first}+{second}" for first, second in pairwise(["^", *tokens, "$"])]
    return [*grams(tokens), *pairs, *(f"{token}+" for token in tokens)]


class TermTable:
    """Terms and their weights: one that few of some texts have counts for more."""

    def __init__(self, terms: Sequence[str], rarity: Floats):
        self.terms = terms
        self.rarity = rarity
        self._column = {term: column for column, term in enumerate(terms)}

    @classmethod
    def of(cls, texts: Sequence[list[str]], *, base: float, fewest: int = 1) -> "TermTable":
        """Counts the terms that at least `fewest` of the texts have; `base` is added to the weight of each."""
        spread: Counter[str] = Counter()
        for terms in texts:
            spread.update(set(terms))
        # Sorted, for a set has another order in each process, and sums of floats depend on it.
        frequent_terms = sorted(term for term, number in spread.items() if number >= fewest)
        numbers = np.array([spread[term] for term in frequent_terms], np.float32)
        rarity = np.log((len(texts) + 1) / (numbers + 0.5)) + base
        return cls(frequent_terms, np.asarray(rarity, np.float32))

    def rows(self, texts: Sequence[list[str]]) -> Floats:
        """A row for each text, a column for each term."""
        rows = np.zeros((len(texts), len(self.terms)), np.float32)
        for row, terms in zip(rows, texts, strict=True):
            columns, values = self.weigh(terms)
            row[columns] = values
        return rows

    def weigh(self, terms: list[str]) -> tuple[list[int], Floats]:
        """The columns of the terms that a text shares with the others, and their weights, of length 1 together."""
        counts = Counter(self._column[term] for term in terms if term in self._column)
        columns = list(counts)
        numbers = np.array(list(counts.values()), np.float32)
        values = (1 + np.log(numbers)) * self.rarity[columns]
        length = np.sqrt((values * values).sum())
        return columns, np.asarray(values / max(length, 1e-9), np.float32)


class RequestClassifier(Protocol):
    """Tells by which list of requests a text is asked."""

    def score(self, text: str) -> Floats:
        """How much a text is like what each list holds: about 0 for nothing, 1 for one of its requests."""
        ...


@dataclass(frozen=True, slots=True)
class RequestEdges:
    """With which words requests begin and end: "balance" ends many, "the" none."""

    words: Counter[str]
    first_words: Counter[str]
    last_words: Counter[str]

    @classmethod
    def of(cls, requests: Sequence[str]) -> "RequestEdges":
        edges = cls(Counter(), Counter(), Counter())
        for request in requests:
            tokens = words(request)
            if tokens:
                edges.words.update(tokens)
                edges.first_words[tokens[0]] += 1
                edges.last_words[tokens[-1]] += 1
        return edges

    def start(self, text: str) -> float:
        """How much oftener the first word of a text begins a request than a word does."""
        return self._odds(self.first_words, words(text)[0])

    def end(self, text: str) -> float:
        """How much oftener the last word of a text ends a request than a word does."""
        return self._odds(self.last_words, words(text)[-1])

    def _odds(self, edge_words: Counter[str], word: str) -> float:
        if not self.words:
            return 0.0
        usual = edge_words.total() / self.words.total()
        # What is known of a rare word is drawn to what is usual.
        share = (edge_words[word] + DRAWN * usual) / (self.words[word] + DRAWN)
        return math.log(share / usual)


class WordingClassifier:
    """A linear classifier of texts by the list of requests that they are worded like: ridge regression over terms."""

    def __init__(self, table: TermTable, weights: Floats):
        self._table = table
        self._weights = weights
        """Of each term for each list."""

    @classmethod
    def of(cls, requests: Sequence[Sequence[str]]) -> "WordingClassifier":
        """Learns from the requests of each list, or reads what an earlier process learnt from the same ones."""
        if sum(map(len, requests)) < LONG_TO_LEARN:
            return _learn(requests)
        path = path_of(requests, "wording")
        arrays = read_arrays(path)
        if arrays is not None:
            return cls(TermTable(arrays["terms"].tolist(), arrays["rarity"]), arrays["weights"])
        classifier = _learn(requests)
        table = classifier._table
        terms = np.array(table.terms)
        keep_arrays(path, terms=terms, rarity=table.rarity, weights=classifier._weights)
        return classifier

    def score(self, text: str) -> Floats:
        """How much a text is worded like each list: about 0 for nothing, 1 for one of its requests."""
        columns, values = self._table.weigh(_terms_of(text))
        scores = values @ self._weights[columns]
        return np.asarray(scores - scores.mean(), np.float32)


def read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """Returns what an earlier process learnt; None where it is not there, or is broken."""
    try:
        with path.open("rb") as file, np.load(file) as archive:
            return dict(archive)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def keep_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Writes what was learnt for other processes, where the folder can be written."""
    # Another process may read or write it at the same time, so that it appears there whole.
    unfinished = path.with_suffix(f".{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(unfinished, allow_pickle=False, **arrays)
        unfinished.replace(path)
        files = sorted(path.parent.glob("wording.*.npz"), key=lambda file: file.stat().st_mtime)
        for old in files[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        log.debug("what was learnt is not kept: %s cannot be written", path)


def path_of(requests: Sequence[Sequence[str]], learner: str) -> Path:
    """The file of what a learner makes of these requests, beside the bytecode of this module: derived, as that is."""
    digest = blake2s(json.dumps([learner, requests]).encode())
    # What other code has learnt, or from words that were told apart otherwise, is nothing to read.
    for file in (*map(Path(__file__).with_name, LEARNERS), Path(inspect.getfile(words))):
        digest.update(file.read_bytes())
    return Path(cache_from_source(__file__)).with_name(f"wording.{digest.hexdigest()[:16]}.npz")


def sample_of(requests: Sequence[Sequence[str]]) -> tuple[list[str], list[int]]:
    """Returns the requests that are learnt from, and the number of the list of each."""
    share = min(1.0, MOST_REQUESTS / max(1, sum(map(len, requests))))
    texts: list[str] = []
    owners: list[int] = []
    for number, owner_requests in enumerate(requests):
        sample_size = math.ceil(share * len(owner_requests))
        for position in range(sample_size):
            texts.append(owner_requests[position * len(owner_requests) // sample_size])
        owners += [number] * sample_size
    return texts, owners


def targets_of(owners: Sequence[int], lists: int, ridge: float) -> tuple[Floats, Floats]:
    """Returns what is wanted of each text for each list, and how much each text is held back, a column."""
    sizes = np.bincount(owners, minlength=lists)
    # A list of many requests must not draw texts for that reason alone.
    penalty = np.asarray(ridge * sizes[owners] / sizes[owners].mean(), np.float32)
    wanted = np.zeros((len(owners), lists), np.float32)
    wanted[np.arange(len(owners)), owners] = 1.0
    wanted -= wanted.mean(axis=0)
    return wanted, penalty[:, None]


def _learn(requests: Sequence[Sequence[str]]) -> WordingClassifier:
    texts, owners = sample_of(requests)
    terms = [_terms_of(text) for text in texts]
    table = TermTable.of(terms, base=0.0, fewest=FEWEST)
    rows = TermRows(table, terms)
    wanted, penalty = targets_of(owners, len(requests), RIDGE)
    return WordingClassifier(table, rows.per_term(_shares_of(rows, wanted, penalty)))


class TermRows:
    """The weights of the terms of many texts, of which nearly all are zero and only the others are kept."""

    def __init__(self, table: TermTable, texts: Sequence[list[str]]):
        columns: list[int] = []
        values: list[Floats] = []
        sizes: list[int] = []
        for terms in texts:
            own_columns, own_values = table.weigh(terms)
            # A text without any term has one of no weight, since `reduceat` knows no sum of nothing.
            columns += [0, *own_columns]
            values += [np.zeros(1, np.float32), own_values]
            sizes.append(1 + len(own_columns))
        self._columns = np.array(columns)
        self._values = np.concatenate(values)[:, None]
        self._text_starts = np.cumsum([0, *sizes[:-1]])
        texts_of_entries = np.repeat(np.arange(len(texts)), sizes)
        by_term = np.argsort(self._columns, kind="stable")
        self._texts_by_term = texts_of_entries[by_term]
        self._values_by_term = self._values[by_term]
        counts = np.bincount(self._columns, minlength=len(table.terms))
        self._term_starts = np.cumsum([0, *counts[:-1]])
        self._room = np.empty((0, 0), np.float32)
        """For the entries of all texts, a column for each list: to get memory anew in each step takes half the time."""

    def per_term(self, per_text: Floats) -> Floats:
        """Sums up over the texts that have a term; a column for each list."""
        weighed = self._weighed(per_text, self._texts_by_term, self._values_by_term)
        return np.asarray(np.add.reduceat(weighed, self._term_starts, axis=0), np.float32)

    def per_text(self, per_term: Floats) -> Floats:
        """Sums up over the terms that a text has; a column for each list."""
        weighed = self._weighed(per_term, self._columns, self._values)
        return np.asarray(np.add.reduceat(weighed, self._text_starts, axis=0), np.float32)

    def _weighed(self, rows: Floats, positions: NDArray[np.intp], values: Floats) -> Floats:
        """Returns the row at each position, times its value; the next call overwrites it."""
        if self._room.shape != (len(positions), rows.shape[1]):
            self._room = np.empty((len(positions), rows.shape[1]), np.float32)
        # A mode other than the default lets NumPy write without a copy of its own; no position is outside.
        np.take(rows, positions, axis=0, out=self._room, mode="clip")
        return np.multiply(self._room, values, out=self._room)


def _shares_of(rows: TermRows, wanted: Floats, penalty: Floats) -> Floats:
    """Returns the part of each text in the weights of each list: ridge regression by conjugate gradients.

    To solve the equations at once would take four times as long for 5,000 texts, and a gigabyte. Source: Hestenes and
    Stiefel (1952), with the diagonal as preconditioner; a text has the length 1.
    """
    shares = np.zeros_like(wanted)
    missing = wanted
    near = missing / (1 + penalty)
    direction = near
    size = (missing * near).sum(axis=0)
    enough = PRECISION * np.linalg.norm(wanted, axis=0)
    for _ in range(MOST_STEPS):
        image = rows.per_text(rows.per_term(direction)) + penalty * direction
        step = size / np.maximum((direction * image).sum(axis=0), TINY)
        shares = shares + step * direction
        missing = missing - step * image
        if np.all(np.linalg.norm(missing, axis=0) <= enough):
            break
        near = missing / (1 + penalty)
        earlier = np.maximum(size, TINY)
        size = (missing * near).sum(axis=0)
        direction = near + size / earlier * direction
    return np.asarray(shares, np.float32)
