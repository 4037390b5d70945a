"""Phrases that are looked for in a text, word by word, in time proportional to its length.

A phrase is written as words with blanks between them. `kill*` stands for every word that begins so, `<child>` for any
word of a list with that name. Words follow each other directly, unless one of two marks stands between them: `~` lets
any number of small words through (`a`, `the`, `whole bottle of`), `...` up to five words of any kind. No phrase goes
beyond a comma or the end of a sentence. Accents, apostrophes and upper case make no difference, nor does one letter too
few, too many or out of its place in a long word.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from kit.core.language.words import words

FAR = 5
"""Words that `...` lets through."""
SHORTEST_STEM = 3
"""Letters that must stand before a `*`; fewer would match half of the language."""
LONG = 6
"""Letters of a word that may be misspelt: one letter makes another word of a short one (`pills`, `bills`)."""
LONGEST_WORD = 40
"""Letters of a word that are compared; no language here has a longer one, and a message may be one word without end."""
MOST_KNOWN = 2_000
"""Words whose places are remembered."""
_STRETCH_END = re.compile(r"[.!?;:,()\n]")
_LIST_NAME = re.compile(r"<([\w-]+)>")


class Gap(Enum):
    """What may stand between a word of a phrase and the one before it."""

    NOTHING = ""
    SMALL_WORDS = "~"
    ANY_WORDS = "..."


MARKS = {mark.value: mark for mark in Gap}


@dataclass(frozen=True, slots=True)
class Step:
    """One word of a phrase."""

    words: frozenset[str]
    stems: tuple[str, ...]
    """Beginnings of further words that stand here as well."""
    gap: Gap


Phrase = tuple[Step, ...]
Place = tuple[int, int]
"""Where a word stands: the position of a phrase, and the position in it."""


class PhraseMatch(NamedTuple):
    """A phrase and the words of a text that it covers."""

    phrase: int
    """Its position among those that were looked for."""
    start: int
    end: int
    """The positions of its first and its last word."""
    stretch: int
    """How many commas and ends of sentences stand before it: two matches with one number share a clause."""


def plain_words(text: str) -> list[str]:
    """Returns the words of a text without accents, apostrophes or upper case."""
    decomposed = unicodedata.normalize("NFKD", text.replace("’", "'"))
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return [word.replace("'", "") for word in words(letters)]


def read_phrase(text: str, lists: Mapping[str, frozenset[str]]) -> Phrase:
    """Returns the phrase that is written so. Raises ValueError with the fix for one that cannot be matched."""
    steps: list[Step] = []
    gap = Gap.NOTHING
    pieces = text.split()
    if not pieces:
        raise ValueError("an empty phrase; give it words or take it out")
    if pieces[0] in MARKS or pieces[-1] in MARKS:
        raise ValueError(f"{text!r} begins or ends with a mark; put it between two words")
    for piece in pieces:
        if piece in MARKS:
            gap = MARKS[piece]
            continue
        steps.append(_read_step(piece, gap, lists))
        gap = Gap.NOTHING
    return tuple(steps)


def _read_step(piece: str, gap: Gap, lists: Mapping[str, frozenset[str]]) -> Step:
    if piece.startswith("<") and (name := _LIST_NAME.fullmatch(piece)):
        if name[1] not in lists:
            names = ", ".join(sorted(lists)) or "none"
            raise ValueError(f"{piece} names no list of words; there are: {names}")
        return _step_of(lists[name[1]], gap)
    return _step_of(frozenset({piece}), gap)


# Most words stand in several phrases.
@lru_cache(maxsize=20_000)
def _step_of(alternatives: frozenset[str], gap: Gap) -> Step:
    exact: set[str] = set()
    stems: list[str] = []
    for alternative in sorted(alternatives):
        alternative_words = plain_words(alternative.removesuffix("*"))
        if len(alternative_words) != 1:
            raise ValueError(f"{alternative!r} is not one word; write a phrase word by word")
        if not alternative.endswith("*"):
            exact.add(alternative_words[0])
        elif len(alternative_words[0]) >= SHORTEST_STEM:
            stems.append(alternative_words[0])
        else:
            raise ValueError(f"{alternative!r} is too short for a *; give {SHORTEST_STEM} letters")
    return Step(frozenset(exact), tuple(stems), gap)


class PhraseFinder:
    """Finds phrases in texts. Each word is compared with a phrase once, so that a text costs its length."""

    def __init__(self, phrases: Sequence[Phrase], small_words: frozenset[str] = frozenset()):
        self._phrases = phrases
        self._small_words = small_words
        self._exact: dict[str, list[Place]] = {}
        """Word -> the places where it stands, in the order of the phrases."""
        self._stems: dict[str, dict[str, list[Place]]] = {}
        """The first letters of a stem -> the stems that begin so, each with its places."""
        for phrase_index, phrase in enumerate(phrases):
            for step_index, step in enumerate(phrase):
                place = (phrase_index, step_index)
                for word in step.words:
                    self._exact.setdefault(word, []).append(place)
                for stem in step.stems:
                    stems = self._stems.setdefault(stem[:SHORTEST_STEM], {})
                    stems.setdefault(stem, []).append(place)
        self._shortened: dict[str, str] = {}
        """A long word without one of its letters -> the word."""
        for word in self._exact:
            if len(word) >= LONG:
                for index in range(1, len(word)):
                    self._shortened[word[:index] + word[index + 1 :]] = word
        self._known_places: dict[str, list[Place]] = {}
        """Word -> its places, for most words of a message have stood in an earlier one."""

    def find(self, text: str, without: "PhraseFinder | None" = None) -> list[PhraseMatch]:
        """Returns every match, in the order of the text.

        The words of phrases that `without` finds belong to no phrase here: "kill time" is no "kill".
        """
        tokens = _tokens(text)
        if without is not None:
            for match in without._matches(tokens):
                length = match.end + 1 - match.start
                tokens[match.start : match.end + 1] = [SKIPPED] * length
        return self._matches(tokens)

    def _matches(self, tokens: Sequence[str]) -> list[PhraseMatch]:
        """Of each beginning of a phrase only the latest end is kept: whatever may follow an earlier end within a gap
        may follow a later one as well."""
        begun: dict[Place, PhraseMatch] = {}
        matches: list[PhraseMatch] = []
        last_big_word = -1
        """The position of the last word that is not small."""
        stretch = 0
        for position, word in enumerate(tokens):
            if word == STRETCH_END:
                begun.clear()
                stretch += 1
            for phrase, step in self._places_of(word):
                start = position
                if step > 0:
                    previous = begun.get((phrase, step - 1))
                    gap = self._phrases[phrase][step].gap
                    if previous is None or not _may_follow(
                        gap, previous.end, position, last_big_word
                    ):
                        continue
                    start = previous.start
                match = PhraseMatch(phrase, start, position, stretch)
                begun[phrase, step] = match
                if step == len(self._phrases[phrase]) - 1:
                    matches.append(match)
            if word not in self._small_words:
                last_big_word = position
        return matches

    def _places_of(self, word: str) -> list[Place]:
        # A dictionary and no `lru_cache`: a deck goes to other processes, and a cache bound to this object cannot.
        if word not in self._known_places:
            if len(self._known_places) >= MOST_KNOWN:
                self._known_places.clear()
            self._known_places[word] = self._find_places(word)
        return self._known_places[word]

    def _find_places(self, word: str) -> list[Place]:
        """The places where a word stands, later steps first: no word is two steps of one phrase at once."""
        known = word in self._exact
        if not known and len(word) >= LONG - 1 and word not in self._small_words:
            word_meant = self._respelt(word)
        else:
            word_meant = word
        places = set(self._exact.get(word_meant, ()))
        for stem, places_of_stem in self._stems.get(word[:SHORTEST_STEM], {}).items():
            if word.startswith(stem):
                places.update(places_of_stem)
        return sorted(places, key=lambda place: (-place[1], place[0]))

    def _respelt(self, word: str) -> str:
        """The long word that a word is meant to be: with one letter less or more, or two of them exchanged."""
        if word in self._shortened:
            return self._shortened[word]
        for index in range(1, len(word)):
            shorter = word[:index] + word[index + 1 :]
            if len(shorter) >= LONG and shorter in self._exact:
                return shorter
            exchanged = word[: index - 1] + word[index] + word[index - 1] + word[index + 1 :]
            if len(word) >= LONG and exchanged in self._exact:
                return exchanged
        return word


def _may_follow(gap: Gap, end: int, position: int, last_big_word: int) -> bool:
    """Whether a word may stand at a position, where the beginning of its phrase has ended at `end`."""
    words_between = position - end - 1
    match gap:
        case Gap.NOTHING:
            return words_between == 0
        case Gap.SMALL_WORDS:
            return last_big_word <= end
        case Gap.ANY_WORDS:
            return words_between <= FAR


STRETCH_END = "\n"
"""Stands among the words for a comma and for the end of a sentence."""
SKIPPED = ""
"""Stands among the words for one that belongs to no phrase."""


def _tokens(text: str) -> list[str]:
    """The words of a text, with STRETCH_END wherever no phrase goes on."""
    tokens: list[str] = []
    for stretch in _STRETCH_END.split(text.replace("&", " and ")):
        for word in plain_words(stretch):
            tokens.append(word[:LONGEST_WORD])
        tokens.append(STRETCH_END)
    return tokens
