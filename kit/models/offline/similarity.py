"""How close texts are in meaning and in wording, from static word vectors and from the terms that they share:
no network, no key, and the same every time."""

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.core.errors import DataError
from kit.core.language.words import STOP, content_words, words
from kit.core.model import EmbedderName
from kit.models.offline import minilm
from kit.models.offline.english import FAINT, NEGATED, TIMES
from kit.models.offline.sentence_classifier import SentenceClassifier
from kit.models.offline.wording import (
    MOST_WORDS,
    Floats,
    RequestClassifier,
    RequestEdges,
    TermTable,
    WordingClassifier,
    elsewhere,
    grams,
)

LONGEST = 4000
"""Characters of one text that are read."""
DOUBT = 0.1
"""How much more a text may be worded like what is asked of a document than like what is asked elsewhere, and count as
elsewhere: an honest "none of us" does less harm than an answer to something else."""

CLEARLY = 0.3
"""How much more a text must be worded like what is asked elsewhere for that to be said of it. Of 1,491 messages with
several clauses that the cards are for, three have such a clause."""
OWN_REQUEST = 0.6
"""How much a few words must be worded like requests of somebody to be one: "sushi tonight" is, "decaf" goes on with
what was asked before. Of two dozen such scraps none lies between 0.52 and 0.6."""
UNLIKE = 0.05
"""The score below which a text has nothing to do with a document, however it is worded."""
OUTSIDE = 0.79
"""The share of what is asked elsewhere that a text must be closer to a document than, where none lists requests."""
SAMPLE = 25
"""For so many requests the list of what is asked elsewhere is read: a hundred lines of it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What the scores of one kind of vectors are made of, and from where on they mean something."""

    whole: float
    unit: float
    word: float
    terms: float
    """Shares of a score: the whole text, its closest sentence or list item, word by word, terms in common."""
    fits: float
    """The score below which a text hardly fits a document."""
    far: float
    """The score below which a text is for no document, whatever the documents are."""
    close: float
    """The score from which a text is for a document that lists requests, even one that is worded like what is
    asked elsewhere."""
    clear: float
    """What a further document must gain over those chosen, on a clause of its own, before a request is split."""
    stay: float
    question: float
    back: float
    elliptic: float
    """Head start of what is in play: always; when the assistant asked; when the request points back; when it
    does and says next to nothing else."""


STATIC = Scale(
    whole=0.5,
    unit=0.2,
    word=0.15,
    terms=0.15,
    fits=0.15,
    far=0.12,
    close=0.25,
    clear=0.06,
    stay=0.1,
    question=0.12,
    back=0.1,
    elliptic=0.25,
)
"""Of vectors of single words, whatever stands around them."""
CONTEXTUAL = Scale(
    whole=0.25,
    unit=0.55,
    word=0.1,
    terms=0.15,
    fits=0.22,
    far=0.21,
    close=0.4,
    clear=0.05,
    stay=0.06,
    question=0.08,
    back=0.06,
    elliptic=0.2,
)
"""Of vectors of whole sentences; chosen on the public half of sets whose other half nobody here has seen."""

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+|[()]")


class Document(NamedTuple):
    """What a tool is compared by."""

    name: str
    """In plain words."""
    description: str
    requests: tuple[str, ...] = ()
    """What people ask it."""


def content(text: str) -> list[str]:
    """The words that carry meaning; all of them when none does."""
    text_words = words(text[:LONGEST])
    return [word for word in text_words if word not in STOP] or text_words


SPEAKS_OF = 0.22
"""How near a word of a text must be to another to speak of it: "distance" to "far", none to "parking"."""


@lru_cache(maxsize=1)
def _words_of_the_wheel() -> tuple[Any, NDArray[np.float16]]:
    """Tokenizer and table that ship inside the wordllama wheel, never fetched; of its 16 MB only
    the rows in use are read."""
    # The package itself is not imported: on import it takes over the process' logging.
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
    offset = 8 + size + header["data_offsets"][0]
    return np.memmap(path, np.float16, "r", offset, tuple(header["shape"]))


def load(embedder: EmbedderName = "words") -> None:
    """Reads the vectors now instead of at the first question."""
    _words_of_the_wheel()
    if embedder == "minilm":
        minilm.load()


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


def embed(text: str) -> tuple[float, ...]:
    """Returns the vector of a text, of length 1, from those of its words that carry meaning."""
    return tuple(_unit(_pooled(content(text), {})).tolist())


def _units(text: str) -> list[str]:
    """Sentences of a description and the items of its lists; what it says it is not for is left out."""
    units: list[str] = []
    for sentence in _SENTENCE.split(text[:LONGEST]):
        sentence = sentence.strip()
        if not sentence or NEGATED.search(sentence):
            continue
        units.append(sentence)
        items: list[str] = []
        for item in sentence.split(","):
            if item.strip():
                items.append(item.strip())
        if len(items) > 2:
            units += items
    return units


