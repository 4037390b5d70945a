"""Resolves references to what was shown: what "the third offer", "offer 3", "the cheapest" or "the one from X" means.

A text may use the words of any locale. What people call a kind of component is the deck's.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, cast

from kit.compose.locale import BY_LANGUAGE, References
from kit.core.language.words import STOP, content_words, words
from kit.core.record import ShownComponent
from kit.core.value import Value

SHORT = 4
"""Words of a message that cannot stand alone, whatever they are."""


class Kind(Value):
    """How people speak of one type of component."""

    words: str = ""
    """What they call it, words with blanks between them, in every language."""
    price: str | None = None
    """The field of its payload that says what it costs."""


def _phrases(*texts: str) -> list[str]:
    return [phrase.strip() for text in texts for phrase in text.split(",")]


def _every(read: Callable[[References], str]) -> list[str]:
    return _phrases(*(read(locale.references) for locale in BY_LANGUAGE.values()))


def _either(phrases: Iterable[str]) -> str:
    return (
        "(?:"
        + "|".join(
            r"\s+".join(map(re.escape, p.split())) for p in sorted(phrases, key=len, reverse=True)
        )
        + ")"
    )


_PLACES = [
    (n, text)
    for locale in BY_LANGUAGE.values()
    for n, text in enumerate(locale.references.places, 1)
]
_PLACE_OF = {form: n for n, text in _PLACES for form in _phrases(text)}
_LAST = frozenset(_every(lambda w: w.last))
_LEAST = frozenset(_every(lambda w: w.least))
_ONES = frozenset(_every(lambda w: w.ones))
_TIMES = frozenset(_every(lambda w: w.times))
_THINGS = frozenset(_every(lambda w: w.things))
_NUMBERED = frozenset(_every(lambda w: f"{w.numbers}, {w.things}"))
_AFTER = STOP | _ONES | _THINGS | frozenset(_every(lambda w: w.after))
"""Words after which "the second" may still be all that is said of a thing: "is the second still on"."""
_PRONOUNS = frozenset(_every(lambda w: w.pronouns))
_THE = rf"\b{_either(_every(lambda w: w.articles))}\s+"
_NUMERAL = rf"\d{{1,2}}{_either(_every(lambda w: w.endings))}"
_PLACE = re.compile(rf"{_THE}(?P<place>{_either([*_PLACE_OF, *_LAST])}|{_NUMERAL})(?!\w)", re.I)
_EXTREMES = _either([*_LEAST, *_every(lambda w: w.most)])
_EXTREME = re.compile(rf"{_THE}(?:(?P<noun>\w{{1,30}})\s+)?(?P<extreme>{_EXTREMES})\b", re.I)
_NUMBER = re.compile(r"(?:\b(?P<noun>[^\W\d]{1,30})\.?\s?|#)(?P<number>\d{1,2})\b", re.I)
_SOURCE = re.compile(
    rf"{_THE}(?:(?P<noun>\w{{1,30}})\s+)?{_either(_every(lambda w: w.sources))}\s+(?P<source>[^.?!,;\n]{{1,60}})",
    re.I,
)
_POINTER = re.compile(
    rf"\b{_either(_every(lambda w: w.pointers))}\b|{_THE}(?:\w{{1,30}}\s+)?{_either(_ONES)}\b", re.I
)
_REST = re.compile(r"[^.?!,;\n]{0,60}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Words of a text that mean one of the things shown, by one of: its place, what it costs, where it is from."""

    type: str = ""
    """The type asked for; empty where the text says none."""
    place: int | None = None
    """1 for the first, -1 for the last."""
    extreme: str = ""
    source: str = ""


