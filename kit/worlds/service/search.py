"""Lenient search over a few hundred rows: folded words, rare ones weigh more, and something is always found."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, islice, zip_longest
from math import log
from typing import Generic, Literal, TypeVar

from kit.core.language.lists import Request, read_request
from kit.worlds.service.wording import join_words

T = TypeVar("T")
Match = Literal["named", "closest", "all"]
"""Rows that fit the words asked for; the best of all, because none fits; all, because no word was asked for."""
SCORE_SHARE = 0.5
"""Share of the best row's score a row needs to be found beside it."""
TELLING = log(3)
"""How rare a word is that tells rows apart: half of them have it."""
NEARLY = 0.85
"""How alike two words are, of 1, that differ by a slip of the finger: "coffe" and "coffee" are 0.91."""

_TOKEN = re.compile(r"[a-z0-9]+(?:-[0-9]+)?")
_GRAMMAR = """
a about all also am an and any are at be but by can could did didn do does doesn don each every few for from had has
have her here his how i if in into is isn it its just may me much my not of on or our out over please s should show so
some t tell than thank that the their them then there these they thing this those to too up us ve want was wasn way we
were what when which who will with won would you your
"""
_TALK = """
alternative another available best better bigger buy cheap cheaper cheapest closer closest currently deal different
earliest earn else everything find first fit fits fourth get give good got help higher info information instead item
join know last latest like list little look looking lookup lot lower main many match matched matches mean month more
most near nearby nearer nearest need new newest next now offer oldest one other part people place point put receipt
recent rest right search second see send service shop smaller something soon sooner store take third today told top
try use user using week where why work worse
"""
_CHAT = """
actually again already anything appreciate bc besides bestie both bro bruh btw cheers cuz dont dude during forever
gimme god gonna gotta grateful greetings haha havent hello hey heyy heyyy hi hiya hola hope idk im ive kindly lmao lol
mate meanwhile mind n nah never nevermind off oh ok okay omg please pls plz pts quick r re regarding rn sir somebody
someone sorry sup tbh thanked thatll tho thru thx til toward u ugh uh um umm ur w wanna wat wats within wont wut y ya
yall yep yet yo
"""
GRAMMAR = frozenset(_GRAMMAR.split())
"""Words that name nothing."""
NOISE = GRAMMAR | frozenset(_TALK.split())
"""The same, and the words every request for rows of a list shares."""
CHAT = frozenset(_CHAT.split())
"""Words of people who type as they speak."""


def _split(text: str) -> list[str]:
    # "café" and "jalapeño" are typed with their accents and without.
    decomposed = unicodedata.normalize("NFKD", text.lower().replace("e-mail", "email"))
    letters = [sign for sign in decomposed if not unicodedata.combining(sign)]
    return _TOKEN.findall("".join(letters))


def fold(token: str) -> str:
    """A word without its plural ending."""
    if len(token) > 3 and token.endswith("ies"):
        return token[:-3] + "y"
    if len(token) > 4 and token.endswith(("ches", "shes", "sses", "xes")):
        return token[:-2]
    if len(token) > 3 and token.endswith("s") and not token.endswith(("ss", "us", "is")):
        return token[:-1]
    return token


@lru_cache(maxsize=10_000)
def tokens(text: str) -> tuple[str, ...]:
    """Every word of a text, folded, in order."""
    return tuple(fold(token) for token in _split(text))


def query_terms(text: str, noise: frozenset[str] = NOISE) -> dict[str, str]:
    """The words of a request that can name something, in order: folded -> as written."""
    spellings: dict[str, str] = {}
    for token in _split(text):
        if token not in noise and fold(token) not in noise:
            spellings.setdefault(fold(token), token)
    return spellings


def weigh(parts: Iterable[tuple[float, str]]) -> dict[str, float]:
    """Words of a row with their weight; a word in two parts keeps the heavier one."""
    weights: dict[str, float] = {}
    for weight, text in parts:
        for token in tokens(text):
            weights[token] = max(weight, weights.get(token, 0.0))
    return weights


@dataclass(frozen=True, slots=True)
class SearchResult(Generic[T]):
    """What a search gave, best first; never empty unless there is no row at all, or all were to be left out.

    Where no row fits (`closest`), the rows are those whose words are written nearly like the ones asked for, or all.
    """

    rows: tuple[T, ...]
    match: Match
    topic: str = ""
    """The words that every row has, or some of which each row has (`named`); those that no row has (`closest`)."""
    not_found: str = ""
    """Things that were asked for beside the topic and that no row has."""
    left_out: str = ""
    """The words of rows that were not wanted."""
    kinds: int = 1
    """How many things were asked for side by side. The first rows are one of each."""

    def first(self, limit: int) -> tuple[T, ...]:
        """Returns the best rows, of each thing that was asked for at least one."""
        return self.rows[: max(limit, self.kinds)]

    def newest(self, limit: int, date_of: Callable[[T], str]) -> list[T]:
        """Returns the newest rows, of each thing that was asked for at least one."""
        rows = self.rows if self.kinds == 1 else self.first(limit)
        return sorted(rows, key=date_of, reverse=True)[: max(limit, self.kinds)]


