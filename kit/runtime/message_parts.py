"""The parts of a user's message, counted without the routing model: its clauses, and which card each is closest to.

What a model reports about its own work cannot show what it forgot. This count is made from the message alone: the
rules of `kit/core/language/clauses.py` cut it, and static word vectors say which agent's card each clause leans to.
A message of one clause ends before any vector is read.

Which parts were covered is parts x calls x answers, for every pattern alike. A call covers the parts whose words it
carries. A call in words of its own carries none, and covers the part that fits its agent. Several parts in one call are
covered as far as its agent's card fits them: where the card of somebody who was not asked is closer, the part is owed.
What an answer speaks of is not owed; it has to say more of it where its call was in the words of another part.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from kit.core.language.asides import ASIDE, HASTE, PROMPT, TERMS, THANKS
from kit.core.language.clauses import (
    LONGEST,
    PREPOSITIONS,
    clauses,
    goes_on,
    opens_as_request,
    tells,
)
from kit.core.language.words import SENTENCE_END, content_words, spoken, word_set, words
from kit.core.outcome import NOTHING_LEFT, AgentCall, Answer, LeftOut, MessagePart, Outcome
from kit.core.picture import strip_marks
from kit.models.offline.similarity import OWN_REQUEST, Document, Index, index


class Addressee(NamedTuple):
    """An agent whom a message may be for."""

    agent: str
    description: str
    """What its card says it answers."""
    requests: tuple[str, ...] = ()
    """What people ask it, as its card lists them."""


Cards = tuple[Addressee, ...]
"""In the order of the deck."""

JOINT = re.compile(
    r"""[,;/\n–—?!]|[.:]\s|\s-\s|\b\d{1,2}[.)]\s|\b[a-h]\)\s
        |\s(?:and|n|&|\+|also|plus|then|but|as\ well|y|e|además|también|luego|pero)\s""",
    re.IGNORECASE | re.VERBOSE,
)
"""Something that may part two clauses; most messages have none, and are done with after this one search."""
PAIR = re.compile(r",\s+|(?<!\s)\s+(?:and|\+|or|but|y|e|o|pero)\s+(?:to\s+)?", re.IGNORECASE)
"""A joiner that parts two clauses only where both sides lean to different cards."""
CUT = 0.08
"""How much closer than the other's card each side of such a joiner must be to its own."""
LEANS = 0.15
"""The closeness from which on a side leans to a card at all."""
GOES_ON = word_set("only still already not just nothing gives pays has takes offers sells serves")
"""Words that begin the other half of a question, and no question of their own: "... and gives points"."""
FEWEST_WORDS = 8
"""Words of content that each card must have: "Answers questions about play." is close to anything or nothing."""
LIST_MARK = re.compile(r"\n|;|/|\d[.)]|\b[a-h]\)|•", re.IGNORECASE)
"""Ends an item of a list that the user wrote as one: what follows is a part whatever its words."""
NARRATORS = word_set("any i i'd i'm i'll i've we we're we've it it's he she they")
"""Words that tell what is the case, where "my" and "any" as often begin what is wished for."""
WISH = re.compile(r"(?:i\s+(?:would|should)|i['’]?d)\s+(?:like|love)\s+to\b", re.IGNORECASE)
"""Asks, where "I" otherwise tells."""
BACK = re.compile(r"\b(?:it|that|them|those|lo|los|eso)\b", re.IGNORECASE)
THEY = re.compile(r"\bthey\b", re.IGNORECASE)
SAYS_ENOUGH = 3
"""Words that say something, from which on a request can stand alone."""
LETTER = re.compile(r"[^\W\d_]")
MOST_JOINERS = 20
"""Joiners up to which a message is cut by its cards; each costs two comparisons, and a list of more is no request of
several agents."""
LONGEST_CLAUSE = 600
"""Characters up to which a clause is cut by its cards."""
MOST_CLAUSES = 50
"""Clauses that are counted. Nobody asks for more at once, and each further one costs the loop its time."""
SHORT = 3
"""Words that say something, up to which a clause with "it" or "that" belongs to the one before it."""
FITS = 0.2
"""The closeness from which on words that ask for nothing ("tacos nearby") are a part of their own."""
CALLED_OUT = 0.4
"""The preference from which on words before an exclamation mark are a request: "iced tea offers!" is one."""
WORDED = 0.2
"""The preference below which words are those of no request."""
PREFERRED = 0.3
"""The preference from which on words are clearly for a card."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a message asks for."""

    text: str
    """As the user wrote it."""
    content: frozenset[str]
    """The words that say what it is about."""
    own_words: frozenset[str]
    """Those of them that stand in no other part; all of them where every one does."""
    closeness: Mapping[str, float] = field(default_factory=dict[str, float])
    """Agent -> how close its card is; empty where there are no cards to compare with."""
    preference: Mapping[str, float] = field(default_factory=dict[str, float])
    """Agent -> how much it is preferred: by its card, and by what people ask it."""
    stands_alone: bool = True
    """Whether it asks for something by itself; "tried 4 times" tells, "can I mix flavors" needs what it is about."""
    is_remark: bool = False
    """Whether it tells something that no card is about: "it's pouring outside"."""
    is_for_nobody: bool = False
    """Whether it asks, beside what agents are for, for something that no card is about: "who painted the Mona Lisa"."""

    @property
    def nearest(self) -> str | None:
        """The agent whose card is closest."""
        return max(self.closeness, key=self.closeness.__getitem__, default=None)


