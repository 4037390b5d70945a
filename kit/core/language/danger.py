"""What a deck answers where somebody's life may be in danger: words to look for, and whom to call, per locale."""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import NamedTuple

from pydantic import Field

from kit.core.language.phrases import Phrase, PhraseFinder, PhraseMatch, read_phrase
from kit.core.language.words import word_set
from kit.core.value import Value

SMALL = "small"
"""The list of words that the mark `~` lets through."""
END = attrgetter("end")
STRETCH = attrgetter("stretch")
TOGETHER = 12
"""Words within which the terms of a rule stand together, whatever their order."""
BESIDE = 8
"""Words around a rule's terms in which a term that it shuts out is looked for."""


class DangerKind(Value):
    """One kind of danger, such as poison: how people speak of it, and what they are answered."""

    reply: str = Field(min_length=1)
    """The whole answer. No agent and no model is asked, so it says whom to call."""
    phrases: tuple[str, ...] = ()
    """How people speak of it; kit/core/language/phrases.py says how a phrase is written."""
    rules: tuple[str, ...] = ()
    """Terms that speak of it where they stand together in any order, such as `swallowed poison`. A term
    with `!` before it must not stand beside them in their clauses."""


class Danger(Value):
    """The words of one locale, as cards/danger/<id>.yaml gives them."""

    id: str
    """The locale whose words and telephone numbers these are, such as `en-US`."""
    words: dict[str, str] = {}
    """Lists of words that phrases, and lists below them, name as `<list>`, with blanks between the words."""
    terms: dict[str, str] = {}
    """Phrases that mean the same to a rule, with commas between them."""
    clause_openers: str = ""
    """Phrases that begin another clause, with commas between them, such as "and i"."""
    harmless: tuple[str, ...] = ()
    """Phrases whose words say nothing of danger, such as "kill time"."""
    kinds: dict[str, DangerKind] = Field(min_length=1)
    """The kind that stands first answers a message that speaks of several."""

    @property
    def lists(self) -> dict[str, frozenset[str]]:
        """The lists of words; one that names another as `<list>` holds its words too."""
        lists: dict[str, frozenset[str]] = {}
        for name, text in self.words.items():
            names = word_set(text)
            for other, other_words in lists.items():
                if f"<{other}>" in names:
                    names = names - {f"<{other}>"} | other_words
            lists[name] = names
        return lists

    @cached_property
    def finder(self) -> "DangerFinder":
        """The phrases, ready to be looked for."""
        return _finder_of(self.model_dump_json())


class Rule(NamedTuple):
    """Terms that speak of danger where they stand together."""

    kind: str
    terms: tuple[str, ...]
    shut_out: tuple[str, ...]


class DangerFinder:
    """The phrases and rules of one locale, ready to be looked for."""

    def __init__(self, danger: Danger):
        self.danger = danger
        lists = danger.lists
        small_words = lists.get(SMALL, frozenset())
        phrases: list[Phrase] = []
        harmless: list[Phrase] = []
        self._kind_of_phrase: dict[int, str] = {}
        self._term_of_phrase: dict[int, str] = {}
        self._clause_openers: set[int] = set()
        for place, text in _phrases_of(danger):
            phrase = read_phrase(text, lists)
            match place:
                case ("kinds", str(name), *_):
                    self._kind_of_phrase[len(phrases)] = name
                    phrases.append(phrase)
                case ("terms", str(name)):
                    self._term_of_phrase[len(phrases)] = name
                    phrases.append(phrase)
                case ("clause_openers", *_):
                    self._clause_openers.add(len(phrases))
                    phrases.append(phrase)
                case _:
                    harmless.append(phrase)
        self._rules_by_term: dict[str, list[Rule]] = {}
        for rule in _rules(danger):
            for term in rule.terms:
                self._rules_by_term.setdefault(term, []).append(rule)
        self._finder = PhraseFinder(phrases, small_words)
        self._harmless = PhraseFinder(harmless, small_words)

    def kind_of(self, message: str) -> str | None:
        """Returns the kind of danger that a message speaks of; None where it speaks of none."""
        matches = self._finder.find(message, without=self._harmless)
        kinds = self._kinds_by_rule(matches)
        for match in matches:
            if match.phrase in self._kind_of_phrase:
                kinds.add(self._kind_of_phrase[match.phrase])
        for kind in self.danger.kinds:
            if kind in kinds:
                return kind
        return None

    def _kinds_by_rule(self, matches: list[PhraseMatch]) -> set[str]:
        matches_by_term: dict[str, list[PhraseMatch]] = {}
        openers = (match.start for match in matches if match.phrase in self._clause_openers)
        clause_starts = [0, *sorted(openers), sys.maxsize]
        for match in matches:
            term = self._term_of_phrase.get(match.phrase)
            if term is not None:
                matches_by_term.setdefault(term, []).append(match)
        last_match: dict[str, PhraseMatch] = {}
        kinds: set[str] = set()
        for match in matches:
            term = self._term_of_phrase.get(match.phrase)
            if term is None:
                continue
            last_match[term] = match
            for rule in self._rules_by_term.get(term, ()):
                if rule.kind in kinds:
                    continue
                if _holds(rule, match, last_match, matches_by_term, clause_starts):
                    kinds.add(rule.kind)
        return kinds


