"""Owning up: whether a text names a part and says that it was not answered, and whether it claims something for it all the same.

Clauses are read one by one, so that a denial about one thing owns up to nothing else: "I was not able to stop smiling: rewards
says you have 900 points" says nothing was missed, and claims something for rewards. What a text claims is decided for values
(words with a number in them): one that nobody delivered was made up. A claim in words alone is caught only where its clause names
the part.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_VERB = r"""(?:get|got|gotten|reach(?:ed)?|find|found|check(?:ed)?|look(?:ed)?|load(?:ed)?|fetch(?:ed)?|retrieved?|answer(?:ed)?|
    access(?:ed)?|pull(?:ed)?|confirm(?:ed)?|completed?|see|tell|give|provided?|connect(?:ed)?|bring|take|included?|ask(?:ed)?|
    respond(?:ed|ing)?|reply|replied|come|came|return(?:ed)?|work(?:ed|ing)?|obtain(?:ed)?|handled?|cover(?:ed)?|finish(?:ed)?|
    hear|heard|say|help|address(?:ed)?|show|share|go|available|reachable|possible|in\ time)"""
_OWNING = re.compile(
    rf"""(?:\b(?:could|can|did|do|does|was|were|have|has|had|am|are|is|will)(?:n['’]?t|\ not)|\bcannot|\bunable|\bnot)\s+
            (?:(?:\w+ly|even|yet|quite|been|be)\s+)*(?:able\s+to\s+)?(?:to\s+)?(?:be\s+)?{_VERB}\b
      | \bfailed\s+to\s+{_VERB}\b | \b(?:look-?up|request|call|check|it|that|this)\s+failed\b
      | \b(?:no|without\s+(?:an?|any))\s+(?:answer|reply|response|result|data|word|luck|information|news)\b
      | \bnothing\s+(?:came|back|yet|from)\b | \btrouble\s+(?:reaching|getting|checking|finding|loading|with)\b
      | (?<!not\ )(?<!never\ )\b(?:unavailable|unreachable|out\ of\ reach|timed\ out|took\ too\ long|declined\ to\ answer)\b
      | (?<!nothing\ )\b(?:is|are|was|were)\s+(?:still\s+)?missing\b
      | \b(?:left|leave|leaving|leaves)\b.{{0,60}}?\b(?:out|aside|for\ later|for\ now)\b
      | \bskipp(?:ed|ing)\b | \bhave\s+to\s+wait\b | \bran\s+out\s+of\s+(?:time|room)\b""",
    re.I | re.X,
)
_IRONY = re.compile(r"\b(?:problems?|issues?|faults?|wrong|better|nicer|worse|more|stop|resist|complain)\b", re.I)
_RESERVING = re.compile(
    r"""\bincomplete\b | \bpartial(?:ly)?\b | \bnot\s+(?:be\s+)?(?:complete|all|everything|cover|include)\b | \breservation\b
      | \b(?:some|part|parts)\b.{0,60}?(?:n['’]t\b|\bnot\b|unavailable|missing|unreachable|fail) | \bmay\s+be\s+missing\b""",
    re.I | re.X,
)
_REST = re.compile(r"\b(?:parts|(?:one|another|a) (?:more )?part|rest|remaining|others?|more|further|everything|message)\b", re.I)
"""Words for what has no name of its own."""
_NEUTRAL = re.compile(
    r"""\?\s*$ | \b(?:again|later|try|retry|next|ask|asked|let\ me\ know|want|would\ you\ like|happy\ to|once|as\ soon\ as|
        meanwhile|instead|sorry|unfortunately|check\ back|in\ a\ (?:moment|while|bit))\b""",
    re.I | re.X,
)
_REFUSING = re.compile(
    r"""\b(?:can(?:n?ot|['’]?t|\ not)|(?:am|['’]m|are|is)(?:\ not|n['’]t)\ able\ to|unable\ to|won['’]t|will\ not)\s+
            (?:be\ able\ to\s+)?(?:really\s+)?(?:help|assist|answer|discuss|advise|do\ (?:that|this)|support)\b
      | \b(?:outside|beyond)\s+(?:of\s+)?(?:what|my|our|the\ scope)\b
      | \bnot\s+(?:something|a\ (?:topic|question)|part\ of|within|in\ my)\b
      | \b(?:only|only\ able\ to|only\ here\ to)\s+(?:help|assist|answer)\b
      | \b(?:have\ no|(?:do\ not|don['’]t)\ have\ (?:any\ )?)(?:information|knowledge|access|data)\b""",
    re.I | re.X,
)
_DENIAL = re.compile(r"^\W*(?:i|we)\s+(?:\w+\s+)?(?:could|can|was|were|am|are|have|did)\s*(?:n['’]?t|not)\b", re.I)
_COURTESY = re.compile(
    r"""\?\s*$ | \b(?:let\ me\ know|feel\ free|(?:happy|glad|here)\ to\ help|(?:you\ can|please)\ ask\ me)\b
      | ^\W*(?:(?:i|we)\s*(?:am|are|['’]m|['’]re)\s+)?(?:\w+\s+)?(?:sorry|afraid|unfortunately|apolog\w+|thank)
      | \b(?:try|check|come|ask)\s+(?:me\s+|us\s+|back\s+)?(?:again|back|later|in\ a)\b
      | \b(?:i|we)(?:\ can|\ could|['’]d)\s+(?:\w+\s+)?help\b""",
    re.I | re.X,
)
_CLAUSE = re.compile(
    r"(?<=[.!?;])\s++|(?<!\s)\s++[–—-]\s++|—|(?:,|(?<!\s))\s++(?:but|however|though|although|while|whereas|yet)\s++", re.I
)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORDS = re.compile(r"[a-z]{3,}")
_FILLERS = """a about all also and any are been but can could did does for from get give got had has have here how into its let
    like make may more much need not now off one our out please right say show some take tell than that the their them then there
    these they this those today too very want was were what when where which while who why will with would yes yet you your"""
_FILL = frozenset(_FILLERS.split())
"""Words that say nothing about what a text is about."""
_ENDING = re.compile(r"(?:ings?|edly|ed|ly|es|ers?|ments?|ations?|ions?|ies|ied|al|[sey])$")
_NAME = re.compile(r"(?<![.!?:;]\s)(?<!^)\b[A-Z][A-Za-z'’-]{2,}|\b[a-z]+[A-Z]\w+")
ROOM = 0.6
"""A text that tells an answer in other words has at least this many new words for each of its own (tests/paraphrases.py)."""
HEADING = 5
"""A line or a lead-in of at most so many words speaks for what follows it."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a text that says one thing, with the heading it stands under."""

    text: str
    heading: str = ""
    heads: bool = False
    in_admission: bool = False
    """An item of a list whose opening line owns up."""

    @property
    def owns(self) -> bool:
        return self.in_admission or (_OWNING.search(self.text) is not None and _IRONY.search(self.text) is None)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message as a text may speak of it."""

    agent: str
    label: str
    words: frozenset[str] = frozenset()
    """Words of the request that no other part shares: people name a part by them as often as by its label."""

    def is_named(self, text: str) -> bool:
        """By its label or by its own words."""
        return self.is_labelled(text) or not self.words.isdisjoint(stems(text))

    def is_labelled(self, text: str) -> bool:
        plain = re.sub(r"[-_\W]+", " ", text.lower())
        stem = self.label.rstrip("s") or self.label
        return re.search(rf"\b{re.escape(stem)}s?\b", plain) is not None or (len(stem) > 5 and stem in plain.replace(" ", ""))


def clauses(text: str) -> list[Clause]:
    """The clauses of a text, each with its heading: "Rewards: I could not reach them." is one clause about rewards."""
    result: list[Clause] = []
    above, listing = "", False
    for line in text.splitlines():
        if not line.strip():
            continue
        item = _BULLET.match(line) is not None
        listing = listing and item
        body = _BULLET.sub("", line).strip(" #*")
        if not item and _short(body) and body[-1:] not in ".!?" and _OWNING.search(body) is None:
            above = body
            result.append(Clause(body, heads=True))
            continue
        result += _of_line(body, above, listing)
        listing = listing or (body.endswith(":") and bool(result) and result[-1].owns)
        above = above if item else ""
    return result


def _of_line(line: str, above: str, in_admission: bool) -> Iterator[Clause]:
    heading = above
    for sentence in _CLAUSE.split(line):
        pieces = [piece.strip(" *") for piece in re.split(r":(?=\s|\*|$)", sentence) if piece.strip(" *")]
        for place, piece in enumerate(pieces):
            last = place == len(pieces) - 1
            if not last and _short(piece) and _OWNING.search(piece) is None:
                heading = piece
                yield Clause(piece, heads=True)
            else:
                yield Clause(piece, heading, in_admission=in_admission)


def admits(read: Sequence[Clause], part: Part, *, alone: bool = False) -> bool:
    """True when a clause says of this part that it was not answered; `alone`: it is the only one asked, and needs no name."""
    return any(c.owns and (alone or part.is_named(c.text) or part.is_named(c.heading)) for c in read)


def admits_rest(read: Sequence[Clause], parts: Sequence[Part]) -> bool:
    """True when a clause says that something was left out and means none of these parts by it."""
    owning = (clause for clause in read if clause.owns and _REST.search(clause.text))
    return any(not any(part.is_named(clause.text) or part.is_named(clause.heading) for part in parts) for clause in owning)


def makes_claim(read: Sequence[Clause], part: Part, answer_words: frozenset[str]) -> bool:
    """True when a clause names this part and neither owns up, nor asks, nor offers, nor repeats words of an answer in hand."""
    for clause in read:
        if clause.heads or clause.owns or not (part.is_named(clause.text) or part.is_named(clause.heading)):
            continue
        own = stems(clause.text) - stems(part.label)
        if own and not _NEUTRAL.search(clause.text) and len(own & answer_words) < 0.7 * len(own):
            return True
    return False


def passes_on(text: str, part: Part, caveat: str, answer: str, *, alone: bool) -> bool:
    """True when a text passes on a reservation: in its own words near this part, or in those of the caveat."""
    caveat_words = stems(caveat)
    mine = numbers(answer)
    for paragraph in filter(str.strip, text.splitlines()):
        repeats = caveat_words and len(caveat_words & stems(paragraph)) >= 0.6 * len(caveat_words)
        reserves = repeats or _RESERVING.search(paragraph) or _OWNING.search(paragraph)
        if reserves and (alone or part.is_named(paragraph) or mine & numbers(paragraph)):
            return True
    return False


def only_owns_up(text: str) -> bool:
    """True when a text says that something did not work, and beside that nothing: it apologises, asks, offers."""
    read = [clause for clause in clauses(text) if not clause.heads]
    owning = [clause.owns or _DENIAL.search(clause.text) is not None for clause in read]
    return any(owning) and all(owns or _COURTESY.search(clause.text) for owns, clause in zip(owning, read, strict=True))


def only_refuses(text: str) -> bool:
    """True when a text says that its author cannot help with such a thing, and beside that nothing. It reads English alone.

    A text that also says where else to look has something to say.
    """
    if _REFUSING.search(text) is None:
        return False
    hits = [(_REFUSING.search(clause.text), _COURTESY.search(clause.text)) for clause in clauses(text) if not clause.heads]
    return any(refuses for refuses, _ in hits) and all(refuses or polite for refuses, polite in hits)


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text in one spelling; those up to twelve, and list markers, say too little to count."""
    spellings = (raw.replace(",", "") for raw in _NUMBER.findall(text))
    plain = (raw.rstrip("0").rstrip(".") if "." in raw else raw.lstrip("0") for raw in spellings)
    return frozenset(number for number in plain if number and (len(number) > 2 or float(number) > 12))


def stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without their plural."""
    return frozenset(word.rstrip("s") for word in _WORDS.findall(text.lower()) if word not in _FILL)


def loses(answer: str, text: str, stock: Iterable[str], siblings: Sequence[str] = ()) -> bool:
    """True when a text passes on nothing of an answer. Its figures decide: those only it has, one of them is enough.

    An answer without figures may be told in other words throughout. It is not lost where a quarter of its own words
    are left, names of things counting twice; nor where one is left and the text says enough that nothing else accounts for:
    `said` (requests, stock words) and the sibling answers are taken off, and a sibling that was reworded needs room of its own.
    An answer with fewer than four words of its own cannot be told from small talk, and is never called lost.
    """
    elsewhere = "\n".join([*stock, *siblings])
    own = numbers(answer) - numbers(elsewhere)
    if own:
        return own.isdisjoint(numbers(text))
    common = roots(elsewhere)
    words, text_roots = roots(answer) - common, roots(text)
    if len(words) < 4:
        return False
    overlap = len(words & text_roots) + len((_names(answer) & _names(text)) - common)
    if not overlap or 4 * overlap >= len(words):
        return not overlap
    room = len(words) + sum(len(roots(sibling)) for sibling in siblings if sibling not in text)
    return len(text_roots - common - _IDLE) < ROOM * room


def roots(text: str) -> frozenset[str]:
    """The words of a text that say something, without their endings: sign, signs, signed and signing are one."""
    return frozenset(_root(word) for word in _WORDS.findall(text.lower()) if word not in _FILL)


def _root(word: str) -> str:
    for _ in range(2):
        shorter = _ENDING.sub("", word)
        if len(shorter) < 3:
            break
        word = shorter
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _names(text: str) -> frozenset[str]:
    return frozenset(_root(name.lower()) for name in _NAME.findall(text))


def _short(text: str) -> bool:
    return 0 < len(text.split()) <= HEADING


_IDLE = roots(
    """all anything asked care checked course done else everything fine glad good great handled happy help know looked missing
    news nothing order perfect problem question ready request requests right see set something sorry sure taken
    thanks time worked"""
)
"""Words of a composer that has nothing to say."""