def kinds_of(components: Sequence[ShownComponent], kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """Returns the kinds of a deck and those of what was shown."""
    return {component.type: Kind() for component in components} | dict(kinds)


def points_back(text: str, kinds: Mapping[str, Kind] = {}) -> bool:
    """Whether a text speaks of something by its place or by pointing: "the third offer", "that one"."""
    return _POINTER.search(text) is not None or next(references(text, kinds), None) is not None


def leans_back(text: str, kinds: Mapping[str, Kind] = {}) -> bool:
    """Whether a text may not stand alone: it points, has a word for something said before, or has few words at all."""
    said = words(text)
    return len(said) <= SHORT or not _PRONOUNS.isdisjoint(said) or points_back(text, kinds)


def references(text: str, kinds: Mapping[str, Kind]) -> Iterator[Reference]:
    """Yields what a text may mean of what was shown, the surest first. "Last week" is a time and means none of it.

    Without `kinds` nobody knows what may be shown, and any noun may be one of them.
    """
    types = {word: name for name, kind in kinds.items() for word in (name, *kind.words.split())}
    for match in _PLACE.finditer(text):
        place = match["place"].lower()
        if place in _LAST:
            number = -1
        else:
            number = _PLACE_OF.get(place) or int(re.sub(r"\D", "", place))
        near = _words_after(text, match)
        if not types or _is_of_something_shown(near, types):
            yield Reference(_type(near, types), place=number)
    for match in _NUMBER.finditer(text):
        noun = (match["noun"] or "").lower()
        if not noun or noun in _NUMBERED or noun in types:
            yield Reference(types.get(noun, ""), place=int(match["number"]))
    for match in _EXTREME.finditer(text):
        near = [(match["noun"] or "").lower(), *_words_after(text, match)]
        yield Reference(_type(near, types), extreme=" ".join(words(match["extreme"])))
    for match in _SOURCE.finditer(text):
        noun = (match["noun"] or "").lower()
        if not noun or noun in _ONES | _THINGS or noun in types:
            yield Reference(types.get(noun, ""), source=match["source"])


def resolve(
    text: str, components: Sequence[ShownComponent], kinds: Mapping[str, Kind] = {}
) -> ShownComponent | None:
    """Which of the things shown, oldest turn first, a text means; None where it names none, or one that was not there.

    Where it could mean several, the newest of the type asked for is meant (decisions 32).
    """
    kinds = kinds_of(components, kinds)
    turns = [list(turn) for _, turn in groupby(components, key=lambda component: component.turn_id)]
    for reference in references(text, kinds):
        for turn in reversed(turns):
            among = [component for component in turn if reference.type in ("", component.type)]
            if (one := _pick(reference, among, kinds)) is not None:
                return one
    return None


def _pick(
    reference: Reference, among: Sequence[ShownComponent], kinds: Mapping[str, Kind]
) -> ShownComponent | None:
    if reference.place == -1:
        if among:
            return among[-1]
        return None
    if reference.place is not None:
        return next((one for one in among if one.position == reference.place), None)
    if reference.extreme:
        priced = [(price, one) for one in among if (price := _price(one, kinds)) is not None]
        if reference.extreme in _LEAST:
            end = min
        else:
            end = max
        if priced:
            return end(priced, key=lambda pair: pair[0])[1]
        return None
    wanted = [content for word in words(reference.source) for content in content_words(word)]
    overlaps = [
        (len(content & set(wanted)), one)
        for one in among
        if (content := _content(one)) & set(wanted[:1])
    ]
    if overlaps:
        return max(overlaps, key=lambda pair: pair[0])[1]
    return None


def _price(one: ShownComponent, kinds: Mapping[str, Kind]) -> float | None:
    value = one.payload.get(kinds[one.type].price or "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _content(one: ShownComponent) -> frozenset[str]:
    """The words of its title and of what its payload says in words, lists of words included."""
    values: list[Any] = list(one.payload.values())
    lists = [cast("list[Any]", value) for value in values if isinstance(value, list)]
    texts = [value for value in [*values, *chain(*lists)] if isinstance(value, str)]
    return content_words(" ".join([one.title, *texts]))


def _words_after(text: str, match: re.Match[str]) -> list[str]:
    """The two next words: the kind of thing stands among them."""
    rest = _REST.match(text, match.end())
    if rest:
        return words(rest[0])[:2]
    return []


def _is_of_something_shown(near: Sequence[str], types: Mapping[str, str]) -> bool:
    """Whether an ordinal before these words may mean something shown.

    "The first arc" is the first of its own kind, and "last week" is a time: neither is an item of a list.
    """
    if not near or _type(near, types):
        return True
    if near[0] in _TIMES:
        return False
    return near[0] in _AFTER or not _ONES.union(_THINGS).isdisjoint(near)


def _type(near: Iterable[str], types: Mapping[str, str]) -> str:
    return next(
        (types[word] for form in near for word in (form, form.removesuffix("s")) if word in types),
        "",
    )