def say_enough(cards: Cards) -> bool:
    """Whether cards can be compared with a message."""
    return all(len(content_words(card.description)) >= FEWEST_WORDS for card in cards)


def parts_of(message: str, cards: Cards) -> tuple[Part, ...]:
    """Returns the parts of a message, in order; empty for a message of one clause.

    `cards` may be empty: then the rules alone decide.
    """
    text = message.strip(" \t\n.?!,;")
    if JOINT.search(text) is None:
        return ()
    return _parts(strip_marks(message)[:LONGEST], cards)


@lru_cache(maxsize=256)
def _parts(text: str, cards: Cards) -> tuple[Part, ...]:
    # Whoever sends a page of "a, b, a, b" must not hold up everybody else's turn.
    cutting_cards = cards
    if len(PAIR.findall(text)) > MOST_JOINERS:
        cutting_cards = ()
    clauses_of_message = list(islice(_stretches(text, cutting_cards), MOST_CLAUSES))
    for_nobody = _texts_for_nobody(clauses_of_message, cards)
    stretches = _merge(clauses_of_message, cards, for_nobody)
    if len(stretches) < 2:
        return ()
    contents = [content_words(stretch) for stretch in stretches]
    parts: list[Part] = []
    preferences = [_preference(stretch, cards) for stretch in stretches]
    preferred = [max(preference.values(), default=0.0) for preference in preferences]
    for number, (stretch, content) in enumerate(zip(stretches, contents, strict=True)):
        other_contents = [*contents[:number], *contents[number + 1 :]]
        own_words = content.difference(*other_contents)
        parts.append(
            Part(
                text=stretch,
                content=content,
                own_words=own_words or content,
                closeness=_closeness(stretch, cards),
                preference=preferences[number],
                stands_alone=_stands_alone(stretch, content) or _is_own_request(stretch, cards),
                is_remark=_is_remark(stretch, text, cards, preferred[number], max(preferred)),
                is_for_nobody=stretch in for_nobody,
            )
        )
    return tuple(parts)


def _stands_alone(text: str, content: frozenset[str]) -> bool:
    """Whether a stretch begins as a question or a wish does, and says what it is about."""
    if len(content) < SAYS_ENOUGH or THEY.search(text):
        return False
    # "Any tea offers near me" wishes; "my sister is in town" tells, and is no less of a remark than "we are in town".
    return opens_as_request(text) or words(text[:30])[:1] == ["any"]


def _is_own_request(text: str, cards: Cards) -> bool:
    """Whether a stretch is worded like what people ask one of the agents: "is Dune in", in a library."""
    if not cards:
        return False
    return float(_table_with_requests(cards).wording(text).max()) >= OWN_REQUEST


def _closeness(text: str, cards: Cards) -> dict[str, float]:
    if not cards:
        return {}
    documents = tuple(Document(spoken(card.agent), card.description) for card in cards)
    scores = index(documents).score(text)
    return {card.agent: float(score) for card, score in zip(cards, scores, strict=True)}


def _preference(text: str, cards: Cards) -> dict[str, float]:
    if not cards:
        return {}
    table = _table_with_requests(cards)
    scores = table.score(text) + WORDING * table.wording(text)
    return {card.agent: float(score) for card, score in zip(cards, scores, strict=True)}


def _table_with_requests(cards: Cards) -> Index:
    """Returns the cards ready to be compared with, by what they say and by what people ask their agents."""
    return index(
        tuple(Document(spoken(card.agent), card.description, card.requests) for card in cards)
    )