class Index:
    """Documents ready to be compared with texts; building costs about 1 ms a document."""

    scale = STATIC
    embedder: EmbedderName = "words"

    def __init__(self, documents: Sequence[Document]):
        parts: list[list[str]] = []
        wholes: list[str] = []
        vocabularies: list[list[str]] = []
        for document in documents:
            units = [document.name, *_units(document.description)]
            sentences = _SENTENCE.split(document.description)
            sentences = [sentence for sentence in sentences if not NEGATED.search(sentence)]
            parts.append(units)
            wholes.append(" . ".join([document.name, *sentences])[:LONGEST])
            vocabularies.append(list(dict.fromkeys(content(" . ".join(units)))) or ["?"])
        spread: Counter[str] = Counter()
        for vocabulary in vocabularies:
            spread.update(vocabulary)
        weight: dict[str, float] = {}
        for word, number in spread.items():
            weight[word] = min(1.0, float(np.log((len(documents) + 1) / (number + 0.5))))
        flat_units = [unit for units in parts for unit in units]
        self._whole, self._units = self._vectors(wholes, flat_units, weight)
        self._unit_starts = _starts(parts)
        flat_words = [word for vocabulary in vocabularies for word in vocabulary]
        scale = np.array([weight[word] for word in flat_words], np.float32)
        self._words = _unit(np.stack([_vector(word) for word in flat_words])) * scale[:, None]
        self._word_starts = _starts(vocabularies)
        terms = [grams(content(whole)) for whole in wholes]
        self._terms = TermTable.of(terms, base=1.0)
        self._term_rows = self._terms.rows(terms)
        self._description_words = [content_words(" . ".join(units)) for units in parts]
        # Documents with the same list, such as the lookups of one agent, are not told from each other by it. Sorted,
        # for what is learnt in one order serves every other.
        self._lists = sorted({d.requests for d in documents if d.requests})
        self._learnt: RequestClassifier | None = None
        self._list_of: list[int] = []
        """Of each document the position of its list; -1 where it has none."""
        for document in documents:
            position = self._lists.index(document.requests) if document.requests else -1
            self._list_of.append(position)

    def _vectors(
        self, wholes: Sequence[str], units: Sequence[str], weight: dict[str, float]
    ) -> tuple[Floats, Floats]:
        """Returns a vector for each whole text, and for each unit of all of them."""
        of_wholes = _unit(np.stack([_pooled(words(whole), weight) for whole in wholes]))
        of_units = _unit(np.stack([_pooled(content(unit), weight) for unit in units]))
        return of_wholes, of_units

    def _vector_of(self, text: str, vectors: Floats) -> Floats:
        """Returns the vector of a text; `vectors` are those of its words."""
        return _unit(vectors.sum(axis=0))

    @property
    def _wordings(self) -> RequestClassifier:
        # No `cached_property`: that of Python 3.11 locks out every other index as long as one learns.
        if self._learnt is None:
            self._learnt = learn(tuple(self._lists), self.embedder)
        return self._learnt

    def score(self, text: str) -> Floats:
        """Closeness of a text to each document, about -0.1 (unrelated) to 1 (the same)."""
        tokens = content(text)[:MOST_WORDS]
        if not tokens:
            return np.zeros(len(self._whole), np.float32)
        vectors = np.stack([_vector(token) * (0.3 if token in FAINT else 1.0) for token in tokens])
        lengths = np.linalg.norm(vectors, axis=1)
        pooled = self._vector_of(text, vectors)
        per_unit = np.maximum.reduceat(self._units @ pooled, self._unit_starts)
        near = np.maximum.reduceat(self._words @ _unit(vectors).T, self._word_starts)
        # Squared, so that words which are near by chance count for little.
        shares = lengths / (lengths.sum() + 1e-9)
        per_word = (np.square(np.maximum(near, 0)) * shares).sum(axis=1)
        columns, values = self._terms.weigh(grams([t for t in tokens if t not in FAINT]))
        shared = self._term_rows[:, columns] @ values
        scale = self.scale
        total = scale.whole * (self._whole @ pooled) + scale.unit * per_unit
        total += scale.word * per_word + scale.terms * shared
        return np.asarray(total, np.float32)

    def belongs_elsewhere(self, sought: frozenset[str], positions: Collection[int]) -> bool:
        """Whether documents describe themselves by one of some words, and none of those at `positions` does, nor is
        asked by it."""
        is_described = False
        for position, description in enumerate(self._description_words):
            if position not in positions:
                is_described = is_described or not sought.isdisjoint(description)
            elif not sought.isdisjoint(description | self._request_words[self._list_of[position]]):
                return False
        return is_described

    @cached_property
    def _request_words(self) -> list[frozenset[str]]:
        """The words of each list of requests, and last those of documents without one: none."""
        texts = [" . ".join(requests) for requests in self._lists]
        return [content_words(text) for text in [*texts, ""]]

    @cached_property
    def _known_words(self) -> frozenset[str]:
        """The words by which documents describe themselves, or are asked; and those that name nothing."""
        return FAINT.union(*self._description_words, *self._request_words)

    def wording(self, text: str) -> Floats:
        """How much a text is worded like the requests that each document lists, beside the others.

        It says which document a text is for, and never whether it is for any.
        """
        if not self._lists:
            return np.zeros(len(self._list_of), np.float32)
        scores = self._wordings.score(text)[:-1]
        # How a document that lists none would be asked is not known, so wording decides nothing against it.
        best = max(0.0, float(scores.max()))
        own = [float(scores[position]) if position >= 0 else best for position in self._list_of]
        return np.array(own, np.float32)

    @cached_property
    def _edges(self) -> RequestEdges:
        return RequestEdges.of([request for requests in self._lists for request in requests])

    def edge(self, head: str, tail: str) -> float:
        """How much oftener than elsewhere requests end with the last word of one text, and begin with the first of
        another: logarithms of both, added. About 0 where it is not known."""
        return self._edges.end(head) + self._edges.start(tail)

    @cached_property
    def _far(self) -> float:
        """The score below which a text is for no document: most of what is asked elsewhere stays below it.

        It differs from documents to documents: what says "games, jokes, the weather" is close to anything.
        """
        scores = [float(self.score(text).max()) for text in elsewhere(SAMPLE)]
        return max(self.scale.far, float(np.quantile(scores, OUTSIDE)))

    def is_elsewhere(self, text: str, *, doubt: float = DOUBT) -> bool:
        """Whether a text asks for something that no document is about.

        `doubt`: how much more it may be worded like what is asked of them than like what is asked elsewhere; below 0,
        how much less. Where no document lists requests, a text that there is less doubt of is for them.
        """
        return self._is_elsewhere(text, float(self.score(text).max()), doubt)

    def _is_elsewhere(self, text: str, closest: float, doubt: float) -> bool:
        if not self._lists:
            return doubt >= 0 and closest < self._far
        scores = self._wordings.score(text)
        return scores[-1] > scores[:-1].max() - doubt and closest < self.scale.close

    def is_clearly_elsewhere(self, text: str) -> bool:
        """Whether a text is so plainly for no document that whoever wrote it may be told so."""
        meaning = content_words(text)
        if not self._lists:
            # "How many in Oakfield" names too little: it goes on with what was asked before.
            return len(meaning - FAINT) > 1 and float(self.score(text).max()) < UNLIKE
        if len(meaning) < 2 and meaning <= self._known_words:
            # "How many in Oakfield" again, or "find sushi", whose one word somebody is asked about.
            return False
        closest = float(self.score(text).max())
        return self._is_elsewhere(text, closest, 0.0 if closest < UNLIKE else -CLEARLY)


