"""The clauses of a request, in English and Spanish: stretches between joining words and marks, as
the user wrote them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kit.core.language.small_talk import SMALL_TALK
from kit.core.language.words import STOP, content_words, word_set, words

LONGEST = 4_000
"""Characters of a request that are read."""
MOST = 12
"""Clauses that are told apart in one request."""
LIST_COMMAS = 2
"""Commas from which on they part the items of a list."""
OPENERS = word_set(
    """i i'd i'm i'll i've we what what's whats which who who's how how's when when's where where's
    why is are am was were do does did can could would will should shall must may have has had please
    find show search look looking list get give tell check book reserve order buy play add
    remove put set turn cancel change update track rate remind make let let's need want help
    call send text share schedule explain compare open close start stop create delete move copy
    write read see watch suggest recommend any there's there it's my you if also then transfer
    pay use redeem scan upload convert calculate post sort pick translate solve summarize
    choose pull fix whether qué que cuál cuáles cuánto cuánta
    cuántos cuántas cuándo dónde cómo quién por mi mis hay quiero quisiera necesito puedo puede
    puedes busca buscar encuentra muestra muéstrame dime dame ayuda tengo quedan"""
)
"""Words a new clause tends to begin with."""
_TELLERS = word_set(
    "i i'd i'm i'll i've we it it's he she they my there there's any if also then mi mis por hay tengo"
)
"""Of these, words that tell as often as they ask."""
_ASKERS = word_set("what which who how when where why qué cuál quién cómo cuándo dónde")
"""The other openers: a text without one asks for nothing."""
_SECOND_VERBS = word_set("get give earn collect gain make have take offer pay bring save accept")
"""Verbs of what a place or a thing does for somebody."""
_ADVERBS = word_set("still also even then actually both")
_STATES = word_set("is are was were has have")
_PAST = _STATES | word_set("did does do had he hice")
_NAME_END = re.compile(r"\b[A-Z][\w'’]*\Z")
"""Before an "&" that stands in a name: "Stop & Shop"."""
_SENTENCE_END = re.compile(r"[.?!;,:\n]\s*(?:(?:and|also|oh|next|plus)\s+)*", re.IGNORECASE)
PREPOSITIONS = word_set(
    """about after at before between by during for from in into near of on since through till to until with within
    ante con de desde durante en entre hasta para sin sobre"""
)
"""Words that go on with a matter: what begins with one is no item of a list."""
LINKS = word_set(
    """besides next finally first firstly second secondly third lastly last another thing things
    primero segundo finalmente último última otra otro cosa"""
)
"""Words that lead from one clause to the next."""
JOINER = re.compile(
    r"""(?:(?:^|(?<=\s))(?:\d{1,2}[.)]|[a-h]\)|[-*•])\s+|(?<!\s)\s+//?\s+|(?<=\w\w)//?\s+|\n+
        |(?<![.?!;])[.?!;]++(?=\s|$)(?:\s*(?:and|also|then|plus|but|oh|y|además|también|luego|pero)\b)*
        |(?:,|(?<!\s))\s+(?:and\s+(?:also|then|lastly|finally|besides|after\s+that)|as\s+well\s+as|also
            |plus|then|btw|by\s+the\s+way|but\s+also
            |y\s+además|y\s+también|además|también|luego)\s+
        |,\s*(?:and|but|then|y|pero)\s+|(?<!\s)\s+[-–—]\s+
        |(?<!\s)\s+(?:lol|lmao|haha|bro|bc),?(?=\s))\s*""",
    re.I | re.X,
)
"""Ends a clause whatever follows: the end of a sentence, a joining word, the mark of a list's next item."""
TIE = re.compile(
    r"[,;/&+\n–—-]|\d[.)]|\b[a-h]\)|\b(?:and|also|plus|then|but|well|y|e|además|también|luego|pero)\b",
    re.I,
)
"""A joiner that says there is more to come."""
NUMBER = re.compile(r"(?:^|(?<=\s))([1-9])\s+")
"""A number without a mark: the items of a list begin so where they are counted from one."""
SOFT_JOINER = re.compile(
    r"(?:,\s+(?:n\s+)?|(?<!\s)\s+(?:and|n|&|\+|but|y|e|pero)\s+)(?:u[hm]+\s+)?", re.I
)
"""Ends a clause only when the next word is an opener, or a list of several items is being told."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a request between two joiners."""

    start: int
    end: int
    text: str
    has_joiner: bool
    """Tied to a neighbour by a joining word or a comma, not merely the next sentence."""

    @property
    def content(self) -> frozenset[str]:
        """The words that say what it is about; empty for one that cannot be told by its words."""
        return content_words(self.text)

    @property
    def asks(self) -> bool:
        """Whether it begins as a question or a wish does; `when I came home` and `I have a card` only tell."""
        return opens_as_request(self.text)