@dataclass(frozen=True, slots=True)
class _Stretch:
    text: str
    asks: bool
    is_listed: bool = False
    """It is an item of a list."""
    opens_sentence: bool = False
    after_comma: bool = False
    """Nothing but a comma stands before it."""

    @property
    def narrates(self) -> bool:
        """It tells what somebody did, has or wants, as "I want to return a speaker" does."""
        return not self.asks and (words(self.text[:30]) or [""])[0] in NARRATORS

    @property
    def names_nothing(self) -> bool:
        """It says something only beside the request before it: "(2)", "4,975", "ten dollars tops"."""
        if LETTER.search(self.text) is None:
            return True
        return TERMS.fullmatch(self.text.strip()) is not None and not opens_as_request(self.text)

    @property
    def refers_back(self) -> bool:
        """It cannot stand alone: "read it to me", "how do I switch that off"."""
        return BACK.search(self.text) is not None and len(content_words(self.text)) <= SHORT


def _stretches(text: str, cards: Cards) -> Iterator[_Stretch]:
    """Yields the clauses by rule, those that lean to several cards cut between them."""
    end = 0
    for clause in clauses(text, opening=True):
        joiner = text[end : clause.start]
        end = clause.end
        is_question = text[end:].lstrip()[:1] == "?"
        clause = replace(clause, text=HASTE.sub("", THANKS.sub("", clause.text)))
        # Dropped here and not later: what nobody can take must neither be owed nor join another part.
        if not clause.content or PROMPT.search(clause.text) or ASIDE.fullmatch(clause.text):
            continue
        pieces = [piece for piece in _cut(clause.text, cards) if not ASIDE.fullmatch(piece.strip())]
        if not pieces:
            continue
        yield _Stretch(
            pieces[0],
            clause.asks or is_question or WISH.match(clause.text) is not None,
            is_listed=LIST_MARK.search(joiner) is not None,
            opens_sentence=joiner.strip()[:1] in (".", "?", "!"),
            after_comma=joiner.strip() == ",",
        )
        # the rules saw no beginning of a clause here; that each leans to a card of its own is why it was cut
        for piece in pieces[1:]:
            yield _Stretch(piece, asks=True)


def _cut(text: str, cards: Cards) -> list[str]:
    """Cuts a clause where both sides of a joiner lean most clearly to different cards, and those again."""
    if not cards or len(text) > LONGEST_CLAUSE:
        return [text]
    clearest = CUT
    halves: tuple[str, str] | None = None
    for joiner in PAIR.finditer(text):
        head = text[: joiner.start()]
        tail = text[joiner.end() :]
        if "," not in joiner.group() and goes_on(head, tail):
            continue
        gain = _gain(head, tail, cards)
        if gain > clearest:
            clearest = gain
            halves = head, tail
    if halves is None:
        return [text]
    return [*_cut(halves[0], cards), *_cut(halves[1], cards)]


def _gain(head: str, tail: str, cards: Cards) -> float:
    """How much closer each side is to its own card than to the other's; 0 where they are no two requests."""
    left_words = words(head)
    right_words = words(tail)
    if len(left_words) < 2 or len(right_words) < 2:
        return 0.0
    # "approved or still pending", "for the large one or for any" go on with what they began
    if right_words[0] in GOES_ON or right_words[0] in PREPOSITIONS:
        return 0.0
    if not content_words(head) or not content_words(tail):
        return 0.0
    left_closeness = _closeness(head, cards)
    right_closeness = _closeness(tail, cards)
    left_card = max(left_closeness, key=left_closeness.__getitem__)
    right_card = max(right_closeness, key=right_closeness.__getitem__)
    if min(left_closeness[left_card], right_closeness[right_card]) < LEANS:
        return 0.0
    # The weaker side decides: one clear half says nothing about the other.
    return min(
        left_closeness[left_card] - left_closeness[right_card],
        right_closeness[right_card] - right_closeness[left_card],
    )


def _is_remark(
    text: str, message: str, cards: Cards, preferred: float, most_preferred: float
) -> bool:
    """Whether a part is worded like no request, beside one that is: "long bus ride ahead", "Road trip!"."""
    if opens_as_request(text) or most_preferred < PREFERRED:
        return False
    # Descriptions alone do not tell "directions to Harlow" from what nobody is for.
    if not any(card.requests for card in cards) and not tells(text):
        return False
    begin = message.find(text)
    is_exclaimed = begin >= 0 and message[begin + len(text) :].lstrip()[:1] == "!"
    return preferred < (CALLED_OUT if is_exclaimed else WORDED)


