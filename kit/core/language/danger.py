"""What a deck answers where somebody's life may be in danger: words to look for, and whom to call, per locale."""

from collections.abc import Iterator
from functools import cached_property

from pydantic import Field

from kit.core.language.phrases import Phrase, PhraseFinder, read_phrase
from kit.core.language.words import word_set
from kit.core.value import Value

SMALL = "small"
"""The list of words that the mark `~` lets through."""


class DangerKind(Value):
    """One kind of danger, such as poison: how people speak of it, and what they are answered."""

    reply: str = Field(min_length=1)
    """The whole answer. No agent and no model is asked, so it says whom to call."""
    phrases: tuple[str, ...] = Field(min_length=1)
    """How people speak of it; kit/core/language/phrases.py says how a phrase is written."""


class Danger(Value):
    """The words of one locale, as cards/danger/<id>.yaml gives them."""

    id: str
    """The locale whose words and telephone numbers these are, such as `en-US`."""
    words: dict[str, str] = {}
    """Lists of words that phrases name as `<list>`, with blanks between the words."""
    harmless: tuple[str, ...] = ()
    """Phrases whose words say nothing of danger, such as "kill time"."""
    kinds: dict[str, DangerKind] = Field(min_length=1)
    """The kind that stands first answers a message that speaks of several."""

    @property
    def lists(self) -> dict[str, frozenset[str]]:
        return {name: word_set(text) for name, text in self.words.items()}

    @cached_property
    def finder(self) -> "DangerFinder":
        """The phrases, ready to be looked for. A deck is bound more than once, and reading some 1,300
        phrases takes 70 ms: they are read once."""
        return DangerFinder(self)


class DangerFinder:
    """The phrases of one locale, ready to be looked for."""

    def __init__(self, danger: Danger):
        self.danger = danger
        lists = danger.lists
        small_words = lists.get(SMALL, frozenset())
        self._kind_of_phrase: list[str] = []
        phrases: list[Phrase] = []
        for name, kind in danger.kinds.items():
            for text in kind.phrases:
                phrases.append(read_phrase(text, lists))
                self._kind_of_phrase.append(name)
        self._finder = PhraseFinder(phrases, small_words)
        harmless = [read_phrase(text, lists) for text in danger.harmless]
        self._harmless = PhraseFinder(harmless, small_words)

    def kind_of(self, message: str) -> str | None:
        """Returns the kind of danger that a message speaks of; None where it speaks of none."""
        matches = self._finder.find(message, without=self._harmless)
        kinds = {self._kind_of_phrase[match.phrase] for match in matches}
        for kind in self.danger.kinds:
            if kind in kinds:
                return kind
        return None


def danger_faults(danger: Danger) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yields the place and the fix of every phrase that cannot be matched."""
    lists = danger.lists
    places: list[tuple[tuple[str | int, ...], str]] = []
    for index, text in enumerate(danger.harmless):
        places.append((("harmless", index), text))
    for name, kind in danger.kinds.items():
        for index, text in enumerate(kind.phrases):
            places.append((("kinds", name, "phrases", index), text))
    for location, text in places:
        try:
            read_phrase(text, lists)
        except ValueError as error:
            yield location, str(error)
