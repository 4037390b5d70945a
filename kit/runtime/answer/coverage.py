"""Which parts of a message were covered: parts x calls x answers, for every pattern alike.

A call covers the parts whose words it carries. A call in words of its own carries none, and covers the part that fits
its agent. Several parts in one call are covered as far as its agent's card fits them: where the card of somebody who
was not asked is closer, the part is owed. What an answer speaks of is owed in no case.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kit.core.language.words import content_words
from kit.core.outcome import NOTHING_LEFT, AgentCall, Answer, LeftOut, MessagePart, Outcome
from kit.runtime.answer.parts import Part

SPOKEN_OF = 2
"""Words of a part that an answer must hold, at least, to speak of it: one alone ("points") stands in many answers."""
DENIES = re.compile(r"\bno\b[^.!?]{0,200}?(?:\bfor [\"“]|\b(?:were|was) found)", re.IGNORECASE)
"""A sentence that speaks of something only to say that there is nothing on it."""
FITS = 0.15
"""The closeness from which on the card of somebody who was not asked fits a part clearly."""
CLOSER = 0.0
"""How much closer it must be than the cards of those who were asked for that part and others at once."""
MUCH_CLOSER = 0.08
"""The same where as many agents were asked as there are parts, so that each may well have one."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage ledger of one turn."""

    parts: tuple[MessagePart, ...] = ()
    """Each part of the message, in order, with who was asked for it."""
    left_out: LeftOut = NOTHING_LEFT
    """Those that no call and no answer covers."""


NOTHING_TO_COVER = Coverage()
"""The ledger of a message of one clause, and of a turn in which nobody was asked."""


def coverage(
    parts: Sequence[Part],
    calls: Sequence[AgentCall],
    outcomes: Sequence[Outcome],
    *,
    in_own_words: bool = True,
) -> Coverage:
    """Returns what became of each part.

    `in_own_words`: a call that carries the words of no part may stand for one. Steps of a plan may not: there are
    more of them than parts, for they lead to one another.
    """
    if len(parts) < 2 or not calls:
        return NOTHING_TO_COVER
    places_of_calls = [_carried_by(call, parts) for call in calls]
    asked: list[list[str]] = [[] for _ in parts]
    for call, places in zip(calls, places_of_calls, strict=True):
        for place in places:
            asked[place].append(call.agent)
    free_calls = [call for call, places in zip(calls, places_of_calls, strict=True) if not places]
    if not in_own_words:
        free_calls = []
    spoken_of = {place for place, part in enumerate(parts) if _is_spoken_of(part, outcomes)}
    open_places = [place for place, agents in enumerate(asked) if not agents]
    part_places = _place(free_calls, open_places, parts)
    for place, agent in (part_places or {}).items():
        asked[place].append(agent)
    owed_places = {place for place in open_places if not asked[place]} | _misfits(
        parts, places_of_calls, asked
    )
    owed_places -= spoken_of
    unnamed = 0
    if part_places is None:
        # somebody was asked for some of these in other words; for which of them cannot be told
        owed_places -= set(open_places)
        unnamed = max(0, len(set(open_places) - spoken_of) - len(free_calls))
    lines: list[MessagePart] = []
    for place, part in enumerate(parts):
        if place in owed_places:
            agents = ()
        else:
            agents = tuple(dict.fromkeys(asked[place]))
        lines.append(MessagePart(text=part.text, asked=agents, owed=place in owed_places))
    names = tuple(line.text for line in lines if line.owed)
    left_out = LeftOut(count=len(names) + unnamed, parts=names)
    return Coverage(parts=tuple(lines), left_out=left_out)


def _carried_by(call: AgentCall, parts: Sequence[Part]) -> list[int]:
    """Returns the places of the parts whose words stand in a call."""
    query_words = content_words(call.query)
    return [
        place
        for place, part in enumerate(parts)
        if 2 * len(part.own_words & query_words) >= len(part.own_words)
    ]


def _place(
    calls: Sequence[AgentCall], places: Sequence[int], parts: Sequence[Part]
) -> dict[int, str] | None:
    """Returns which part each call in words of its own stands for; None where that cannot be told."""
    part_places: dict[int, str] = {}
    enough = len(calls) >= len(places)
    for call in calls:
        remaining = [place for place in places if place not in part_places]
        if not remaining:
            break
        best = max(remaining, key=lambda place: parts[place].closeness.get(call.agent, 0.0))
        if not enough and parts[best].nearest != call.agent:
            return None
        part_places[best] = call.agent
    return part_places


def _misfits(
    parts: Sequence[Part], places_of_calls: Sequence[Sequence[int]], asked: Sequence[Sequence[str]]
) -> set[int]:
    """Returns the parts that share their calls with others and fit somebody better who was not asked.

    Where as many agents were asked as there are such parts, each may have one. A model that gives a part a call
    of its own has decided whose it is, and is believed: cards are too coarse to overrule it.
    """
    has_own_call = {places[0] for places in places_of_calls if len(places) == 1}
    sharing = [place for places in places_of_calls if len(places) > 1 for place in places]
    common = [place for place in dict.fromkeys(sharing) if place not in has_own_call]
    sharing_agents = {agent for place in common for agent in asked[place]}
    everybody = {agent for agents in asked for agent in agents}
    lacking = len(common) - len(sharing_agents)
    if lacking > 0:
        bar = CLOSER
    else:
        bar = MUCH_CLOSER
    gaps: dict[int, float] = {}
    for place in common:
        closeness = parts[place].closeness
        others = [value for agent, value in closeness.items() if agent not in everybody]
        best_other = max(others, default=0.0)
        best_asked = max((closeness.get(agent, 0.0) for agent in asked[place]), default=0.0)
        if best_other >= FITS and best_other - best_asked > bar:
            gaps[place] = best_other - best_asked
    # each agent that was asked has at least one part: never are all of them owed
    widest = sorted(gaps, key=lambda place: -gaps[place])
    return set(widest[: max(lacking, len(common) - 1)])


def _is_spoken_of(part: Part, outcomes: Sequence[Outcome]) -> bool:
    """Whether an answer speaks of a part, beyond saying that there is nothing on it."""
    for outcome in outcomes:
        if not isinstance(outcome, Answer):
            continue
        sentences = SENTENCE_END.split(outcome.text)
        statements = " ".join(sentence for sentence in sentences if not DENIES.search(sentence))
        common = len(part.content & content_words(statements))
        if common >= SPOKEN_OF and 2 * common >= len(part.content):
            return True
    return False
