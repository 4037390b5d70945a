"""Resolves references to what was shown: what "the third offer", "offer 3", "the cheapest" or "the one from X" means.

A text may use the words of any locale. What people call a kind of component is the deck's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kit.compose.locale import BY_LANGUAGE
from kit.core.language.words import STOP, content_words, words
from kit.core.record import ShownComponent
from kit.core.schema.json_value import is_list
from kit.core.value import Value

SHORT = 4
"""Words of a message that cannot stand alone, whatever they are."""


class Kind(Value):
    """How people speak of one type of component."""

    words: str = ""
    """What they call it, words with blanks between them, in every language."""
    price: str | None = None
    """The field of its payload that says what it costs."""
    ends: str | None = None
    """The field of its payload that says on which day it ends, as 2026-11-03."""


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.split(",")]


def _phrases_of(key: str) -> list[str]:
    """The phrases under one key of `references`, in every language: a text may use any."""
    phrases: list[str] = []
    for locale in BY_LANGUAGE.values():
        phrases += _phrases(getattr(locale.references, key))
    return phrases


def _either(phrases: Iterable[str]) -> str:
    # The longest comes first: a regular expression takes the first that fits.
    longest_first = sorted(phrases, key=len, reverse=True)
    patterns = [re.escape(phrase).replace(r"\ ", r"\s+") for phrase in longest_first]
    return f"(?:{'|'.join(patterns)})"


def _ordinals() -> dict[str, int]:
    positions: dict[str, int] = {}
    for locale in BY_LANGUAGE.values():
        for position, forms in enumerate(locale.references.places, 1):
            positions |= dict.fromkeys(_phrases(forms), position)
    return positions


def _numerals() -> dict[str, int]:
    numerals: dict[str, int] = {}
    for locale in BY_LANGUAGE.values():
        numerals |= locale.checks.numerals
    return numerals


_POSITION_OF = _ordinals()
_NUMERALS = _numerals()
_LAST = frozenset(_phrases_of("last"))
_LEAST = frozenset(_phrases_of("least"))
_ONES = frozenset(_phrases_of("ones"))
_TIMES = frozenset(_phrases_of("times"))
_THINGS = frozenset(_phrases_of("things"))
_ANYTHING = _ONES | _THINGS
_NUMBERED = _THINGS.union(_phrases_of("numbers"))
_WORDS_AFTER = STOP.union(_ANYTHING, _phrases_of("after"))
"""Words after which "the second" may still be all that is said of a thing: "is the second still on"."""
_PRONOUNS = frozenset(_phrases_of("pronouns"))
_THE = rf"\b{_either(_phrases_of('articles'))}\s+"
_NUMERAL = rf"\d{{1,2}}{_either(_phrases_of('endings'))}"
_ORDINAL = re.compile(
    rf"{_THE}(?P<ordinal>{_either([*_POSITION_OF, *_LAST])}|{_NUMERAL})(?!\w)", re.I
)
_EXTREMES = _either([*_LEAST, *_phrases_of("most")])
_EXTREME = re.compile(rf"{_THE}(?:(?P<noun>\w{{1,30}})\s+)?(?P<extreme>{_EXTREMES})\b", re.I)
_NUMBER = re.compile(r"(?:\b(?P<noun>[^\W\d]{1,30})\.?\s?|#)(?P<number>\d{1,2})\b", re.I)
_NUMBER_IN_WORDS = re.compile(
    rf"\b{_either(_phrases_of('counted'))}\s+(?P<number>{_either(_NUMERALS)})\b", re.I
)
_SOONEST = re.compile(rf"\b{_either(_phrases_of('soonest'))}\b", re.I)
_SOURCE = re.compile(
    rf"{_THE}(?:(?P<noun>\w{{1,30}})\s+)?{_either(_phrases_of('sources'))}\s+(?P<source>[^.?!,;\n]{{1,60}})",
    re.I,
)
_POINTER = re.compile(
    rf"\b{_either(_phrases_of('pointers'))}\b|{_THE}(?:\w{{1,30}}\s+)?{_either(_ONES)}\b", re.I
)
_CLAUSE = re.compile(r"[^.?!,;\n]{0,60}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Words of a text that mean one of the things shown: by its position, what it costs or where it is from."""

    type: str = ""
    """The type asked for; empty where the text says none."""
    position: int | None = None
    """1 for the first, -1 for the last."""
    extreme: str = ""
    source: str = ""
    is_soonest: bool = False
    """Whether the one that ends before the others is meant."""


