"""Owning up: whether a text names a part and says that it was not answered, and whether it claims
something for it all the same.

Clauses are read one by one, so that a denial about one thing owns up to nothing else: "I was not
able to stop smiling: rewards says you have 900 points" says nothing was missed, and claims
something for rewards. What a text claims is decided for values (words with a number in them): one
that nobody delivered was made up. A claim in words alone is caught only where its clause names the
part.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations

from kit.compose.locale import BY_LANGUAGE, PATTERNS, pattern
from kit.core.language.numerals import read_numbers

_LOCALES = [*BY_LANGUAGE.values()]
(
    _OWNING,
    _IRONY,
    _RESERVING,
    _REMAINDER,
    _NEUTRAL,
    _REFUSING,
    _DENIAL,
    _UNDONE,
    _DID,
    _COURTESY,
    _PERSONAL,
    _WHOLENESS,
    _PERIOD,
    _ADDRESS,
) = (pattern(check, _LOCALES) for check in PATTERNS)
"""`_REMAINDER`: words for what has no name of its own."""
_BUT = "|".join(locale.checks.conjunctions for locale in _LOCALES)
_CLAUSE = re.compile(
    rf"(?<=[.!?;])\s++|(?<!\s)\s++[–—-]\s++|—|(?:,|(?<!\s))\s++(?:{_BUT})\s++", re.I
)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+")
_ROW_ID = re.compile(r"\b[a-z]{2}-\d{3,}\b")
"""The id of a row: no figure, and nobody misses it."""
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\W\d_]{3,}")
_FILL = frozenset(word for locale in _LOCALES for word in locale.checks.fillers.split())
"""Words that say nothing about what a text is about."""
_ENDING = re.compile(r"(?:ings?|edly|ed|ly|es|ers?|ments?|ations?|ions?|ies|ied|al|[sey])$")
_NAME = re.compile(r"(?<![.!?:;]\s)(?<!^)\b[A-Z][A-Za-z'’-]{2,}|\b[a-z]+[A-Z]\w+")
ROOM = 0.6
"""A text that tells an answer in other words has at least this many new words for each of its own
(tests/paraphrases.py)."""
LONGEST_PREAMBLE = 2_000
"""Characters of what precedes a call that are read; the rest streams on while the loop is free."""
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
        return self.in_admission or _is_owning(self.text)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message as a text may speak of it."""

    agent: str
    label: str
    words: frozenset[str] = frozenset()
    """Words of the request that no other part shares, without their endings: people name a part by them as often as by
    its label, and "redeem" is "redeemed" once it is told."""

    def is_named(self, text: str) -> bool:
        """By its label or by its own words."""
        return self.is_labelled(text) or not self.words.isdisjoint(roots(text))

    def is_meant(self, clause: Clause) -> bool:
        """Whether a clause, or the heading it stands under, names this part."""
        return self.is_named(clause.text) or self.is_named(clause.heading)

    def is_labelled(self, text: str) -> bool:
        words = _without_signs(text)
        # A label may be words of the user's, with signs that the text has just lost: "the 100,000 points".
        label = re.sub(r"[-_\W]+", " ", self.label.lower()).strip()
        stem = label.rstrip("s") or label
        # A hundred parts and as many clauses are held against each other: most share not even these letters.
        joined_stem = stem.replace(" ", "")
        joined_words = words.replace(" ", "")
        if stem not in words and joined_stem not in joined_words:
            return False
        if re.search(rf"\b{re.escape(stem)}s?\b", words) is not None:
            return True
        # "e receipts" is written "ereceipts" as often; a short stem would be found inside other words
        return len(joined_stem) > 5 and joined_stem in joined_words


@lru_cache(maxsize=1024)
def _is_owning(text: str) -> bool:
    return _OWNING.search(text) is not None and _IRONY.search(text) is None


@lru_cache(maxsize=1024)
def _without_signs(text: str) -> str:
    return re.sub(r"[-_\W]+", " ", text.lower())


def clauses(text: str) -> list[Clause]:
    """The clauses of a text, each with its heading: "Rewards: I could not reach them." is one clause about rewards."""
    result: list[Clause] = []
    heading = ""
    in_admission = False
    for line in text.splitlines():
        if not line.strip():
            continue
        is_item = _BULLET.match(line) is not None
        in_admission = in_admission and is_item
        body = _BULLET.sub("", line).strip(" #*")
        if not is_item and _is_heading(body) and body[-1:] not in ".!?":
            heading = body
            result.append(Clause(body, heads=True))
            continue
        result += _of_line(body, heading, in_admission)
        # "I could not reach these:" owns up for every item below it.
        if body.endswith(":") and result and result[-1].owns:
            in_admission = True
        if not is_item:
            heading = ""
    return result


