"""Checks of a case set: no near-duplicates, no vertical with longer questions than the rest, no
message that names its agent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import median

from kit.bench.case import Case
from kit.core.language.words import content_words, words
from kit.core.value import Value

ALIKE = 0.8
"""Share of content words two cases may have in common."""


class Twin(Value):
    """Two cases that ask nearly the same."""

    first: str
    second: str
    likeness: float


def duplicates(cases: Iterable[Case], most: float = ALIKE) -> list[Twin]:
    """Returns pairs with more than `most` of their content words in common, of those both hold
    (Jaccard); the likest first.

    A case is compared by its scored turns, and a text of hardly any content words by all its words.
    """
    texts = [(case.id, _words_of(case)) for case in cases]
    twins: list[Twin] = []
    for (first, a), (second, b) in combinations(texts, 2):
        common = len(a & b)
        if common > most * (len(a) + len(b) - common):
            twins.append(Twin(first=first, second=second, likeness=common / len(a | b)))
    return sorted(twins, key=lambda twin: -twin.likeness)


def typical_words(cases: Sequence[Case]) -> dict[str, float]:
    """Returns domain -> median words of its scored turns."""
    counts: dict[str, list[int]] = defaultdict(list)
    for case in cases:
        counts[case.domain] += [len(words(case.turns[place].user)) for place in case.scored]
    return {domain: float(median(lengths)) for domain, lengths in sorted(counts.items())}


def share_naming_agent(cases: Sequence[Case]) -> float:
    """Returns the share of cases in which a message holds the id, in plain words, of an agent it is for."""
    hits = [
        any(
            agent.replace("_", " ") in ask.user.lower()
            for ask in case.turns
            for agent in ask.expected
        )
        for case in cases
    ]
    return sum(hits) / len(hits) if hits else 0.0


def _words_of(case: Case) -> frozenset[str]:
    text = " ".join(case.turns[place].user for place in case.scored)
    content = content_words(text)
    return content if len(content) > 2 else frozenset(words(text))
