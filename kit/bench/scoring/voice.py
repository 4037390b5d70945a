"""Scores whether a reply about support repeats the words of the service behind it, or puts them in words of its own."""

from kit.bench.case import Case
from kit.bench.scoring.observation import Observation
from kit.core.language.words import words

RUN = 8
"""So many words in a row are taken over, not chance."""
SUPPORT = "support"


def voice(case: Case, observation: Observation) -> float | None:
    """How much of the support upstream's words the reply put in words of its own: 0 when it repeats
    them, 1 when it does not.

    None where support was not asked, or where its upstream said fewer words than could be told from chance.
    """
    source = observation.material.get(SUPPORT) or observation.answers.get(SUPPORT, "")
    if len(words(source)) < RUN:
        return None
    return 1.0 - verbatim(source, observation.text)


def verbatim(source: str, text: str, run: int = RUN) -> float:
    """Share of the source's words that stand in the text in runs of at least so many."""
    source_words = words(source)
    if not source_words:
        return 0.0
    reply_words = words(text)
    runs = {tuple(reply_words[start : start + run]) for start in range(len(reply_words))}
    repeated: set[int] = set()
    # A run that the end of the text cuts short is none.
    for start in range(len(source_words) - run + 1):
        if tuple(source_words[start : start + run]) in runs:
            repeated.update(range(start, start + run))
    return len(repeated) / len(source_words)