def _of_line(line: str, heading: str, in_admission: bool) -> Iterator[Clause]:
    for sentence in _CLAUSE.split(line):
        stripped = [piece.strip(" *") for piece in re.split(r":(?=\s|\*|$)", sentence)]
        pieces = [piece for piece in stripped if piece]
        for number, piece in enumerate(pieces, 1):
            if number < len(pieces) and _is_heading(piece):
                heading = piece
                yield Clause(piece, heads=True)
            else:
                yield Clause(piece, heading, in_admission=in_admission)


def admits(read: Sequence[Clause], part: Part, *, alone: bool = False) -> bool:
    """True when a clause says of this part that it was not answered; `alone`: it is the only one
    asked, and needs no name."""
    return any(clause.owns and (alone or part.is_meant(clause)) for clause in read)


def denies_act(clause: Clause) -> bool:
    """True when a clause says of something that it was not answered, or not done."""
    return clause.owns or _UNDONE.search(clause.text) is not None


def act_claims(text: str, verbs: frozenset[str]) -> list[str]:
    """Returns the clauses of a text that say that something was done, by one of these verbs or by none ("all done")."""
    claims: list[str] = []
    for clause in clauses(text):
        if denies_act(clause) or _NEUTRAL.search(clause.text):
            continue
        for claim in _DID.finditer(clause.text):
            if claim[1] is None or not roots(claim[1]).isdisjoint(verbs):
                claims.append(clause.text)
                break
    return claims


def is_told(clause: str, told: str) -> bool:
    """True when most words of a clause, and all its figures, stand in what was told."""
    clause_words = stems(clause)
    if len(clause_words & stems(told)) < 0.7 * len(clause_words):
        return False
    return bool(clause_words) and not unsourced(clause, told, told)


def admits_rest(read: Sequence[Clause], parts: Sequence[Part]) -> bool:
    """True when a clause says that something was left out and means none of these parts by it."""
    for clause in read:
        if not clause.owns or _REMAINDER.search(clause.text) is None:
            continue
        if not any(part.is_meant(clause) for part in parts):
            return True
    return False


def makes_claim(read: Sequence[Clause], part: Part, answer_words: frozenset[str]) -> bool:
    """True when a clause names this part and neither owns up, nor asks, nor offers, nor repeats
    words of an answer in hand."""
    for clause in read:
        if clause.heads or clause.owns or not part.is_meant(clause):
            continue
        if _NEUTRAL.search(clause.text) is not None:
            continue
        statement_words = stems(clause.text) - stems(part.label)
        repeated_words = statement_words & answer_words
        if len(repeated_words) < 0.7 * len(statement_words):
            return True
    return False


def assures(read: Sequence[Clause], known_words: frozenset[str]) -> str:
    """Returns what a clause says of the user in words that nobody delivered; empty where none does.

    "You are a Gold member!" names no part, so `makes_claim` cannot know it. What owns up, asks, offers or is polite
    says nothing of the user, nor does a clause some words of which stand in `known_words`.
    """
    for clause in read:
        said = clause.text
        # "Your tier: Gold." states what "Your tier is Gold." does.
        if clause.heading:
            said = f"{clause.heading}: {clause.text}"
        if clause.heads or clause.owns or _PERSONAL.search(said) is None:
            continue
        if _NEUTRAL.search(clause.text) or _COURTESY.search(clause.text):
            continue
        clause_words = stems(clause.text)
        if clause_words and clause_words.isdisjoint(known_words):
            return clause.text
    return ""


def claims_all(read: Sequence[Clause], answer_words: frozenset[str]) -> str:
    """Returns a clause that says that everything was answered or done; empty where none does, other than in words of
    an answer in hand."""
    for clause in read:
        if clause.heads or clause.owns or _WHOLENESS.search(clause.text) is None:
            continue
        clause_words = stems(clause.text)
        if len(clause_words & answer_words) < 0.5 * len(clause_words):
            return clause.text
    return ""