def _is_clearly_elsewhere(text: str, cards: Cards) -> bool:
    """Whether a text is plainly about something that no card is about, by what people ask the agents."""
    if not cards:
        return False
    return _table_with_requests(cards).is_clearly_elsewhere(text)


def _texts_for_nobody(stretches: Sequence[_Stretch], cards: Cards) -> frozenset[str]:
    """Returns the texts of the clauses that ask for what no card is about; none where every clause does."""
    texts: set[str] = set()
    if len(stretches) > 1:
        for stretch in stretches:
            is_request = opens_as_request(stretch.text) and not stretch.refers_back
            if is_request and _is_clearly_elsewhere(stretch.text, cards):
                texts.add(stretch.text)
    if len(texts) == len(stretches):
        return frozenset()
    return frozenset(texts)


def _merge(
    stretches: Sequence[_Stretch], cards: Cards, for_nobody: Collection[str] = ()
) -> list[str]:
    """Joins what only tells ("my friend signed up with my link") with the request that it belongs to.

    What is for nobody stands by itself: with a request in one part it would be lost or make that lost.
    """
    closeness = [_closeness(stretch.text, cards) for stretch in stretches]
    preferences = [_preference(stretch.text, cards) for stretch in stretches]
    # where no card knows the words, as in another language, closeness says nothing about what is a request
    cards_tell = any(max(scores.values(), default=0.0) >= FITS for scores in closeness)
    nearest = [max(scores, key=scores.__getitem__, default=None) for scores in closeness]
    whole_parts: list[str] = []
    waiting = ""
    waiting_is_listed = False
    waiting_starts_anew = False
    for number, stretch in enumerate(stretches):
        starts_anew = stretch.is_listed or stretch.opens_sentence or stretch.text in for_nobody
        if waiting and starts_anew:
            whole_parts.append(waiting)
            waiting = ""
        is_listed = stretch.is_listed or (bool(waiting) and waiting_is_listed)
        starts_anew = starts_anew or (bool(waiting) and waiting_starts_anew)
        if waiting:
            text = f"{waiting}, {stretch.text}"
        else:
            text = stretch.text
        waiting = ""
        vague = cards_tell and max(closeness[number].values(), default=0.0) < FITS
        only_tells = tells(stretch.text)
        if not stretch.asks and number + 1 < len(stretches):
            following = stretches[number + 1]
            leads_up = stretch.narrates and following.after_comma
            leads_up = leads_up or _names_topic(stretch, following)
            shares_card = cards_tell and nearest[number] == nearest[number + 1]
            if leads_up or (only_tells and (vague or shares_card)):
                waiting = text
                waiting_is_listed = is_listed
                waiting_starts_anew = starts_anew
                continue
        same_card = cards_tell and number > 0 and nearest[number] == nearest[number - 1]
        goes_on = vague or (only_tells and same_card)
        goes_on = goes_on or (stretch.after_comma and stretch.narrates)
        goes_on = goes_on and not stretch.asks and not is_listed
        # "The hours of the shop next to it" points at a place, and asks somebody else all the same.
        is_of_others = number > 0 and _prefer_different_cards(*preferences[number - 1 : number + 1])
        refers_back = stretch.refers_back and not starts_anew and not is_of_others
        belongs_to_the_last = goes_on or refers_back
        if whole_parts and whole_parts[-1] in for_nobody:
            belongs_to_the_last = False
        if whole_parts and (belongs_to_the_last or stretch.names_nothing):
            whole_parts[-1] = f"{whole_parts[-1]}, {text}"
            continue
        whole_parts.append(text)
    if waiting:
        whole_parts.append(waiting)
    return whole_parts


