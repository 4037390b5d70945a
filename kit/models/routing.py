"""Which tools a request is for: the decision of the offline stand-in, from descriptions and the conversation alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kit.models import phrases
from kit.models.similarity import Floats, content, index, words

FITS = 0.16
"""The score below which nothing fits."""
CLEAR = 0.05
"""How much each of two clauses must prefer its own tool before a request is split."""
STAY = 0.10
"""Head start of the tools in play when the request points back at what was said."""
PRIOR = 0.03
"""Head start of the tools in play when the request stands on its own."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is known when a request is routed."""

    request: str
    tools: tuple[tuple[str, str], ...]
    """Name in plain words and description, in the order they are bound."""
    in_play: frozenset[int] = frozenset()
    """Positions of the tools called in the previous turn."""
    said: str = ""
    """The assistant's last words."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the request, verbatim, and the tool it is for."""

    tool: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """Nothing was asked."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Something was asked that no tool answers."""


@dataclass(frozen=True, slots=True)
class Routes:
    """What to call, in the order asked."""

    parts: tuple[Part, ...]
    intents: int
    """How many tools the request asks for, before the cap."""


Decision = Routes | SmallTalk | Unfit


def small_talk(request: str, said: str = "") -> bool:
    """True for a greeting, thanks, goodbye or acknowledgement, by a strict allow-list; a bare yes to a question is an answer."""
    text = request.strip()[:400]
    if not words(text):
        return False
    if not phrases.SMALL_TALK.fullmatch(text):
        return False
    return not (asks(said) and phrases.AFFIRMATIVE.fullmatch(text))


def asks(said: str) -> bool:
    """True when the assistant's last words were a question about the matter in hand."""
    last = re.split(r"(?<=[.!?])\s+", said.strip())[-1]
    return last.endswith("?") and not phrases.CLOSING_QUESTION.search(last)


def points_back(request: str, said: str = "") -> bool:
    """True when a request cannot be understood without what was said before it."""
    meaning = [word for word in words(request) if word not in phrases.STOP]
    if len(meaning) <= 2 or (len(meaning) <= 4 and asks(said)):
        return True
    return len(meaning) <= 6 and phrases.REFERENCE.search(request) is not None


def clauses(text: str) -> list[str]:
    """The clauses of a request, verbatim, in order; fragments stay with the clause before them."""
    cuts: list[tuple[int, int]] = [(m.start(), m.end()) for m in phrases.JOINER.finditer(text)]
    for match in phrases.SOFT_JOINER.finditer(text):
        following = words(text[match.end() : match.end() + 30])
        if following and following[0] in phrases.OPENERS and not any(a <= match.start() < b for a, b in cuts):
            cuts.append((match.start(), match.end()))
    found: list[str] = []
    at = 0
    for start, end in [*sorted(cuts), (len(text), len(text))]:
        piece = text[at:start]
        if len([word for word in words(piece) if word not in phrases.STOP]) >= 1:
            found.append(piece.strip(" ,;.!-"))
        at = max(at, end)
    return [piece for piece in found if piece][:12]


def decide(situation: Situation, most: int) -> Decision:
    """Parts in the order asked, at most one a tool and at most `most` of them (the closest stay)."""
    if small_talk(situation.request, situation.said):
        return SmallTalk()
    if not situation.tools:
        return Unfit()
    table = index(situation.tools)
    pieces = clauses(situation.request)
    parts = _split(pieces, [table.score(piece) for piece in pieces]) if len(pieces) > 1 else ()
    if len(parts) < 2:
        return _single(situation, table.score(situation.request))
    kept = sorted(parts, key=lambda part: -part.score)[:most]
    return Routes(tuple(part for part in parts if part in kept), len(parts))


def _single(situation: Situation, scores: Floats) -> Decision:
    back = bool(situation.in_play) and points_back(situation.request, situation.said)
    lift = scores.copy()
    for position in situation.in_play:
        lift[position] += STAY if back else PRIOR
    best = int(lift.argmax())
    if lift[best] < FITS and not (back and situation.in_play):
        return Unfit()
    if lift[best] < FITS:
        best = max(situation.in_play, key=lambda position: (float(scores[position]), -position))
    return Routes((Part(best, situation.request.strip(), float(scores[best])),), 1)


def _split(pieces: Sequence[str], scores: Sequence[Floats]) -> tuple[Part, ...]:
    """Groups clauses by the tool each clearly prefers; a clause without a clear wish joins the one before it."""
    chosen = [int(row.argmax()) for row in scores]
    rivals = set(chosen)
    groups: dict[int, list[int]] = {}
    for i, row in enumerate(scores):
        others = [float(row[j]) for j in rivals if j != chosen[i]]
        if row[chosen[i]] >= FITS and (not others or row[chosen[i]] - max(others) >= CLEAR) and len(content(pieces[i])) > 1:
            groups.setdefault(chosen[i], []).append(i)
    return tuple(
        Part(tool, " ".join(pieces[i] for i in mine), max(float(scores[i][tool]) for i in mine)) for tool, mine in groups.items()
    )
