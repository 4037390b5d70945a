"""How close texts are in meaning, from static word vectors and character n-grams: no network, no key, deterministic."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.core.errors import DataError
from kit.core.language.words import STOP, words
from kit.models.offline.english import FAINT, NEGATED
from kit.models.offline.example_requests import ExampleRequests

Floats = NDArray[np.float32]

LONGEST = 4000
"""Characters of one text that are read; the rest is ignored."""
REMEMBERED = 5000
"""Words an index remembers the closeness of."""
WHOLE = 0.5
UNIT = 0.2
WORD = 0.15
CHARACTER = 0.15
"""Shares of a score: whole text, its closest sentence or list item, word by word, character n-grams."""
WORDING = 0.6
"""How much the wording of the requests that descriptions list counts beside a score."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+|[()]")


def content(text: str) -> list[str]:
    """The words that carry meaning; all of them when none does."""
    every = words(text[:LONGEST])
    return [word for word in every if word not in STOP] or every


def spoken(name: str) -> str:
    """An identifier in plain words: `find_nearBy` becomes `find near by`."""
    return _CAMEL.sub(" ", name).replace("_", " ").replace("-", " ").strip().lower()


@lru_cache(maxsize=1)
def _words_of_the_wheel() -> tuple[Any, NDArray[np.float16]]:
    """Tokenizer and table that ship inside the wordllama wheel, never fetched; of its 16 MB only
    the rows in use are read.

    The two files are opened without importing the package: on import it takes over the process' logging.
    """
    from tokenizers import Tokenizer

    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("the word vectors are missing: install wordllama from requirements.txt")
    wheel = Path(next(iter(spec.submodule_search_locations)))
    tokenizer = Tokenizer.from_file(str(wheel / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return tokenizer, _map_table(wheel / "weights" / "l2_supercat_256.safetensors")


def _map_table(path: Path) -> NDArray[np.float16]:
    """Maps the one table of a safetensors file: eight bytes say how long its JSON header is, then comes the table."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))["embedding.weight"]
    assert header["dtype"] == "F16", "requirements.txt pins the wheel"
    return np.memmap(
        path, np.float16, "r", 8 + size + header["data_offsets"][0], tuple(header["shape"])
    )


def load() -> None:
    """Reads the word vectors now instead of at the first question."""
    _words_of_the_wheel()


@lru_cache(maxsize=20_000)
def _vector(word: str) -> Floats:
    tokenizer, table = _words_of_the_wheel()
    ids = tokenizer.encode(word, add_special_tokens=False).ids
    return np.asarray(table[ids].sum(axis=0, dtype=np.float32))


def _unit(matrix: Floats) -> Floats:
    lengths: Floats = np.sqrt((matrix * matrix).sum(axis=-1, keepdims=True))
    return np.asarray(matrix / np.maximum(lengths, np.float32(1e-9)), np.float32)


def _pooled(tokens: Sequence[str], weight: dict[str, float]) -> Floats:
    if not tokens:
        return np.zeros_like(_vector("a"))
    scale = np.array([max(0.05, weight.get(token, 1.0)) for token in tokens], np.float32)
    return np.asarray(scale @ np.stack([_vector(token) for token in tokens]), np.float32)


def _grams(tokens: Sequence[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for token in tokens:
        padded = f" {token[:40]} "
        counts.update(padded[i : i + n] for n in (3, 4, 5) for i in range(len(padded) - n + 1))
    return counts


def units(text: str) -> list[str]:
    """Sentences of a description and the items of its lists; what it says it is not for is left out."""
    result: list[str] = []
    for sentence in _SENTENCE.split(text[:LONGEST]):
        sentence = sentence.strip()
        if not sentence or NEGATED.search(sentence):
            continue
        result.append(sentence)
        items: list[str | Any] = []
        for item in sentence.split(","):
            if item.strip():
                items.append(item.strip())
        result.extend(items if len(items) > 2 else ())
    return result


class Index:
    """Documents (name, description) ready to be compared with texts; building costs about 1 ms a document."""

    def __init__(self, documents: Sequence[tuple[str, str]]):
        parts: list[list[str]] = []
        for name, text in documents:
            parts.append([name, *units(text)])
        texts: list[str] = []
        for part in parts:
            texts.append(" . ".join(dict.fromkeys(part)))
        rows: list[list[str]] = []
        for text in texts:
            rows.append(list(dict.fromkeys(content(text))) or ["?"])
        spread = Counter(word for row in rows for word in row)
        self._weight = {
            word: min(1.0, float(np.log((len(rows) + 1) / (n + 0.5)))) for word, n in spread.items()
        }
        whole: list[str] = []
        for name, text in documents:
            whole.append(
                " . ".join([name, *(u for u in _SENTENCE.split(text) if not NEGATED.search(u))])
            )
        self._whole = _unit(
            np.stack([_pooled(words(text[:LONGEST]), self._weight) for text in whole])
        )
        self._units = _unit(
            np.stack([_pooled(content(unit), self._weight) for part in parts for unit in part])
        )
        self._unit_starts = _starts([len(part) for part in parts])
        flat: list[str] = []
        for row in rows:
            for word in row:
                flat.append(word)
        scale = np.array([self._weight[word] for word in flat], np.float32)
        self._words = _unit(np.stack([_vector(word) for word in flat])) * scale[:, None]
        self._word_starts = _starts([len(row) for row in rows])
        self._near: dict[str, Floats] = {}
        self._requests = ExampleRequests([text for _, text in documents])
        self._index_grams([_grams(content(text)) for text in whole])

    def _index_grams(self, counts: list[Counter[str]]) -> None:
        spread = Counter(gram for count in counts for gram in count)
        self._gram = {gram: i for i, gram in enumerate(spread)}
        self._rarity = (
            np.log((1 + len(counts)) / (1 + np.array(list(spread.values()), np.float32))) + 1
        )
        table = np.zeros((len(counts), max(1, len(spread))), np.float32)
        for row, count in zip(table, counts, strict=True):
            for gram, n in count.items():
                row[self._gram[gram]] = 1 + np.log(n)
        if spread:
            table *= self._rarity
        self._characters = _unit(table)

    def score(self, text: str) -> Floats:
        """Closeness of a text to each document, about -0.1 (unrelated) to 1 (the same)."""
        tokens = content(text)[:400]
        if not tokens:
            return np.zeros(len(self._whole), np.float32)
        vectors = np.stack([_vector(token) * (0.3 if token in FAINT else 1.0) for token in tokens])
        lengths = np.linalg.norm(vectors, axis=1)
        pooled = _unit(vectors.sum(axis=0))
        per_unit = np.maximum.reduceat(self._units @ pooled, self._unit_starts)
        per_word = np.stack([self._by_word(token) for token in tokens])
        sharp = (lengths / (lengths.sum() + 1e-9)) @ per_word
        return (
            WHOLE * (self._whole @ pooled)
            + UNIT * per_unit
            + WORD * sharp
            + CHARACTER * self._by_character([token for token in tokens if token not in FAINT])
        )

    @property
    def lists_requests(self) -> bool:
        """Whether the documents list requests by whose wording others can be told."""
        return not self._requests.is_empty

    def wording(self, text: str) -> Floats:
        """How much a text is worded like the requests that each document lists, beside the others.

        It says which document a text is for, and never whether it is for any: "how many people live in Peru" is
        worded like a request for points, and is about nothing here.
        """
        return WORDING * self._requests.score(text)

    def _by_word(self, token: str) -> Floats:
        """How close the closest word of each document is, squared so that near matches count for little."""
        scores = self._near.get(token)
        if scores is None:
            if len(self._near) >= REMEMBERED:
                self._near.clear()
            closest = np.maximum.reduceat(self._words @ _unit(_vector(token)), self._word_starts)
            scores = self._near[token] = np.square(np.maximum(closest, 0))
        return scores

    def _by_character(self, tokens: Sequence[str]) -> Floats:
        grams: list[tuple[int, int]] = []
        for gram, n in _grams(tokens).items():
            if gram in self._gram:
                grams.append((self._gram[gram], n))
        if not grams:
            return np.zeros(len(self._characters), np.float32)
        where = np.array([i for i, _ in grams])
        values = (1 + np.log(np.array([n for _, n in grams], np.float32))) * self._rarity[where]
        return self._characters[:, where] @ _unit(values.astype(np.float32))


def _starts(sizes: Sequence[int]) -> NDArray[np.intp]:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)


@lru_cache(maxsize=256)
def index(documents: tuple[tuple[str, str], ...]) -> Index:
    """The index of some documents, built once per set of texts."""
    return Index(documents)


def closeness(text: str, candidates: Sequence[str]) -> list[float]:
    """Cosine of the word vectors of a text and of each candidate."""
    if not candidates:
        return []
    query = _unit(_pooled(content(text)[:400], {}))
    numbers: list[float] = []
    for candidate in candidates:
        numbers.append(float(_unit(_pooled(content(candidate)[:400], {})) @ query))
    return numbers
