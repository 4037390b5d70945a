"""The figures of a text, in digits and in words, and which of them no source gives."""

import re
from collections.abc import Iterable
from itertools import accumulate, combinations

from kit.compose.locale import BY_LANGUAGE

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMERALS = {
    word: value for locale in BY_LANGUAGE.values() for word, value in locale.checks.numerals.items()
}
_LARGE = frozenset(word for word, value in _NUMERALS.items() if value > 12)
_NAME = re.compile(r"(?<![^\W\d])[^\W\d]++\d\w*")
"""A word with digits in it: a name, no figure. It begins where a run of letters begins and is read in
one go, so that a long run without a digit takes time in proportion to its length."""
_WORD = re.compile(r"[^\W\d_]+")
_TIES = frozenset(("and", "y"))
"""Words inside a number: two hundred and fifty, cuarenta y cinco."""
LONGEST = 20_000
"""Characters of a text whose figures are looked for a source of."""
MOST_FIGURES = 60
"""So many figures of the sources are tried in sums and products."""


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text in one spelling, those in words too; those up to twelve, and list markers, say too little
    to count.
    """
    plain: list[str] = []
    for raw in _NUMBER.findall(text):
        if len(raw) > 1:
            plain.append(_plain(raw))
    amounts: set[str] = set()
    for number in plain:
        if number and (len(number) > 2 or float(number) > 12):
            amounts.add(number)
    return frozenset(amounts | _in_words(text))


def _plain(raw: str) -> str:
    number = raw.replace(",", "")
    if "." in number:
        return number.rstrip("0").rstrip(".")
    return number.lstrip("0")


def _in_words(text: str) -> set[str]:
    """The numbers above twelve that a text writes as words."""
    text_words = _WORD.findall(text.lower())
    # nearly every text
    if _LARGE.isdisjoint(text_words):
        return set()
    amounts: list[int] = []
    run: list[int] = []
    for number, word in enumerate(text_words):
        value = _NUMERALS.get(word)
        if value is None:
            next_words = text_words[number + 1 : number + 2]
            following = _NUMERALS.get(next_words[0]) if next_words else None
            if run and word in _TIES and following is not None and _is_tied(run[-1], following):
                continue
            amounts.append(_value(run))
            run = []
            continue
        if run and not _goes_on(run[-1], value):
            amounts.append(_value(run))
            run = []
        run.append(value)
    amounts.append(_value(run))
    texts: set[str] = set()
    for number in amounts:
        if number > 12:
            texts.add(str(number))
    return texts


def _goes_on(last: int, value: int) -> bool:
    """Whether a numeral goes on with the number before it: twenty-five, two hundred; not: two three."""
    if value >= 100 and value % 100 == 0:
        return True
    if last >= 100:
        return True
    return 20 <= last < 100 and value < 10


def _is_tied(last: int, value: int) -> bool:
    return last >= 100 or (30 <= last < 100 and value < 10)


def _value(run: Iterable[int]) -> int:
    """What numerals come to: [4, 1000] is 4,000 and [2, 100, 50] is 250."""
    total = 0
    group = 0
    for value in run:
        if value >= 1000:
            total += max(group, 1) * value
            group = 0
        elif value == 100:
            group = max(group, 1) * 100
        else:
            group += value
    return total + group


def unsourced(text: str, sources: str, answers: str) -> list[str]:
    """Figures of a text that nothing of `sources` gives, in order; none that the figures of the answers come to.

    A sum, a difference, a product or a rounded figure is worked out, not made up.
    """
    # The digits of a product's name are no figure that needs a source.
    made_up = numbers(_NAME.sub("", text)) - numbers(sources)
    if not made_up:
        return []
    figures: list[float] = []
    for raw in _NUMBER.findall(answers):
        if raw.count(".") < 2:
            figures.append(float(raw.replace(",", "")))
    results = _worked_out(figures[:MOST_FIGURES])
    spellings = {_plain(raw): raw for raw in _NUMBER.findall(text)}
    return sorted(
        spellings.get(number, number)
        for number in made_up
        if not _is_worked_out(float(number), figures, results)
    )


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