def asserts(text: str, message: str) -> bool:
    """True when a text that comes before any result gives a figure that its user did not bring, or says something of
    the user: it can know neither.
    """
    text = text[:LONGEST_PREAMBLE]
    if _PERSONAL.search(text):
        return True
    figures_of_user = frozenset(_DIGITS.findall(message))
    if not figures_of_user.issuperset(_DIGITS.findall(text)):
        return True
    return not numbers(text) <= numbers(message)


def passes_on(text: str, part: Part, caveat: str, answer: str, *, alone: bool) -> bool:
    """True when a text passes on a reservation: in its own words near this part, or in those of the caveat."""
    caveat_words = stems(caveat)
    figures = numbers(answer)
    for paragraph in text.splitlines():
        common_words = caveat_words & stems(paragraph)
        reserves = bool(caveat_words) and len(common_words) >= 0.6 * len(caveat_words)
        reserves = reserves or _RESERVING.search(paragraph) is not None
        reserves = reserves or _OWNING.search(paragraph) is not None
        if reserves and (alone or part.is_named(paragraph) or figures & numbers(paragraph)):
            return True
    return False


def only_owns_up(text: str) -> bool:
    """True when a text says that something did not work, and beside that nothing: it apologises, asks, offers."""
    return _is_nothing_but(
        text, lambda clause: clause.owns or _DENIAL.search(clause.text) is not None
    )


def only_refuses(text: str) -> bool:
    """True when a text says that its author cannot help with such a thing, and beside that nothing.

    A text that also says where else to look has something to say.
    """
    if _REFUSING.search(text) is None:
        return False
    return _is_nothing_but(text, lambda clause: _REFUSING.search(clause.text) is not None)


def _is_nothing_but(text: str, is_meant: Callable[[Clause], bool]) -> bool:
    """True when one clause at least is such a one, and the others are polite."""
    is_found = False
    for clause in clauses(text):
        if clause.heads:
            continue
        if is_meant(clause):
            is_found = True
        elif _COURTESY.search(clause.text) is None:
            return False
    return is_found


def denies(text: str, answer: str) -> bool:
    """True when a text says that there is no answer, and beside that nothing, though the answer says something.

    It needs no word of the answer's own to be wrong, so that an answer of few words cannot be denied either. A text
    that owns up in words of the answer may be telling it: "I could not find any offers" is what "No offers" says.
    """
    # An answer that denies is passed on by a denial.
    if only_refuses(answer) or only_owns_up(answer):
        return False
    if only_refuses(text):
        return True
    return only_owns_up(text) and roots(text).isdisjoint(roots(answer))


def is_general_advice(text: str, figures: frozenset[str]) -> bool:
    """True when a text owns up, and gives each of these figures as a period that holds for everybody.

    "I could not load your balance, but pending points post within 24 hours" is no claim about that balance.
    """
    read = clauses(text)
    if not any(clause.owns for clause in read):
        return False
    for clause in read:
        if figures.isdisjoint(numbers(clause.text)):
            continue
        figures_beside_periods = numbers(_PERIOD.sub("", clause.text))
        if _ADDRESS.search(clause.text) or not figures_beside_periods.isdisjoint(figures):
            return False
    return True


def stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without their plural."""
    return frozenset(word.rstrip("s") for word in _WORDS.findall(text.lower()) if word not in _FILL)


def loses(answer: str, text: str, stock: Iterable[str], siblings: Sequence[str] = ()) -> bool:
    """True when a text passes on nothing of an answer. Its figures decide: those only it has, one
    of them is enough.

    An answer without figures may be told in other words throughout. It is not lost where a quarter
    of its own words are left, names of things counting twice; nor where one is left and the text
    says enough that nothing else accounts for: `stock` (requests, words of owning up) and the sibling
    answers are taken off, and a sibling that was reworded needs room of its own. An answer with
    fewer than four words of its own cannot be told from small talk, and is never called lost.
    """
    elsewhere = "\n".join([*stock, *siblings])
    own_figures = numbers(_ROW_ID.sub("", answer)) - numbers(elsewhere)
    # A figure that only this answer has proves more than any number of words.
    if own_figures:
        return own_figures.isdisjoint(numbers(text))
    common_roots = roots(elsewhere)
    answer_roots = roots(answer) - common_roots
    if len(answer_roots) < 4:
        return False
    text_roots = roots(text)
    common_names = (_names(answer) & _names(text)) - common_roots
    overlap = len(answer_roots & text_roots) + len(common_names)
    if not overlap or 4 * overlap >= len(answer_roots):
        return not overlap
    needed = len(answer_roots)
    for sibling in siblings:
        if sibling not in text:
            needed += len(roots(sibling))
    return len(text_roots - common_roots - _IDLE) < ROOM * needed


@lru_cache(maxsize=1024)
def roots(text: str) -> frozenset[str]:
    """The words of a text that say something, without their endings: sign, signs, signed and signing are one."""
    return frozenset(_root(word) for word in _WORDS.findall(text.lower()) if word not in _FILL)


def _root(word: str) -> str:
    for _ in range(2):
        shorter = _ENDING.sub("", word)
        if len(shorter) < 3:
            break
        word = shorter
    if len(word) > 3 and word[-1] == word[-2]:
        return word[:-1]
    return word


def _names(text: str) -> frozenset[str]:
    return frozenset(_root(name.lower()) for name in _NAME.findall(text))


def _is_heading(text: str) -> bool:
    return 0 < len(text.split()) <= HEADING and _OWNING.search(text) is None


_IDLE = roots(" ".join(locale.checks.idle for locale in _LOCALES))
"""Words of a composer that has nothing to say."""


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMERALS: dict[str, float] = {}
for _locale in _LOCALES:
    _NUMERALS.update(_locale.checks.numerals)
_LARGE = frozenset(word for word, value in _NUMERALS.items() if value > 12)
_MIXED_WORD = re.compile(r"(?<![^\W\d])[^\W\d]++\d\w*")
"""A word with digits in it: a name, no figure. It begins where a run of letters begins and is read in
one go, so that a long run without a digit takes time in proportion to its length."""
_WORD = re.compile(r"[^\W\d_]+")
LONGEST = 20_000
"""Characters of a text whose figures are looked for a source of."""
MOST_FIGURES = 60
"""So many figures of the sources are tried in sums and products."""


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text in one spelling, those in words too; those up to twelve, and list markers, say too little
    to count.
    """
    return frozenset(_in_digits(text) | _in_words(text))


def _in_digits(text: str) -> set[str]:
    amounts: set[str] = set()
    for raw in _NUMBER.findall(text):
        number = _plain(raw)
        if number and (len(number) > 2 or float(number) > 12):
            amounts.add(number)
    return amounts


def _plain(raw: str) -> str:
    number = raw.replace(",", "")
    if "." in number:
        return number.rstrip("0").rstrip(".")
    return number.lstrip("0")


def _in_words(text: str) -> set[str]:
    """The numbers above twelve that a text writes as words."""
    # nearly every text
    if _LARGE.isdisjoint(_WORD.findall(text.lower())):
        return set()
    texts: set[str] = set()
    for number in read_numbers(text, _NUMERALS):
        if number.in_words and number.value > 12:
            texts.add(_plain(str(number.value)))
    return texts


def unsourced(text: str, sources: str, answers: str) -> list[str]:
    """Figures of a text that nothing of `sources` gives, in order; none that the figures of the answers come to.

    A sum, a difference, a product or a rounded figure is worked out, not made up.
    """
    # The digits of a product's name are no figure that needs a source.
    made_up = numbers(_MIXED_WORD.sub("", text)) - _in_digits(sources)
    # Sources have 20,000 characters: to read their words takes a tenth of a turn.
    if made_up:
        made_up -= _in_words(sources)
    if not made_up:
        return []
    figures: list[float] = []
    for raw in _NUMBER.findall(answers):
        if raw.count(".") < 2:
            figures.append(float(raw.replace(",", "")))
    results = _worked_out(figures[:MOST_FIGURES])
    spellings = {_plain(raw): raw for raw in _NUMBER.findall(text)}
    unsourced_figures: list[str] = []
    for number in made_up:
        if not _is_worked_out(float(number), figures, results):
            unsourced_figures.append(spellings.get(number, number))
    return sorted(unsourced_figures)


def _worked_out(figures: list[float]) -> set[float]:
    results = set(accumulate(figures))
    for first, second in combinations(figures, 2):
        results |= {first + second, abs(first - second), first * second}
    return {round(result, 2) for result in results}


def _is_worked_out(number: float, figures: Iterable[float], results: set[float]) -> bool:
    return round(number, 2) in results or any(_rounds_to(figure, number) for figure in figures)


def _rounds_to(figure: float, number: float) -> bool:
    """Whether a figure rounds to a number: 4,975 to 5,000, and 19.99 to 20."""
    if number <= 0 or number != int(number):
        return False
    step = 1
    while number % (step * 10) == 0:
        step *= 10
    return abs(figure - number) <= min(step / 2, number / 20)
