"""Which tools a request is for: the decision of the offline stand-in, from descriptions and the conversation alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kit.core.language.clauses import OPENERS, Clause, clauses
from kit.core.language.small_talk import asks, small_talk
from kit.core.language.words import STOP, word_set, words
from kit.models.offline import english
from kit.models.offline.similarity import Floats, content, index

FITS = 0.15
"""The score below which nothing fits."""
OWN = 0.05
"""The score below which a wish that stands on its own has nothing to do with a tool, in play or not; a question that
stands on its own needs FITS."""
RELEVANT = 0.08
"""The score below which a clause says nothing about any tool."""
CLEAR = 0.065
"""What a further tool must gain over those chosen, on a clause of its own, before a request is split."""
MIDWAY = 0.1
"""What it must gain beside that while another tool is in play: most long replies go on with one matter."""
SENTENCE = 0.08
"""What it must gain beside that on a sentence of its own: the next sentence mostly explains the one before it."""
AUXILIARIES = word_set(
    "is are am was were do does did can could would should will may have has had i you we"
)
"""Words without which a question is a fragment: "which days" is one, "who are you" is none."""
MANY = 3
"""Clauses from which on no tool is asked for the message as a whole: each must be some clause's own."""
STAY = 0.1
QUESTION = 0.12
BACK = 0.08
ELLIPTIC = 0.25
FRESH = 0.05
"""Head start of the tools in play: always; when the assistant asked; when the request points back; when it
does and says next to nothing else; off when it opens a matter."""


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
    """True when a request leans on what was said before it: an answer to a question, a pronoun, a fragment.

    What is carried over from earlier turns is carried for such requests alone; every other one stands on its own.
    """
    meaning: list[str] = []
    for word in words(request):
        if word not in STOP:
            meaning.append(word)
    if len(meaning) > 6:
        return False
    if len(meaning) <= 4 and asks(last_reply):
        return True
    rest = english.POINTLESS.sub(" ", request)
    if english.PRONOUN.search(rest) or english.LINK.search(request):
        return True
    if is_general(request):
        return False
    return english.ORDINAL.search(rest) is not None or is_fragment(request)


def is_stray(request: str) -> bool:
    """Whether a request is of a kind that is mostly about the world at large: a question that speaks neither of the
    user nor of what is at hand, a feeling, a task that no lookup is."""
    if is_general(request) or english.FEELING.search(request):
        return True
    return english.WORLD.match(request) is not None and english.OWN.search(request) is None


def is_elliptic(request: str) -> bool:
    """Whether a request names next to nothing itself, such as "are they going to expire?"."""
    meaning: list[str] = []
    for word in words(request):
        if word not in STOP and word not in english.FAINT:
            meaning.append(word)
    return len(meaning) <= 1


def is_general(request: str) -> bool:
    """Whether a request asks for general knowledge, or sets a task that no lookup is."""
    patterns = (english.GENERAL, english.TASK, english.SUM, english.SELF)
    return any(pattern.search(request) for pattern in patterns)


def is_sentence(request: str) -> bool:
    """Whether a request begins as a question, a wish or a statement does."""
    request_words: list[str] = []
    for word in words(request):
        if word != "please":
            request_words.append(word)
    return bool(request_words) and request_words[0] in OPENERS


def is_fragment(request: str) -> bool:
    """Whether a request is no sentence but a few words, such as "decaf", "in Leeds" or "which days?"."""
    request_words = words(request)
    meaning: list[str] = []
    for word in request_words:
        if word not in STOP:
            meaning.append(word)
    if not request_words or len(meaning) > 2:
        return False
    if not is_sentence(request):
        return True
    return (
        len(request_words) <= 3
        and AUXILIARIES.isdisjoint(request_words)
        and not set(meaning) - english.FAINT
    )


def decide(situation: Situation, most: int) -> Decision:
    """Parts in the order asked, at most one a tool and at most `most` of them (the closest stay)."""
    if small_talk(situation.request, situation.last_reply):
        return SmallTalk()
    if not situation.tools:
        return Unfit()
    table = index(situation.tools)
    lift = _head_start(situation)
    whole = table.score(_with_its_matter(situation.request))
    first = int((whole + lift).argmax())
    pieces: list[Clause] = []
    for clause in clauses(situation.request, opening=not situation.in_play):
        if clause.content:
            pieces.append(clause)
    if pieces[1:]:
        parts = _split(
            situation.request, pieces, np.stack([table.score(p.text) for p in pieces]), lift, first
        )
    else:
        parts = ()
    if len(parts) < 2:
        return _single(situation, whole, lift, first)
    best = sorted(parts, key=lambda part: -part.score)[:most]
    return Routes(tuple(part for part in parts if part in best), len(parts))


def _with_its_matter(request: str) -> str:
    """A request as it is compared with the tools: a complaint names what it misses, and seldom that it complains."""
    if english.COMPLAINT.search(request):
        return f"{request}. {english.WENT_WRONG}"
    return request


def _head_start(situation: Situation) -> Floats:
    """What the tools in play are given beforehand: little when the request stands on its own."""
    lift = np.zeros(len(situation.tools), np.float32)
    if situation.in_play:
        if english.COMPLAINT.search(situation.request):
            start = 0.0
        else:
            start = STAY
        start += QUESTION if asks(situation.last_reply) else 0.0
        if points_back(situation.request, situation.last_reply):
            start += ELLIPTIC if is_elliptic(situation.request) else BACK
        start -= FRESH if english.FRESH.search(situation.request) else 0.0
        lift[list(situation.in_play)] = start
    return lift


def _single(situation: Situation, scores: Floats, lift: Floats, best: int) -> Decision:
    """One call, or none where the request stands on its own and nothing here is close to it."""
    answers = asks(situation.last_reply) or points_back(situation.request, situation.last_reply)
    if not (situation.in_play and answers):
        if is_stray(situation.request):
            floor = FITS
        else:
            floor = OWN
        if float(scores.max()) < floor or scores[best] + lift[best] < FITS:
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
