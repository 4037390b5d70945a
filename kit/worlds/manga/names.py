"""Which titles a request names, and which of its names the library does not know."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kit.core.language.clauses import OPENERS
from kit.core.language.words import STOP
from kit.core.value import Value
from kit.worlds.manga.library import Library, Title, words
from kit.worlds.service.search import tokens, weigh

_QUOTED = re.compile(r'"([^"]+)"')
# "I" is written with a capital wherever it stands, and names nothing.
_CAPITAL = r"(?!I\b)[A-Z][\w'’-]*"
_CAPITALS = re.compile(rf"{_CAPITAL}(?:\s+{_CAPITAL})*")
CLOSE = 3
"""Titles that are offered in place of one that is not there."""


class UnknownName(Value):
    """A name that no title has, and titles that come close."""

    name: str
    close: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """What a request names."""

    titles: tuple[Title, ...]
    unknown: tuple[UnknownName, ...]


def named_titles(library: Library, text: str) -> Names:
    """Reads names in quotation marks, else stretches of capitalised words.

    A name counts as known where it is a title, or where the words of one title (its genres, its studio, its premise)
    hold all of it: "Dark Fantasy" names no title, and nothing that is not there.
    """
    by_name = {title.title.lower(): title for title in library.titles.values()}
    titles: dict[str, Title] = {}
    unknown: dict[str, UnknownName] = {}
    for name in _names(text):
        title = by_name.get(name.lower())
        if title is not None:
            titles[title.id] = title
        elif not _is_described(library, name):
            unknown[name.lower()] = UnknownName(name=name, close=_close(library, name))
    return Names(tuple(titles.values()), tuple(unknown.values()))


def _names(text: str) -> list[str]:
    quoted = _QUOTED.findall(text)
    if quoted:
        return [name.strip() for name in quoted]
    names: list[str] = []
    for match in _CAPITALS.finditer(text):
        parts = match[0].split()
        if match.start() == 0:
            while parts and parts[0].lower() in STOP | OPENERS:  # "Compare Iron Wolf"
                parts = parts[1:]
        if len(parts) > 1 or (parts and match.start() > 0):
            names.append(" ".join(parts))
    return names


def _is_described(library: Library, name: str) -> bool:
    name_words = frozenset(tokens(name))
    return any(name_words <= weigh(words(title)).keys() for title in library.titles.values())


def _close(library: Library, name: str) -> tuple[str, ...]:
    result = library.index.search(name)
    if result.match != "named":
        return ()
    rows: Sequence[Title] = result.rows[:CLOSE]
    return tuple(title.title for title in rows)