class Index(Generic[T]):
    """Rows with their words; rows are given in the order that breaks ties."""

    def __init__(
        self,
        rows: Iterable[T],
        describe: Callable[[T], Iterable[tuple[float, str]]],
        noise: frozenset[str] = NOISE,
        talk: frozenset[str] = frozenset(),
    ):
        """Reads the words of `rows`. Words of `noise` are looked up nowhere; those of `talk` and CHAT name nothing
        either when no row has them."""
        self._noise = noise
        self._talk = talk | CHAT
        self.rows: tuple[T, ...] = tuple(rows)
        words: list[Mapping[str, float]] = []
        self._texts: list[list[frozenset[str]]] = []
        for row in self.rows:
            parts = list(describe(row))
            words.append(weigh(parts))
            self._texts.append([frozenset(tokens(text)) for _, text in parts])
        self._words = tuple(words)
        counts = Counter(token for words in self._words for token in words)
        self._rarity = {token: log(1 + len(self.rows) / count) for token, count in counts.items()}

    def search(self, text: str, *, as_list: bool = True) -> SearchResult[T]:
        """The rows that fit the words of `text`: a list of things, or else one sentence about one thing."""
        request = read_request(text) if as_list else Request((text,))
        rows, left_out = self._without(request.left_out)
        query = query_terms(" ".join(request.things), self._noise)
        if not any(token in self._rarity for token in query):
            names = self._names(query)
            if names:
                return SearchResult(self._close_to(names), "closest", _few(names))
            return SearchResult(tuple(self.rows[row] for row in rows), "all", left_out=left_out)
        kinds, not_found = self._kinds(request.things)
        if len(kinds) < 2:
            kinds = [query]
        ranked: list[list[int]] = []
        topics: list[str] = []
        for kind in kinds:
            best, topic = self._rank(kind, rows)
            if best:
                ranked.append(best)
                topics.append(topic)
        if not ranked:
            # All that fits is what was to be left out.
            return SearchResult((), "named", left_out=left_out)
        best_of_each = [row for row in chain(*zip_longest(*ranked)) if row is not None]
        return SearchResult(
            tuple(self.rows[row] for row in dict.fromkeys(best_of_each)),
            "named",
            join_words(topics),
            _few(not_found, joint=" or "),
            left_out,
            len(ranked),
        )

    def _rank(self, query: Mapping[str, str], rows: Sequence[int]) -> tuple[list[int], str]:
        """Returns which of these rows fit a query, best first, and the words that they share."""
        terms = [token for token in query if token in self._rarity]
        # "The Pet Pantry" is neither all pet food nor another pantry: where a name has every word, no other row fits.
        whole = [row for row in rows if any(text.issuperset(terms) for text in self._texts[row])]
        if len(terms) > 1 and whole:
            rows = whole
        scores = {
            row: sum(self._rarity[token] * self._words[row].get(token, 0.0) for token in terms)
            for row in rows
        }
        least = max(scores.values(), default=0.0) * SCORE_SHARE
        ranked = sorted(
            (row for row, score in scores.items() if score and score >= least),
            key=lambda row: -scores[row],
        )
        # A heading of all words that some row has would say more than its rows hold.
        common = [token for token in terms if all(token in self._words[row] for row in ranked)]
        if common:
            return ranked, _few(query[token] for token in common)
        hit = [token for token in terms if any(token in self._words[row] for row in ranked)]
        return ranked, _few([query[token] for token in hit], joint=" or ")

    def _without(self, left_out: Iterable[str]) -> tuple[list[int], str]:
        """Returns the rows that have nothing of what is to be left out, and its words."""
        rows = list(range(len(self.rows)))
        names: list[str] = []
        for thing in left_out:
            query = query_terms(thing, self._noise)
            terms = [token for token in query if token in self._rarity]
            if terms:
                names.append(" ".join(query[token] for token in terms))
                rows = [row for row in rows if not all(map(self._words[row].__contains__, terms))]
        return rows, " or ".join(names)

    def _kinds(self, things: Iterable[str]) -> tuple[list[dict[str, str]], list[str]]:
        """Returns the queries for things that no row is at once, and the names of those that no row is."""
        kinds: list[dict[str, str]] = []
        not_found: list[str] = []
        for thing in things:
            query = query_terms(thing, self._noise)
            known_terms = {token for token in query if token in self._rarity}
            if not known_terms:
                names = self._names(query)
                # More words than two name no thing that a list could hold.
                if 0 < len(names) <= 2:
                    not_found.append(" ".join(names))
            elif kinds and self._is_one_kind(kinds[-1], query):
                kinds[-1] |= query
            else:
                kinds.append(query)
        return kinds, not_found

    def _is_one_kind(self, first: Mapping[str, str], second: Mapping[str, str]) -> bool:
        """Whether some row is both, as "Pantry & Vine" is, or one of the two tells no rows apart."""
        rarest: list[str] = []
        for query, other in ((first, second), (second, first)):
            own_terms = [token for token in query if token in self._rarity and token not in other]
            telling = [token for token in own_terms if self._rarity[token] >= TELLING]
            if not telling:
                return True
            rarest.append(max(telling, key=self._rarity.__getitem__))
        return any(all(map(words.__contains__, rarest)) for words in self._words)

    def unmet(self, text: str, row: T) -> str:
        """Returns the words that `text` may name something by, where a row has not all of them; else nothing."""
        query = query_terms(text, self._noise)
        names = self._names(query)
        row_words = self._words[self.rows.index(row)]
        if all(token in row_words for token in query if query[token] in names):
            return ""
        return _few(names)

    def _names(self, query: Mapping[str, str]) -> list[str]:
        """The words of a query that may name something, as they were written."""
        return [query[token] for token in query if not {token, query[token]} & self._talk]

    def _close_to(self, names: Iterable[str]) -> tuple[T, ...]:
        """Returns the rows with words that are written nearly like these, which no row has; all, where none has any."""
        close: list[str] = []
        # An id that is nearly another one is that of something else.
        for name in filter(str.isalpha, names):
            close += get_close_matches(fold(name), self._rarity, n=1, cutoff=NEARLY)
        if not close:
            return self.rows
        return self.search(" ".join(close)).rows


def _few(words: Iterable[str], most: int = 5, joint: str = " ") -> str:
    return joint.join(islice(words, most))