def kinds_of(components: Sequence[ShownComponent], kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """Returns the kinds of a deck and those of what was shown."""
    return {component.type: Kind() for component in components} | dict(kinds)


def points_back(text: str, kinds: Mapping[str, Kind] = {}) -> bool:
    """Whether a text speaks of something by its position or by pointing: "the third offer", "that one"."""
    return _POINTER.search(text) is not None or next(references(text, kinds), None) is not None


def leans_back(text: str, kinds: Mapping[str, Kind] = {}) -> bool:
    """Whether a text may not stand alone: it points, has a word for something said before, or has few words at all."""
    text_words = words(text)
    if len(text_words) <= SHORT or not _PRONOUNS.isdisjoint(text_words):
        return True
    return points_back(text, kinds)


def references(text: str, kinds: Mapping[str, Kind]) -> Iterator[Reference]:
    """Yields what a text may mean of what was shown, the surest first. "Last week" is a time and means none of it.

    Without `kinds` nobody knows what may be shown, and any noun may be one of them.
    """
    types: dict[str, str] = {}
    for name, kind in kinds.items():
        types |= dict.fromkeys((name, *kind.words.split()), name)
    for match in _ORDINAL.finditer(text):
        ordinal = match["ordinal"].lower()
        if ordinal in _LAST:
            position = -1
        else:
            position = _POSITION_OF.get(ordinal) or int(re.sub(r"\D", "", ordinal))
        near = _words_after(text, match)
        # Without this "last week" and "the first time" would mean something that was shown.
        if not types or _is_of_something_shown(near, types):
            yield Reference(_type(near, types), position=position)
    for match in _NUMBER.finditer(text):
        noun = _noun(match)
        if not noun or noun in _NUMBERED or noun in types:
            yield Reference(types.get(noun, ""), position=int(match["number"]))
    for match in _NUMBER_IN_WORDS.finditer(text):
        yield Reference(position=_NUMERALS[match["number"].lower()])
    if _SOONEST.search(text):
        yield Reference(_type(words(text), types), is_soonest=True)
    for match in _EXTREME.finditer(text):
        near = [_noun(match), *_words_after(text, match)]
        yield Reference(_type(near, types), extreme=" ".join(words(match["extreme"])))
    for match in _SOURCE.finditer(text):
        noun = _noun(match)
        if not noun or noun in _ANYTHING or noun in types:
            yield Reference(types.get(noun, ""), source=match["source"])


def resolve(
    text: str, components: Sequence[ShownComponent], kinds: Mapping[str, Kind] = {}
) -> ShownComponent | None:
    """Which of the things shown, oldest turn first, a text means; None where it names none, or one that was not there.

    Where it could mean several, the newest of the type asked for is meant (decisions 32).
    """
    kinds = kinds_of(components, kinds)
    by_turn: dict[str, list[ShownComponent]] = {}
    for component in components:
        by_turn.setdefault(component.turn_id, []).append(component)
    for reference in references(text, kinds):
        # The newest turn that has one: people speak of what they see.
        for turn in reversed(by_turn.values()):
            candidates = [each for each in turn if reference.type in ("", each.type)]
            component = _pick(reference, candidates, kinds)
            if component is not None:
                return component
    return None


def _pick(
    reference: Reference, candidates: Sequence[ShownComponent], kinds: Mapping[str, Kind]
) -> ShownComponent | None:
    if not candidates:
        return None
    if reference.position == -1:
        return candidates[-1]
    if reference.position is not None:
        positions = {component.position: component for component in reversed(candidates)}
        return positions.get(reference.position)
    if reference.extreme:
        return _by_price(candidates, kinds, cheapest=reference.extreme in _LEAST)
    if reference.is_soonest:
        return _first_to_end(candidates, kinds)
    return _by_source(candidates, reference.source)


def _by_price(
    candidates: Sequence[ShownComponent], kinds: Mapping[str, Kind], *, cheapest: bool
) -> ShownComponent | None:
    # The first of those that cost the same.
    choice: ShownComponent | None = None
    limit = 0.0
    for component in candidates:
        price = component.payload.get(kinds[component.type].price or "")
        if not isinstance(price, int | float) or isinstance(price, bool):
            continue
        if choice is None or (price < limit if cheapest else price > limit):
            choice = component
            limit = price
    return choice


def _first_to_end(
    candidates: Sequence[ShownComponent], kinds: Mapping[str, Kind]
) -> ShownComponent | None:
    # The first of those that end on the same day.
    choice: ShownComponent | None = None
    earliest = ""
    for component in candidates:
        day = component.payload.get(kinds[component.type].ends or "")
        if isinstance(day, str) and (choice is None or day < earliest):
            choice = component
            earliest = day
    return choice


def _by_source(candidates: Sequence[ShownComponent], source: str) -> ShownComponent | None:
    """The component that has most words of its source; the first word is one it must have."""
    source_words: list[str] = []
    for word in words(source):
        source_words += content_words(word)
    choice: ShownComponent | None = None
    most_words = 0
    for component in candidates:
        common_words = _content(component).intersection(source_words)
        if source_words and source_words[0] in common_words and len(common_words) > most_words:
            choice = component
            most_words = len(common_words)
    return choice


def _content(component: ShownComponent) -> frozenset[str]:
    """The words of its title and of what its payload says in words, lists of words included."""
    texts = [component.title]
    for value in component.payload.values():
        items = value if is_list(value) else [value]
        texts += [item for item in items if isinstance(item, str)]
    return content_words(" ".join(texts))


def _noun(match: re.Match[str]) -> str:
    return (match["noun"] or "").lower()


def _words_after(text: str, match: re.Match[str]) -> list[str]:
    """The two next words: the kind of thing stands among them."""
    clause = _CLAUSE.match(text, match.end())
    if clause:
        return words(clause[0])[:2]
    return []


def _is_of_something_shown(near: Sequence[str], types: Mapping[str, str]) -> bool:
    """Whether an ordinal before these words may mean something shown.

    "The first arc" is the first of its own kind, and "last week" is a time: neither is an item of a list.
    """
    if not near or _type(near, types):
        return True
    if near[0] in _TIMES:
        return False
    return near[0] in _WORDS_AFTER or not _ANYTHING.isdisjoint(near)


def _type(near: Iterable[str], types: Mapping[str, str]) -> str:
    for word in near:
        name = types.get(word) or types.get(word.removesuffix("s"))
        if name:
            return name
    return ""