@lru_cache(maxsize=8)
def _finder_of(danger: str) -> DangerFinder:
    """Returns the finder of a danger, given as JSON. Reading some thousand phrases takes 0.1 s, and a deck is read
    again for each grid, revision and kit: its words are the same."""
    return DangerFinder(Danger.model_validate_json(danger))


def _holds(
    rule: Rule,
    last: PhraseMatch,
    last_match: Mapping[str, PhraseMatch],
    matches_by_term: Mapping[str, list[PhraseMatch]],
    clause_starts: Sequence[int],
) -> bool:
    """Whether the terms of a rule stand together up to `last`, with none that it shuts out beside them."""
    first = last
    for term in rule.terms:
        match = last_match.get(term)
        if match is None or last.end - match.end > TOGETHER:
            return False
        first = min(first, match, key=END)
    for term in rule.shut_out:
        if _stands_beside(matches_by_term.get(term, []), first, last, clause_starts):
            return False
    return True


def _stands_beside(
    matches: list[PhraseMatch],
    first: PhraseMatch,
    last: PhraseMatch,
    clause_starts: Sequence[int],
) -> bool:
    """Whether one of some matches stands near two others and shares their clauses.

    What stands in another clause says nothing of them: "my kid drank bleach and I want my points".
    """
    clause_start = clause_starts[bisect_right(clause_starts, first.start) - 1]
    clause_end = clause_starts[bisect_right(clause_starts, last.end)]
    # A message may name many shops: to look at each for every rule would cost more than the message's length.
    near = bisect_left(matches, max(first.end - BESIDE, clause_start), key=END)
    same_sentence = bisect_left(matches, first.stretch, key=STRETCH)
    index = max(near, same_sentence)
    if index == len(matches):
        return False
    match = matches[index]
    is_near = match.end <= last.end + BESIDE and match.start < clause_end
    return is_near and match.stretch <= last.stretch


def _rules(danger: Danger) -> Iterator[Rule]:
    for name, kind in danger.kinds.items():
        for text in kind.rules:
            pieces = text.split()
            terms = [piece for piece in pieces if not piece.startswith("!")]
            shut_out = [piece[1:] for piece in pieces if piece.startswith("!")]
            yield Rule(name, tuple(terms), tuple(shut_out))


def _can_be_read(danger: Danger) -> bool:
    """Whether every phrase can be matched; the finder that is made of them is kept."""
    try:
        return bool(danger.finder)
    except ValueError:
        return False


def danger_faults(danger: Danger) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yields the place and the fix of every phrase that cannot be matched and every rule that cannot hold."""
    for name, kind in danger.kinds.items():
        for index, text in enumerate(kind.rules):
            for term in text.split():
                if term.removeprefix("!") not in danger.terms:
                    terms = ", ".join(sorted(danger.terms)) or "none"
                    place = ("kinds", name, "rules", index)
                    yield place, f"{term!r} names no term; there are: {terms}"
    # Most decks are right, and their phrases are wanted soon: they are read once, and not here again.
    if _can_be_read(danger):
        return
    lists = danger.lists
    for place, text in _phrases_of(danger):
        try:
            read_phrase(text, lists)
        except ValueError as error:
            yield place, str(error)


def _phrases_of(danger: Danger) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yields every phrase with its place."""
    for name, kind in danger.kinds.items():
        for index, text in enumerate(kind.phrases):
            yield ("kinds", name, "phrases", index), text
    for name, text in danger.terms.items():
        for phrase in text.split(","):
            yield ("terms", name), phrase
    if danger.clause_openers:
        for phrase in danger.clause_openers.split(","):
            yield ("clause_openers",), phrase
    for index, text in enumerate(danger.harmless):
        yield ("harmless", index), text
