"""Which tools a request is for: the decision of the offline stand-in, from descriptions and the conversation alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kit.core.language.clauses import Clause, clauses
from kit.core.language.small_talk import asks, small_talk
from kit.core.language.words import STOP, words
from kit.models.offline import english
from kit.models.offline.similarity import Floats, content, index

FITS = 0.15
"""The score below which nothing fits."""
OWN = 0.05
"""The score below which a request that stands on its own has nothing to do with a tool, in play or not."""
RELEVANT = 0.08
"""The score below which a clause says nothing about any tool."""
CLEAR = 0.065
"""What a further tool must gain over those chosen, on a clause of its own, before a request is split."""
MIDWAY = 0.1
"""What it must gain beside that while another tool is in play: most long replies go on with one matter."""
SENTENCE = 0.08
"""What it must gain beside that on a sentence of its own: the next sentence mostly explains the one before it."""
MANY = 3
"""Clauses from which on no tool is asked for the message as a whole: each must be some clause's own."""
STAY, QUESTION, BACK, FRESH = 0.1, 0.12, 0.08, 0.05
"""Head start of the tools in play: always; when the assistant asked; when the request points back;
off when it opens a matter."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is known when a request is routed."""

    request: str
    tools: tuple[tuple[str, str], ...]
    """Name in plain words and description, in the order they are bound."""
    in_play: frozenset[int] = frozenset()
    """Positions of the tools called in the previous turn."""
    last_reply: str = ""
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


def points_back(request: str, last_reply: str = "") -> bool:
    """True when a request cannot be understood without what was said before it."""
    meaning = [word for word in words(request) if word not in STOP]
    if len(meaning) <= 2 or (len(meaning) <= 4 and asks(last_reply)):
        return True
    return len(meaning) <= 6 and english.REFERENCE.search(request) is not None


def decide(situation: Situation, most: int) -> Decision:
    """Parts in the order asked, at most one a tool and at most `most` of them (the closest stay)."""
    if small_talk(situation.request, situation.last_reply):
        return SmallTalk()
    if not situation.tools:
        return Unfit()
    table = index(situation.tools)
    lift = _head_start(situation)
    whole = table.score(situation.request)
    first = int((whole + lift).argmax())
    pieces = [
        clause
        for clause in clauses(situation.request, opening=not situation.in_play)
        if clause.content
    ]
    parts = (
        _split(
            situation.request, pieces, np.stack([table.score(p.text) for p in pieces]), lift, first
        )
        if pieces[1:]
        else ()
    )
    if len(parts) < 2:
        return _single(situation, whole, lift, first)
    best = sorted(parts, key=lambda part: -part.score)[:most]
    return Routes(tuple(part for part in parts if part in best), len(parts))


def _head_start(situation: Situation) -> Floats:
    """What the tools in play are given beforehand: little when the request stands on its own."""
    lift = np.zeros(len(situation.tools), np.float32)
    if situation.in_play:
        start = STAY
        start += QUESTION if asks(situation.last_reply) else 0.0
        start += BACK if points_back(situation.request, situation.last_reply) else 0.0
        start -= FRESH if english.FRESH.search(situation.request) else 0.0
        lift[list(situation.in_play)] = start
    return lift


def _single(situation: Situation, scores: Floats, lift: Floats, best: int) -> Decision:
    answering = bool(situation.in_play) and (
        points_back(situation.request, situation.last_reply) or asks(situation.last_reply)
    )
    if not answering and (scores[best] < OWN or scores[best] + lift[best] < FITS):
        return Unfit()
    if scores[best] + lift[best] < FITS:
        best = max(situation.in_play, key=lambda position: (float(scores[position]), -position))
    return Routes((Part(best, situation.request.strip(), float(scores[best])),), 1)


def _split(
    request: str, pieces: Sequence[Clause], scores: Floats, lift: Floats, first: int
) -> tuple[Part, ...]:
    """Adds tools while each gains enough on a clause of its own; every clause goes to the tool it
    prefers among those."""
    weight = np.array([min(1.0, 0.4 * len(content(piece.text))) for piece in pieces], np.float32)
    weight *= scores.max(axis=1) >= RELEVANT
    scores = scores + lift
    joiner_count = sum(piece.has_joiner and w > 0 for piece, w in zip(pieces, weight, strict=True))
    many = joiner_count >= MANY and not lift.any()
    bar = CLEAR + (MIDWAY if lift.any() else 0.0)
    apart = np.array([0.0 if piece.has_joiner else SENTENCE for piece in pieces], np.float32)[
        :, None
    ]
    if many:
        first = int((weight[:, None] * scores).max(axis=0).argmax())
    tools = [first]
    while len(tools) < len(pieces):
        best_so_far = scores[:, tools].max(axis=1, keepdims=True)
        gain = (weight[:, None] * (scores - best_so_far) - apart).max(axis=0)
        best = int(gain.argmax())
        if gain[best] < bar:
            break
        tools.append(best)
    groups: dict[int, list[int]] = {}
    for i, row in enumerate(scores):
        if weight[i] > 0:
            groups.setdefault(max(tools, key=lambda tool: row[tool]), []).append(i)
    return tuple(
        Part(
            tool,
            _text(request, [pieces[i] for i in mine]),
            float(max(scores[i][tool] for i in mine)),
        )
        for tool, mine in groups.items()
    )


def _text(request: str, mine: Sequence[Clause]) -> str:
    """Clauses as the user wrote them, in one piece where they are neighbours."""
    runs: list[tuple[int, int]] = []
    for clause in mine:
        if runs and clause.start - runs[-1][1] <= 8:
            runs[-1] = (runs[-1][0], clause.end)
        else:
            runs.append((clause.start, clause.end))
    return " ".join(request[a:b].strip(" ,;") for a, b in runs)