def clauses(text: str, *, opening: bool = False) -> list[Clause]:
    """Returns the clauses of a request in order, verbatim; those that only greet, thank, agree or lead on are left out.

    `opening`: nothing was said before it, so that commas may part a list of matters.
    """
    return list(_clauses(text[:LONGEST], opening))


@lru_cache(maxsize=64)
def _clauses(text: str, opening: bool) -> tuple[Clause, ...]:
    # A message is cut by whoever routes it, by whoever is asked and by the ledger of its parts.
    cuts = [match.span() for match in JOINER.finditer(text)]
    cuts += _numbered(text)
    inside = {position for start, end in cuts for position in range(start, end)}
    soft = [match.span() for match in SOFT_JOINER.finditer(text) if match.start() not in inside]
    items = opening and sum("," in text[a:b] for a, b in soft) >= LIST_COMMAS
    for position, (start, end) in enumerate(soft):
        if soft[position + 1 :]:
            upto = soft[position + 1][0]
        else:
            upto = len(text)
        if "," not in text[start:end] and goes_on(text[:start], text[end : end + 30]):
            continue
        if (
            "&" in text[start:end]
            and _NAME_END.search(text[max(0, start - 40) : start])
            and text[end].isupper()
        ):
            continue
        if _opens(words(text[end : end + 30])) or (items and _item(text[end:upto])):
            cuts.append((start, end))
    result: list[Clause] = []
    begin = 0
    for start, end in [*sorted(cuts), (len(text), len(text))]:
        piece = text[begin:start].strip(" \t\n,;.!-")
        if _speaks(words(piece)) and not SMALL_TALK.fullmatch(piece[:200]) and len(result) < MOST:
            has_joiner = any(
                TIE.search(text[a:b]) for a, b in cuts if begin in (a, b) or start == a
            )
            result.append(Clause(begin, start, piece, has_joiner))
        begin = max(begin, end)
    return tuple(result)


def _numbered(text: str) -> list[tuple[int, int]]:
    """Returns where items begin that are counted: "1 how many points do i have 2 did my receipt go thru"."""
    marks: list[re.Match[str]] = []
    for match in NUMBER.finditer(text):
        if match[1] == str(len(marks) + 1) and _opens(words(text[match.end() : match.end() + 30])):
            marks.append(match)
    if len(marks) < 2:
        return []
    return [match.span() for match in marks]


def opens_as_request(text: str) -> bool:
    """Whether a text begins as a question or a wish does."""
    first, second = [*words(text), "", ""][:2]
    return first in OPENERS - _TELLERS and not (first in _ASKERS and second in _TELLERS)


def tells(text: str) -> bool:
    """Whether a text begins as one that tells does: `my friend signed up`, `there was nobody`."""
    first_words = words(text[:30])
    return bool(first_words) and first_words[0] in _TELLERS


def inquires(text: str) -> bool:
    """Whether a text begins as one that wants to know does, and nothing done: `what did I pay`, `did you book it`."""
    first_words = words(text[:30])
    return bool(first_words) and first_words[0] in _ASKERS | _PAST


def goes_on(head: str, tail: str) -> bool:
    """Whether a question goes on with a second verb after its "and": "which cafes deliver and give points"."""
    # The last two hundred characters: whoever sends a page of "and" must not hold up everybody else's turn.
    sentence = words(_SENTENCE_END.split(head[-200:])[-1])
    beginning = words(tail)
    if beginning[1:] and beginning[0] in _STATES and beginning[1] in _ADVERBS:
        # "What costs less but is still soft" asks one thing.
        return True
    following = [word for word in beginning if word not in _ADVERBS]
    if not sentence or sentence[0] not in _ASKERS or not following:
        return False
    # "Give me", "show my" and "get the" are wishes of their own.
    return following[0] in _SECOND_VERBS and following[1:2] != [] and following[1] not in STOP


def _speaks(piece: Sequence[str]) -> bool:
    """Whether words are more than a link ("and another thing") or the beginning of what follows ("I'd also")."""
    links = [word for word in piece if word in LINKS]
    return any(word not in STOP and word not in LINKS for word in piece) or (
        len(piece) > 2 and not links
    )


def _opens(following: Sequence[str]) -> bool:
    """Whether words begin a clause; "to tell me" and "until when" do as "tell me" and "when" do."""
    if len(following) > 2 and following[0] == "to":
        following = following[1:]
    if len(following) > 2 and following[0] in PREPOSITIONS and following[1] in _ASKERS:
        return True
    return bool(following[1:]) and following[0] in OPENERS


def _item(text: str) -> bool:
    """Whether a stretch between commas may be an item of its own: two words or more, not a phrase
    of the item before."""
    item_words = words(text)
    return bool(item_words[1:]) and item_words[0] not in PREPOSITIONS and text[:1] not in "\"“'"
