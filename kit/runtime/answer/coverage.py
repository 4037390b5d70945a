"""Which parts of a message were covered: parts x calls x answers, for every pattern alike.

A call covers the parts whose words it carries. A call in words of its own carries none, and covers the part that fits
its agent. Several parts in one call are covered as far as its agent's card fits them: where the card of somebody who
was not asked is closer, the part is owed. What an answer speaks of is owed in no case.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True, eq=False)
class _PartState:
    """What is known so far of one part."""

    part: Part
    agents: list[str] = field(default_factory=list[str])
    """Those who were asked for it."""
    has_own_call: bool = False
    shares_a_call: bool = False
    is_owed: bool = False


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
    states = [_PartState(part) for part in parts]
    free_calls: list[AgentCall] = []
    for call in calls:
        if not _note_call(call, states) and in_own_words:
            free_calls.append(call)
    open_states = [state for state in states if not state.agents]
    can_be_told = _assign(free_calls, open_states)
    if can_be_told:
        for state in open_states:
            state.is_owed = not state.agents
    _mark_misfits(states)
    lines: list[MessagePart] = []
    unnamed = -len(free_calls)
    for state in states:
        is_spoken_of = _is_spoken_of(state.part, outcomes)
        if not state.agents and not is_spoken_of:
            unnamed += 1
        is_owed = state.is_owed and not is_spoken_of
        agents = () if is_owed else tuple(dict.fromkeys(state.agents))
        lines.append(MessagePart(text=state.part.text, asked=agents, owed=is_owed))
    names = tuple(line.text for line in lines if line.owed)
    if can_be_told:
        return Coverage(tuple(lines), LeftOut(count=len(names), parts=names))
    # somebody was asked for some of the open parts in other words; for which of them cannot be told
    return Coverage(tuple(lines), LeftOut(count=len(names) + max(0, unnamed), parts=names))


def _note_call(call: AgentCall, states: Sequence[_PartState]) -> bool:
    """Notes a call with the parts whose words it carries; False where it carries those of none."""
    query_words = content_words(call.query)
    carried: list[_PartState] = []
    for state in states:
        part_words = state.part.own_words
        if 2 * len(part_words & query_words) >= len(part_words):
            carried.append(state)
    # A part with a call of its own is what the model decided; one that shares a call may have been swept along.
    for state in carried:
        state.agents.append(call.agent)
        if len(carried) == 1:
            state.has_own_call = True
        else:
            state.shares_a_call = True
    return bool(carried)


def _assign(calls: Sequence[AgentCall], open_states: Sequence[_PartState]) -> bool:
    """Assigns calls in words of their own to open parts; False, with none assigned, where that cannot be told."""
    remaining = list(open_states)
    assigned: list[tuple[_PartState, str]] = []
    for call in calls:
        if not remaining:
            break
        agent = call.agent
        best = max(remaining, key=lambda state: state.part.closeness.get(agent, 0.0))
        if len(calls) < len(open_states) and best.part.nearest != agent:
            return False
        assigned.append((best, agent))
        remaining.remove(best)
    for state, agent in assigned:
        state.agents.append(agent)
    return True


def _mark_misfits(states: Sequence[_PartState]) -> None:
    """Marks as owed the parts that share their calls with others and fit somebody better who was not asked.

    Where as many agents were asked as there are such parts, each may have one. A model that gives a part a call
    of its own has decided whose it is, and is believed: cards are too coarse to overrule it.
    """
    sharing = [state for state in states if state.shares_a_call and not state.has_own_call]
    asked_agents: set[str] = set()
    for state in states:
        asked_agents.update(state.agents)
    sharing_agents: set[str] = set()
    for state in sharing:
        sharing_agents.update(state.agents)
    lacking = len(sharing) - len(sharing_agents)
    bar = CLOSER if lacking > 0 else MUCH_CLOSER
    gaps: list[tuple[float, _PartState]] = []
    for state in sharing:
        best_other = 0.0
        best_asked = 0.0
        for agent, closeness in state.part.closeness.items():
            if agent not in asked_agents:
                best_other = max(best_other, closeness)
            elif agent in state.agents:
                best_asked = max(best_asked, closeness)
        if best_other >= FITS and best_other - best_asked > bar:
            gaps.append((best_other - best_asked, state))
    gaps.sort(key=lambda gap: gap[0], reverse=True)
    # each agent that was asked has at least one part: never are all of them owed
    for _, state in gaps[: max(lacking, len(sharing) - 1)]:
        state.is_owed = True


def _is_spoken_of(part: Part, outcomes: Sequence[Outcome]) -> bool:
    """Whether an answer speaks of a part, beyond saying that there is nothing on it."""
    for outcome in outcomes:
        if not isinstance(outcome, Answer):
            continue
        sentences = SENTENCE_END.split(outcome.text)
        statements = [sentence for sentence in sentences if not DENIES.search(sentence)]
        common_words = part.content & content_words(" ".join(statements))
        if len(common_words) >= SPOKEN_OF and 2 * len(common_words) >= len(part.content):
            return True
    return False
