"""In whose voice a reply about support speaks: the assistant's, or that of the service behind it (PC1-R-7)."""

from kit.bench.case import Case
from kit.bench.scoring.observation import Observation
from kit.core.words import words

RUN = 8
"""So many words in a row are taken over, not chance."""
SUPPORT = "support"


def voice(case: Case, seen: Observation) -> float | None:
    """How much of the support upstream's words the reply put in words of its own: 0 when it repeats them, 1 when it does not.

    None where support was not asked, or where its upstream said fewer words than could be told from chance.
    """
    source = seen.material.get(SUPPORT) or seen.answers.get(SUPPORT, "")
    return None if len(words(source)) < RUN else 1.0 - verbatim(source, seen.text)


def verbatim(source: str, text: str, run: int = RUN) -> float:
    """Share of the source's words that stand in the text in runs of at least so many."""
    told, heard = words(source), words(text)
    known = {tuple(heard[start : start + run]) for start in range(len(heard) - run + 1)}
    taken: set[int] = set()
    for start in range(len(told) - run + 1):
        if tuple(told[start : start + run]) in known:
            taken.update(range(start, start + run))
    return len(taken) / len(told) if told else 0.0