def _prefer_different_cards(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Whether each of two texts is clearly for a card of its own."""
    if min(max(left.values(), default=0.0), max(right.values(), default=0.0)) < PREFERRED:
        return False
    return max(left, key=left.__getitem__) != max(right, key=right.__getitem__)


def _names_topic(stretch: _Stretch, following: _Stretch) -> bool:
    """Whether a sentence begins with what its question is about: "Maple syrup, what's cheap?"."""
    if not (stretch.opens_sentence and following.after_comma and following.asks):
        return False
    return len(content_words(following.text)) <= SHORT


SPOKEN_OF = 2
"""Words of a part that an answer must hold, at least, to speak of it: one alone ("points") stands in many answers."""
DENIES = re.compile(
    r"\bno\b[^.!?]{0,200}?(?:\b(?:for|called|named|fits?|matche?s?) [\"“]|\b(?:were|was) found)",
    re.IGNORECASE,
)
"""A sentence that speaks of something only to say that there is nothing on it."""
WORDING = 0.3
"""What it counts beside closeness that a part is worded like what people ask an agent."""
FITS_CLEARLY = 0.15
"""The preference from which on somebody who was not asked fits a part clearly."""
CLOSER = 0.05
"""How much more they must be preferred than those who were asked for that part and others at once."""
MUCH_CLOSER = 0.14
"""The same where as many agents were asked as there are parts, so that each may well have one."""
REMARK_CLOSER = 0.29
"""The same for what does not stand alone. These three are chosen on data/cases: few parts lost, few false alarms."""


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
    calls_of_their_own: set[str] = set()
    for call in calls:
        if _note_call(call, states):
            calls_of_their_own.add(call.call_id)
        elif in_own_words:
            free_calls.append(call)
    open_states = [state for state in states if not state.agents]
    can_be_told = _assign(free_calls, open_states)
    if can_be_told:
        for state in open_states:
            state.is_owed = not state.agents and not state.part.is_remark
    _mark_misfits(states)
    for state in states:
        if state.part.is_for_nobody and not state.has_own_call:
            state.is_owed = True
    lines: list[MessagePart] = []
    unnamed = -len(free_calls)
    for state in states:
        is_spoken_of = _is_spoken_of(state.part, outcomes, calls_of_their_own)
        if not state.agents and not is_spoken_of and not state.part.is_remark:
            unnamed += 1
        is_owed = state.is_owed and not is_spoken_of
        agents = () if is_owed else tuple(dict.fromkeys(state.agents))
        lines.append(MessagePart(text=state.part.text, asked=agents, owed=is_owed))
    names = tuple(line.text for line in lines if line.owed)
    texts_for_nobody = {state.part.text for state in states if state.part.is_for_nobody}
    for_nobody = tuple(name for name in names if name in texts_for_nobody)
    count = len(names)
    if not can_be_told:
        # somebody was asked for some of the open parts in other words; for which of them cannot be told
        count += max(0, unnamed)
    return Coverage(tuple(lines), LeftOut(count=count, parts=names, for_nobody=for_nobody))


def _note_call(call: AgentCall, states: Sequence[_PartState]) -> bool:
    """Notes a call with the parts whose words it carries; False where it carries those of none."""
    query_words = content_words(call.query)
    carried: list[_PartState] = []
    for state in states:
        part_words = state.part.own_words
        carries_most = 2 * len(part_words & query_words) >= len(part_words)
        # Of "any games? bored out of my mind here" a call need not pass on the second sentence.
        is_all_of_it = len(query_words) >= SPOKEN_OF and query_words <= state.part.content
        if carries_most or is_all_of_it:
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
    # what only tells something rides along with a request, and lacks no agent of its own
    requests = [state for state in sharing if not tells(state.part.text)]
    lacking = len(requests) - len(sharing_agents)
    bar = CLOSER if lacking > 0 else MUCH_CLOSER
    gaps: list[tuple[float, _PartState]] = []
    for state in sharing:
        best_other = 0.0
        best_asked = 0.0
        for agent, preference in state.part.preference.items():
            if agent not in asked_agents:
                best_other = max(best_other, preference)
            elif agent in state.agents:
                best_asked = max(best_asked, preference)
        bar_of_part = bar if state.part.stands_alone else REMARK_CLOSER
        if best_other >= FITS_CLEARLY and best_other - best_asked > bar_of_part:
            gaps.append((best_other - best_asked, state))
    gaps.sort(key=lambda gap: gap[0], reverse=True)
    # each agent that was asked has at least one part: never are all of them owed
    for _, state in gaps[: max(lacking, len(sharing) - 1)]:
        state.is_owed = True


def _is_spoken_of(part: Part, outcomes: Sequence[Outcome], calls_of_their_own: set[str]) -> bool:
    """Whether an answer speaks of a part, beyond saying that there is nothing on it.

    Whoever was asked for another part in its own words may name the same shop by the way.
    """
    for outcome in outcomes:
        if not isinstance(outcome, Answer):
            continue
        sentences = SENTENCE_END.split(outcome.text)
        statements = [sentence for sentence in sentences if not DENIES.search(sentence)]
        common_words = part.content & content_words(" ".join(statements))
        needed = len(part.content) * (3 / 4 if outcome.call_id in calls_of_their_own else 1 / 2)
        if part.closeness.get(outcome.agent, FITS) < FITS:
            # So may whoever is about something else.
            needed += 0.5
        if len(common_words) >= max(SPOKEN_OF, needed):
            return True
    return False
