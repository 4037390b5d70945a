"""Whether a case set is worth running: no twins, no vertical with longer questions than the rest, none that names its agent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import median

from kit.bench.case import Case
from kit.core.value import Value
from kit.core.words import content_words, words

ALIKE = 0.8
"""Share of content words two cases may have in common."""


class Twin(Value):
    """Two cases that ask nearly the same."""

    first: str
    second: str
    likeness: float


def duplicates(cases: Iterable[Case], most: float = ALIKE) -> list[Twin]:
    """Pairs with more than `most` of their content words in common, of those both hold (Jaccard); the likest first.

    A case is compared by its scored turns, and a text of hardly any content words by all its words.
    """
    heard = [(case.id, _heard(case)) for case in cases]
    found: list[Twin] = []
    for (first, a), (second, b) in combinations(heard, 2):
        shared = len(a & b)
        if shared > most * (len(a) + len(b) - shared):
            found.append(Twin(first=first, second=second, likeness=shared / len(a | b)))
    return sorted(found, key=lambda twin: -twin.likeness)


def typical_words(cases: Sequence[Case]) -> dict[str, float]:
    """Domain -> median words of its scored turns."""
    counts: dict[str, list[int]] = defaultdict(list)
    for case in cases:
        counts[case.domain] += [len(words(case.turns[place].user)) for place in case.scored]
    return {domain: float(median(found)) for domain, found in sorted(counts.items())}


def naming(cases: Sequence[Case]) -> float:
    """Share of cases in which a message holds the id, in plain words, of an agent it is for."""
    told = [any(agent.replace("_", " ") in ask.user.lower() for ask in case.turns for agent in ask.expected) for case in cases]
    return sum(told) / len(told) if told else 0.0


def _heard(case: Case) -> frozenset[str]:
    text = " ".join(case.turns[place].user for place in case.scored)
    heard = content_words(text)
    return heard if len(heard) > 2 else frozenset(words(text))