def _starts(groups: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    """Where each group begins in the list of all."""
    sizes = [len(group) for group in groups]
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)


class ContextualIndex(Index):
    """The same by the meaning of whole sentences; it costs 5 ms a sentence, and as much each text."""

    scale = CONTEXTUAL
    embedder = "minilm"

    def _vectors(
        self, wholes: Sequence[str], units: Sequence[str], weight: dict[str, float]
    ) -> tuple[Floats, Floats]:
        return (
            np.stack([minilm.vector(whole) for whole in wholes]),
            np.stack([minilm.vector(unit) for unit in units]),
        )

    def _vector_of(self, text: str, vectors: Floats) -> Floats:
        return minilm.vector(text[:LONGEST])


@lru_cache(maxsize=256)
def learn(lists: tuple[tuple[str, ...], ...], embedder: EmbedderName) -> RequestClassifier:
    """Learns from these lists of requests, once; the last list of what it tells apart is of what is asked elsewhere."""
    requests = [*lists, elsewhere(sum(map(len, lists)))]
    if embedder == "minilm":
        return SentenceClassifier.of(requests)
    return WordingClassifier.of(requests)


@lru_cache(maxsize=256)
def index(documents: tuple[Document, ...], embedder: EmbedderName = "words") -> Index:
    """The index of some documents, built once per set of texts."""
    if embedder == "minilm":
        return ContextualIndex(documents)
    return Index(documents)


def closeness(text: str, candidates: Sequence[str]) -> list[float]:
    """Cosine of the word vectors of a text and of each candidate."""
    query = _unit(_pooled(content(text)[:MOST_WORDS], {}))
    return [float(_unit(_pooled(content(c)[:MOST_WORDS], {})) @ query) for c in candidates]


def speaks_of(text: str, word: str) -> bool:
    """Whether some word of a text is near to a word."""
    # Of what ends or expires it is told until when it lasts.
    if word in TIMES:
        return "until" in words(text)
    text_words = dict.fromkeys(content(text))
    table = _unit(np.stack([_vector(text_word) for text_word in text_words]))
    return float((table @ _unit(_vector(word))).max()) >= SPEAKS_OF
