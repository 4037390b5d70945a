"""Extracts argument values from a text: numbers, dates, identifiers, names, places, the thing that is sought."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from kit.core.language.clauses import OPENERS
from kit.core.language.lists import read_request
from kit.core.language.numerals import read_numbers
from kit.core.language.words import STOP, spoken, word_set
from kit.models.offline import english
from kit.models.offline.composition import cut, fitting, sentences
from kit.models.offline.similarity import content

_WHOLE_TEXT = word_set(
    "question message request issue problem text utterance input user query_text sentence"
)
_SHORT_TEXT = word_set(
    "summary reason rationale explanation note notes description context comment critique title goal verdict answer"
)
_ID = re.compile(r"\b(?=[\w-]*\d)[A-Za-z]+[-_]?[\w-]*\d[\w-]*\b|\b\d{4,}\b")
_ROW_ID = re.compile(r"\b[A-Za-z]{2,4}-\d{3,}\b")
_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]|(?<!\w)'([^']+)'(?!\w)")
_PLACE = re.compile(
    r"\b(?:in|near|around|at)\s+((?:the\s+)?[A-Za-z][\w'-]*(?:\s+(?:&\s+)?[A-Z][\w'-]*)*)"
)
_OF_PLACE = re.compile(r"\bof\s+([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_UNCOUNTED = re.compile(
    r"""\b\w+\ (?:days?|weeks?|months?|years?)\b|\bnumber\ \d+\b|\b[A-Za-z]+-\d+\b
        |\b(?:after|before|since|until|in|of|from|by)\ (?:19|20)\d\d\b""",
    re.I | re.X,
)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
# "I" is written with a capital wherever it stands, and names nothing.
_CAPITAL = r"(?!I\b)[A-Z][\w'&-]*"
_NAME = rf"{_CAPITAL}(?:\s+(?:&\s+)?{_CAPITAL})*"
_CAPITALS = re.compile(rf"\b{_NAME}")
_PROPER = re.compile(rf"(?<!^)(?<![.!?]\s)\b{_NAME}")
ENTITY = re.compile(
    r"""(?<![.!?]\s)(?<!^)\b[A-Z][\w'&-]*(?:\s+(?:&\s+)?[A-Z][\w'&-]*)*
        |["“][^"”]{2,60}["”]|\b(?=[\w-]*\d)[A-Za-z]+-?[\w-]*\d[\w-]*\b""",
    re.X,
)
_PERSONISH = word_set("animal colleague employee owner patient person pet")
_DAYISH = word_set("day weekday when")
_WEEKDAY = re.compile(r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow)\b", re.I)
_CALENDAR = word_set(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december english spanish japanese korean chinese"""
)
"""Words with a capital that are no names of titles."""
_BRANDISH = word_set("brand retailer store merchant shop maker company restaurant")
_OF_WHICH = word_set("city town region country")
"""Fields of a place that things are of: "the outlets of Oakfield"."""
_PLACEISH = word_set("location city place area town region country near address destination")
_NOWHERE = word_set("all total general detail particular short summary")
"""Words behind "in" that are no place."""
SEARCHING = word_set(
    "query q search term terms keyword keywords item product topic category name cuisine dish subject phrase"
)
"""Words of an argument that takes what is looked for."""
_IDENTIFYING = word_set("id ids number code")
_DIGITS = re.compile(r"\b\d+\b")


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from: the request, and longer text given beside it."""

    request: str
    material: str = ""
    is_form: bool = False
    """A form is filled: its optional fields as well, and its texts are told, not searched for."""
    about: frozenset[str] = frozenset()
    """Words of the tool's own name, singular: they narrow no search."""
    earlier: str = ""
    """What the request begins with and was said earlier: it names nothing that the rest names itself."""
    input: Any = None
    """What an earlier step returned: ids come from it where the request names none."""


def text_for(name: str, source: Source, *, required: bool) -> str | None:
    """The piece of the request (or of the material beside it) that a field of this name asks for;
    None when there is none."""
    request = source.request.strip()
    parts = set(spoken(name).split())
    if "date" in parts:
        return date(f"{request} {source.material[:4000]}")
    if parts & _DAYISH and (day := _WEEKDAY.search(request)):
        return day[0].capitalize()
    if named := re.search(rf"\b(?i:{re.escape(spoken(name))})\s+({_NAME})", request):
        return named[1]
    if parts & _IDENTIFYING:
        ids = identifiers(request)
        if not ids and "number" in parts:
            ids = _DIGITS.findall(request)
        return next(iter(ids), None)
    # The title that a lookup takes is that of a book.
    if parts & _SHORT_TEXT and (source.is_form or parts != {"title"}):
        return _short_text(source) if required else None
    if parts & _WHOLE_TEXT:
        return request[:2000]
    if parts & _BRANDISH:
        return _brand(request)
    if parts & _PERSONISH and (names := capitalised(request)):
        return names[0]
    if parts & _PLACEISH:
        return _place_of(parts, source)
    if source.is_form and required and "query" in parts:
        return request
    return _sought(parts, source, required)


def names_a_thing(name: str) -> bool:
    """Whether a field of this name tells by a name or an id which thing is meant."""
    parts = set(spoken(name).split())
    return bool(parts & (_IDENTIFYING | _BRANDISH | _PERSONISH | _PLACEISH))


def _place_of(parts: Set[str], source: Source) -> str | None:
    # Where somebody asks now comes before where they asked earlier.
    now = source.request.removeprefix(source.earlier)
    place = _place(now) or _place(source.request)
    if place is None and parts & _OF_WHICH and (of := _OF_PLACE.search(now)):
        return of[1]
    return place


def _place(request: str) -> str | None:
    for match in _PLACE.finditer(request):
        if not STOP.union(english.FAINT, _NOWHERE).issuperset(match[1].lower().split()):
            return match[1]
    return None


def _short_text(source: Source) -> str:
    """Returns up to 280 characters that tell what is asked, from the material of a form where there is some."""
    text = source.request
    if source.is_form and source.material:
        text = source.material
    return cut(" ".join(fitting(source.request, sentences(text), 280)) or source.request, 280)


def _brand(request: str) -> str | None:
    match = _QUOTED.search(request) or _PROPER.search(request)
    if match is None:
        return None
    return match[0].strip("\"'“”")


def _sought(parts: set[str], source: Source, required: bool) -> str | None:
    request = source.request.strip()
    if quoted := _QUOTED.search(request):
        return quoted[1] or quoted[2]
    if parts == {"name"} and (proper := _PROPER.search(request)):
        return proper[0]
    searching = parts & SEARCHING
    if not required and not searching:
        return None
    sought = noun_phrase(request, source.about) or (request if required else None)
    if sought is None:
        return " ".join(_ROW_ID.findall(source.request.removeprefix(source.earlier))) or None
    return sought


def date(text: str) -> str | None:
    """The first ISO date of a text."""
    match = _DATE.search(text)
    if match:
        return match[0]
    return None


def identifiers(text: str) -> list[str]:
    """Words that mix letters with digits, and long numbers."""
    return _ID.findall(text)


def quoted(text: str) -> list[str]:
    """What stands between quotation marks."""
    return [double or single for double, single in _QUOTED.findall(text)]


def capitalised(text: str) -> list[str]:
    """The names of a text: stretches of capitalised words, without the verb or article that a sentence begins with."""
    names: list[str] = []
    text = unquoted(text)
    for match in _CAPITALS.finditer(text):
        parts = match[0].split()
        preceding = text[: match.start()].rstrip()
        if not preceding or preceding[-1] in ".!?:":
            while (
                parts
                and parts[0].lower() in STOP | OPENERS | english.VERBS
                and "&" not in parts[1:2]
            ):
                parts = parts[1:]
            if len(parts) == 1:
                continue  # any sentence begins with a capital
        if parts and not (len(parts) == 1 and parts[0].lower() in STOP | _CALENDAR):
            names.append(" ".join(parts))
    return list(dict.fromkeys(names))


def unquoted(text: str) -> str:
    """The text without that."""
    return _QUOTED.sub(" ", text)


def countable(text: str) -> str:
    """The text without what holds a number that counts nothing: names, ids, years, spans of time, positions."""
    return _UNCOUNTED.sub(" ", unquoted(text))


def number_beside(name: str, text: str) -> list[float]:
    """The numbers that stand beside a word of a name: "8 weeks", "limit 5", "two hundred fifty points"."""
    for word in name.split():
        stem = re.escape(word.rstrip("s"))
        for before in re.findall(rf"((?:[\w.,-]+ ){{0,4}}\S+) {stem}s?\b", text, re.I):
            if numbers(before.split()[-1]):
                return numbers(before)[-1:]
        for after in re.findall(rf"\b{stem}s? (\S+)", text, re.I):
            if found := numbers(after):
                return found
    return []


_GENERIC = word_set(
    """deal deals offer offers product products item items thing things information info detail details result results
    option options list help stuff article articles cheap cheapest best good great nice available current new today find
    search show look recommend suggest buy order check explain compare price prices cost near nearby"""
)


_PLACING = word_set(
    """first second third fourth last next latest earliest newest oldest cheaper closer nearer bigger smaller lower
    higher better worse other others rest take takes part parts match matches matched fit fits join joins accept
    accepts run runs soon sooner soonest"""
)
"""Words that say which of several things is meant, or what it does. Beside the name of a thing they may be its own."""


_DEGREE = re.compile(
    r"\bhow\s+\w+(?:\s+(?:along|away))?"
    r"(?=\s+(?:am|is|are|was|were|do|does|did|can|could|will|would|should|has|have)\b)",
    re.I,
)
"""How far, how long: the word says to what degree, and names nothing."""


def noun_phrase(request: str, about: frozenset[str] = frozenset()) -> str:
    """What a request seeks, without the words around it: `find coffee deals` gives `coffee`; empty
    when nothing is left.

    `about`: what is sought anyway (the words of the tool's own name), which narrows nothing.
    """
    # An id has a field of its own, and "ou" of "ou-0412" is no word; nor is an amount the name of anything.
    request = english.AMOUNT.sub(" ", _ROW_ID.sub(" ", request))
    request = english.MEASURE.sub(" ", request)
    # Its words alone would be other words: "A & W" is no "w".
    joined_names = [name for name in capitalised(request) if "&" in name]
    for name in joined_names:
        request = request.replace(name, " ")
    lists = read_request(_DEGREE.sub(" ", request))
    things = _phrases(lists.things, about)
    if not joined_names and _PLACING.issuperset(" ".join(things).split()):
        things = []
    # Of each thing of a list its user wants to hear.
    parts = [", ".join(things), *joined_names]
    left_out = _phrases(lists.left_out, about)
    if left_out:
        parts.append(f"without {' or '.join(left_out)}")
    return " ".join(filter(None, parts))


def _phrases(things: Sequence[str], about: frozenset[str]) -> list[str]:
    phrases: list[str] = []
    for thing in things:
        narrow = _narrow(thing, about)
        if narrow:
            phrases.append(" ".join(narrow[:6]))
    return phrases[:6]


def _narrow(request: str, about: frozenset[str]) -> list[str]:
    """The words of a request that say which things are sought."""
    dull = _GENERIC | english.VERBS | english.FAINT
    narrow: list[str] = []
    for word in content(request):
        if word in STOP or word.endswith("n't") or word in dull or word.isdigit():
            continue
        if word.rstrip("s") not in about:
            narrow.append(word)
    return narrow


HOW_MANY_ROWS = word_set("limit count n k top")
"""Names of an argument by which a list is cut, and not narrowed."""


def narrowing_of(
    request: str, calls: Iterable[Mapping[str, object]], *, amounts: bool = True
) -> str:
    """Returns, quoted, an amount, a time or an order of a request that nothing was looked up by: "under 100 points",
    "yesterday", "the least"; empty where there is none.

    `calls`: the arguments of each lookup. `amounts`: whether they could be narrowed to one at all.
    """
    values = ""
    for arguments in calls:
        for name, value in arguments.items():
            if name not in HOW_MANY_ROWS:
                values += f" {value}"
    phrases: list[str] = []
    for match in english.AMOUNT.finditer(request):
        if amounts and match[1] not in values:
            phrases.append(match[0])
    if _DATE.search(values) is None:
        phrases += [match[0] for match in english.PAST.finditer(request)]
    if english.LEAST.search(values) is None:
        phrases += [match[0] for match in english.LEAST.finditer(request)]
    phrases += english.OF_THEM.findall(request)
    return f"“{phrases[0]}”" if phrases else ""


def numbers(text: str) -> list[float]:
    """The numbers of a text in order, in digits and in English words."""
    return [number.value for number in read_numbers(text, english.NUMERALS)]


def name_entities(texts: Sequence[str]) -> str:
    """One sentence of what texts name, the latest first; empty when they name nothing."""
    names: list[str] = []
    for text in reversed(texts):
        for match in ENTITY.findall(text[:1000]):
            name = str(match).strip(" \"“”'")
            if len(name) > 2 and name.lower() not in STOP and name not in names:
                names.append(name)
    # A lookup that takes an id has nothing else to go by.
    names.sort(key=lambda name: not identifiers(name))
    if names:
        return f"Earlier turns named {', '.join(names[:8])}."
    return ""
