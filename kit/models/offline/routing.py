"""Which tools a request is for: the decision of the offline stand-in, from descriptions and the conversation alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kit.core.language.clauses import OPENERS, Clause, clauses
from kit.core.language.retry import retries
from kit.core.language.small_talk import asks, small_talk
from kit.core.language.words import content_words, spoken, words
from kit.core.model import EmbedderName
from kit.models.offline import english
from kit.models.offline.conversation import EARLIER, Conversation, Tool
from kit.models.offline.extraction import SEARCHING, names_a_thing, numbers
from kit.models.offline.json_schema import kind_of, properties_of
from kit.models.offline.similarity import (
    DOUBT,
    OWN_REQUEST,
    UNLIKE,
    Document,
    Index,
    content,
    index,
)
from kit.models.offline.wording import Floats

RELEVANT = 0.08
"""The score below which a clause says nothing about any tool."""
MIDWAY = 0.1
"""What a further tool must gain beside what is enough (`Scale.clear`) while another one
is in play: most long replies go on with one matter."""
SENTENCE = 0.08
"""What it must gain beside that on a sentence of its own: the next sentence mostly explains the one before it."""
TWO_REQUESTS = 0.5
"""How much more each side of a stretch must be preferred by a tool of its own than by the other's, to be two requests:
most questions hold a word that another tool is asked with."""
BARE = 0.5
"""What is asked beside that where nothing stands between them. With the weight of the edges it was chosen on pairs of
single requests written one after the other: two in three are cut in the right place, and one request in fifty is."""
EDGES = 0.15
"""The weight of how often requests end and begin with the words on either side of a cut."""
UNLIKELY = -0.3
"""The edge below which a place with nothing between is not looked at."""
FEWEST_WORDS = 3
"""Words that each side must have."""
FEWEST_ASKED = 5
"""Words that a question must have before a cut with nothing between: "which stores" goes on with "does it work at"."""
MOST_WORDS = 60
"""Words of a stretch in which a second request is looked for: each place costs two comparisons."""
BETWEEN = re.compile(r"(?<!\s)\s+(?:(?:and|n|y|&)\s+)?(?=[^\W\d])", re.IGNORECASE)
"""Where a second request may begin: after a joiner that the rules for clauses leave alone, or after any word."""
SECOND = re.compile(
    r"(?<!\s)\s+(?:(?:and|n|y|&)\s|(?:what|whats|what's|which|how|where's|wheres|cuál|cuánto|cuántos)\s)",
    re.IGNORECASE,
)
"""Such a joiner, or a question."""
ASKED = re.compile(r"(?:at\s|in\s)?(?:what|which|how|whose|cuál|cuánto|cuántos)\b", re.IGNORECASE)
LEADS = re.compile(
    r""":\Z|\b(?:know|tell|me|see|check|out|say|whether|or|and|to|of|at|in|for|from|about|with|by|on|than
        |is|are|was)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""Before a question these make it a part of the same sentence: "I need to know how", "at which stores"."""
PREDICATE = re.compile(
    r"(?:(?:did|does|wo|ca)n['’]?t|never|keeps?|still|came|went|says|got\s+\w+ed)\b", re.IGNORECASE
)
"""Says something of the words before it: "my receipt from friday" did not scan, or got rejected."""
MOST_REFINED = 9
"""Words of a message that only says how the answer before it should have been."""
LONGEST_JOINER = 8
"""Characters that may stand between two clauses that are given in one piece."""
SEVERAL = 0.3
"""The further head start of what is in play where one word is asked of several things: nobody else knows which."""
REFINED = 1.0
"""The further head start of what is in play where a request only says how its answer should have been: "anything
cheaper" is worded like what other tools are asked, and is for none of them."""
CERTAIN = 0.2
"""How much more a request that points back must be worded like what is asked elsewhere, to be for nobody here."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is known when a request is routed."""

    request: str
    tools: tuple[Document, ...]
    """In the order they are bound."""
    in_play: frozenset[int] = frozenset()
    """Positions of the tools called in the previous turn."""
    last_reply: str = ""
    """The assistant's last words."""
    embedder: EmbedderName = "words"

    @property
    def table(self) -> Index:
        return index(self.tools, self.embedder)


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
    """True when a request leans on what was said before it: an answer to a question, a pronoun, a continuation.

    What is carried over from earlier turns is carried for such requests alone; every other one stands on its own.
    """
    meaning = content_words(request)
    if len(meaning) > 6:
        return False
    if len(meaning) <= 4 and _may_answer(request, last_reply):
        return True
    return _refers(request) or _is_scrap(request)


def _may_answer(request: str, last_reply: str) -> bool:
    """Whether a request can answer what the assistant asked last: "500 points" can, "how many do I have" cannot."""
    return asks(last_reply) and not english.OPEN_QUESTION.match(request)


def _refers(request: str) -> bool:
    """Whether a request names something only by a pronoun or a link to what was said."""
    # "Got it." is no reference.
    matter = " ".join(clause.text for clause in clauses(request)) or request
    if english.REFERENCE.search(english.POINTLESS.sub(" ", matter)):
        return True
    if refines(request):
        return True
    return english.LINK.search(matter) is not None


def refines(request: str) -> bool:
    """Whether a request only says how the answer before it should have been: "anything cheaper"."""
    return len(words(request)) <= MOST_REFINED and english.REFINEMENT.match(request) is not None


def _is_scrap(request: str) -> bool:
    """Whether a request is a few words that are no sentence, such as "decaf" or "in Leeds"."""
    few_words = len(content_words(request)) <= 2
    return few_words and bool(request.strip()) and not is_sentence(request)


def _leans_back(situation: Situation) -> bool:
    """Whether a request leans on what was said before it, and is not a request of its own in few words."""
    request = situation.request
    last_reply = situation.last_reply
    if not situation.in_play:
        return False
    if asks_attributes(request, last_reply):
        return True
    if not points_back(request, last_reply):
        return False
    if _may_answer(request, last_reply) or _refers(request):
        return True
    return float(situation.table.wording(request).max()) < OWN_REQUEST


def is_for_nobody(
    request: str, last_reply: str, table: Index, *, leans: bool, doubt: float = DOUBT
) -> bool:
    """Whether a request asks for something that no tool of a table is for.

    `leans`: it points back at something that was said. `doubt`: of one that does not, as `Index.is_elsewhere` takes it.
    """
    if not leans:
        has_words = any(sign.isalpha() for sign in request)
        return not has_words or table.is_elsewhere(request, doubt=doubt)
    if _may_answer(request, last_reply) or retries(request) or english.LINK.search(request):
        return False
    if (
        asks_attributes(request, last_reply)
        or refines(request)
        or not content_words(request) - english.FAINT
    ):
        return False
    return table.is_elsewhere(request, doubt=-CERTAIN)


def _without_clauses_for_nobody(request: str, table: Index) -> str:
    """Returns a request without its clauses that are plainly for no tool: "finals week is killing me"."""
    pieces = clauses(request, opening=True)
    if len(pieces) < 2:
        return request
    for_tools: list[Clause] = []
    for piece in pieces:
        if _refers(piece.text) or not table.is_clearly_elsewhere(piece.text):
            for_tools.append(piece)
    if not for_tools or len(for_tools) == len(pieces):
        return request
    return ". ".join(piece.text for piece in for_tools)


def asks_for_act(request: str) -> bool:
    """Whether somebody wants something done in the world: "book me a table", not "what does a table cost"."""
    return any(english.ACT.match(clause.text) for clause in clauses(request))


def begins_act(request: str) -> bool:
    """Whether a request begins with the verb of an act, and points at nothing that was said before."""
    if english.REFERENCE.search(request):
        return False
    for word in words(request):
        if word in english.DOING or word not in english.BESIDE_ACT:
            return word in english.DOING
    return False


def inquires(request: str) -> bool:
    """Whether nobody wants anything done: whoever asks whether there is wormer has ordered none."""
    pieces = clauses(request)
    return bool(pieces) and all(english.INQUIRY.match(piece.text) for piece in pieces)


def acts(tool: Tool, names: frozenset[str]) -> bool:
    """Whether a tool does something in the world. `names`: those of which the deck says that they may.

    One that says of itself that it looks something up does not, though it may ask its user first.
    """
    if tool.name not in names:
        return False
    return not any(english.LOOKS_UP.match(text) for text in (tool.label, tool.description))


def not_understood(
    tool: Tool, text: str, calls: Sequence[Mapping[str, Any]], requests: Sequence[str]
) -> str:
    """Returns the first thing in a text that an act cannot be told by, quoted; empty where all of it is understood.

    A misread lookup costs an answer; a misread act is done. So an act has to be the whole of what a text says: its
    verb, the arguments of the calls that would be made, the words of the tool and of what people ask its agent
    (`requests`), and little words. Text that is written for a person to read may say anything.
    """
    fields = properties_of(tool.schema)
    vocabulary = {tool.label, tool.description, *requests, *map(spoken, fields)}
    for name, field in fields.items():
        vocabulary.add(str(field.get("description") or ""))
        is_text = kind_of(field) == "string" and not {"enum", "pattern", "format"} & field.keys()
        if is_text and not names_a_thing(name) and SEARCHING.isdisjoint(spoken(name).split()):
            return ""
    values = [str(value) for arguments in calls for value in arguments.values()]
    stems = {word.rstrip("s") for phrase in (*vocabulary, *values) for word in words(phrase)}
    stems -= {word.rstrip("s") for word in english.TURNS}
    for number in numbers(text):
        if number not in numbers(" , ".join(values)):
            return f"“{number:g}”"
    for word in words(text):
        is_number = any(sign.isdigit() for sign in word) or word in english.NUMERALS
        is_little = word in english.BESIDE_ACT | english.DOING
        if not (is_number or is_little or word.rstrip("s") in stems):
            return f"“{word}”"
    return ""


def leans(talk: Conversation) -> bool:
    """Whether a request leans on an earlier turn, of this agent or of another that is told of."""
    earlier = talk.history or talk.ids or talk.referent or EARLIER in talk.system
    return bool(earlier) and points_back(talk.request, talk.last_reply)


def why_not_act(
    talk: Conversation,
    tool: Tool,
    text: str,
    others: Sequence[str],
    calls: Sequence[Mapping[str, Any]],
    requests: Sequence[str],
) -> str | None:
    """Says why an act is not done; None where a request says the whole of it and, beside its `others` parts, no more.

    `text`: the request with what it points at in front. `requests`: what people ask the agent.
    """
    # What was asked back for is the rest of the act: "Ana", after "For that I need one of these: Ana, Ben".
    is_rest = bool(talk.so_far) and text.startswith(talk.so_far)
    goes_on = bool(talk.before) and text.startswith(talk.before) and not is_rest
    if talk.open_question:
        goes_on = points_back(talk.open_question)
    if goes_on:
        # "No, 150 instead" is only whole with the words of an earlier message.
        return talk.phrases.held_back
    # A condition of the act may have been left out of the text as a remark.
    wording = text if is_rest else talk.open_question or talk.request
    wording = english.COURTESY.sub(" ", wording)
    for other in others:
        for clause in clauses(other):
            wording = wording.replace(clause.text, " ")
    foreign_word = not_understood(tool, wording, calls, requests)
    if foreign_word:
        return talk.phrases.not_understood.format(words=foreign_word)
    return None


def with_questions_apart(decision: Routes, table: Index, lookups: Sequence[int]) -> Routes:
    """Returns a decision in which no act has a question among its words: the closest lookup is asked that.

    Words beside an act that it understands would else be gone unsaid: "how much is left, and send 20 euros to Ben".
    `lookups`: the positions of the tools that do nothing in the world.
    """
    if not lookups:
        return decision
    texts: dict[int, list[str]] = {}
    scores: dict[int, float] = {}
    for part in decision.parts:
        pieces = [clause.text for clause in clauses(part.text)]
        questions = [piece for piece in pieces if _is_question(piece)]
        is_mixed = part.tool not in lookups and 0 < len(questions) < len(pieces)
        if not is_mixed:
            pieces = [part.text]
        for piece in pieces:
            tool = part.tool
            score = part.score
            if is_mixed and piece in questions:
                closeness = [float(score) for score in table.score(piece)]
                tool = max(lookups, key=closeness.__getitem__)
                score = closeness[tool]
            texts.setdefault(tool, []).append(piece)
            scores.setdefault(tool, score)
    parts = [Part(tool, ". ".join(pieces), scores[tool]) for tool, pieces in texts.items()]
    return Routes(tuple(parts), len(parts))


def _is_question(clause: str) -> bool:
    """Whether a clause only wants to know something: "how much is left", "tell me my balance"."""
    if english.OPEN_QUESTION.match(clause):
        return True
    return english.LOOKS_UP.match(clause) is not None and not begins_act(clause)


def is_elliptic(request: str) -> bool:
    """Whether a request names next to nothing itself, such as "are they going to expire?"."""
    return len(content_words(request) - english.FAINT) <= 1


def asks_attributes(request: str, last_reply: str) -> bool:
    """Whether a request asks how to reach a thing, or what it costs, and names none but what was told of: "the phone
    number, please"."""
    subject = content_words(english.REFERENCE.sub(" ", request)) - english.FAINT - english.POLITE
    attributes = subject & english.ATTRIBUTES
    return bool(attributes) and subject - attributes <= content_words(last_reply)


def is_of_several(request: str) -> bool:
    """Whether a request asks one word of several things that were shown: "are they open"."""
    return is_elliptic(request) and english.SEVERAL_THINGS.search(request) is not None


def names_nothing(request: str) -> bool:
    """Whether a request names nothing itself and only points: "the cheapest", "and that one"."""
    return not content_words(english.REFERENCE.sub(" ", request))


def is_sentence(request: str) -> bool:
    """Whether a request begins as a question, a wish or a statement does."""
    request_words = [word for word in words(request) if word != "please"]
    return bool(request_words) and request_words[0] in OPENERS


def decide(situation: Situation, cap: int) -> Decision:
    """Parts in the order asked, at most one a tool and at most `cap` of them (the closest stay)."""
    if small_talk(situation.request, situation.last_reply):
        return SmallTalk()
    if not situation.tools:
        return Unfit()
    table = situation.table
    request = _without_clauses_for_nobody(situation.request, table)
    situation = replace(situation, request=request)
    head_start = _head_start(situation)
    closeness = table.score(situation.request)
    fitting = closeness + head_start
    wording = table.wording(situation.request)
    if _leans_back(situation):
        # "And the next one?" is worded like requests of agents that nobody has spoken of, and few words like nothing.
        is_told = (head_start > 0) & (not _is_scrap(situation.request))
        wording = np.where(is_told, np.maximum(wording, 0.0), 0.0)
    preferred = fitting + wording
    first = int(preferred.argmax())
    matters: list[_Matter] = []
    for clause in clauses(situation.request, opening=not situation.in_play):
        if clause.content:
            for part in _requests_of(clause, situation.request, table):
                matters.append(_matter(part, table, head_start))
    if len(matters) > 1:
        bar = table.scale.clear
        if head_start.any():
            bar += MIDWAY
        groups = _groups(matters, first, bar)
        if len(groups) > 1:
            return _routes(situation.request, groups, cap)
    return _single(situation, closeness, head_start, first)


def _requests_of(clause: Clause, message: str, table: Index) -> list[Clause]:
    """Returns the requests of a clause in order: two or more where somebody wrote them without a mark between."""
    clearest = 0.0
    cut: tuple[int, int] | None = None
    if len(words(clause.text)) > MOST_WORDS:
        return [clause]
    for gap in BETWEEN.finditer(clause.text):
        head = clause.text[: gap.start()]
        tail = clause.text[gap.end() :]
        has_joiner = SECOND.match(clause.text, gap.start()) is not None
        bar = TWO_REQUESTS
        fewest = FEWEST_WORDS
        if not has_joiner:
            bar += BARE
            if ASKED.match(head):
                fewest = FEWEST_ASKED
        if len(words(head)) < fewest or len(words(tail)) < FEWEST_WORDS:
            continue
        if not gap.group().strip() and (LEADS.search(head) or PREDICATE.match(tail)):
            continue
        edge = table.edge(head, tail)
        # Most places are done with before anything is compared.
        if not has_joiner and edge < UNLIKELY:
            continue
        gain = _apart(head, tail, table) + EDGES * edge - bar
        if gain > clearest:
            clearest = gain
            cut = gap.span()
    if cut is None:
        return [clause]
    # Its own text has no blanks and marks at its ends, the stretch that it was cut from may.
    begin = message.index(clause.text, clause.start)
    head_text = clause.text[: cut[0]]
    tail_text = clause.text[cut[1] :]
    head_clause = Clause(clause.start, begin + cut[0], head_text, clause.has_joiner)
    tail_clause = Clause(begin + cut[1], clause.end, tail_text, has_joiner=True)
    requests = _requests_of(head_clause, message, table)
    return [*requests, *_requests_of(tail_clause, message, table)]


def _apart(head: str, tail: str, table: Index) -> float:
    """Returns how much each of two texts is preferred by a tool of its own; 0 where one tool prefers both."""
    of_head = table.score(head) + table.wording(head)
    of_tail = table.score(tail) + table.wording(tail)
    first = int(of_head.argmax())
    second = int(of_tail.argmax())
    return float(min(of_head[first] - of_head[second], of_tail[second] - of_tail[first]))


@dataclass(frozen=True, slots=True)
class _Matter:
    """One clause of a request, and how much each tool is preferred for it."""

    clause: Clause
    scores: Floats
    weight: float
    """How much the clause counts: little for one of few words, nothing for one that is about no tool."""

    def gains(self, tools: Sequence[int]) -> Floats:
        """What each further tool would gain for it over the best of `tools`."""
        best = max(float(self.scores[tool]) for tool in tools)
        penalty = 0.0 if self.clause.has_joiner else SENTENCE
        return self.weight * (self.scores - best) - penalty


def _matter(clause: Clause, table: Index, head_start: Floats) -> _Matter:
    closeness = table.score(clause.text)
    wording = table.wording(clause.text)
    weight = 0.0
    if wording.max() >= OWN_REQUEST:
        # "Is Dune in" has one word of content, and is what people ask the agent.
        weight = 1.0
    elif closeness.max() >= RELEVANT:
        weight = min(1.0, 0.4 * len(content(clause.text)))
    return _Matter(clause, closeness + wording + head_start, weight)


def _head_start(situation: Situation) -> Floats:
    """What the tools in play are given beforehand: little when the request stands on its own."""
    head_start = np.zeros(len(situation.tools), np.float32)
    if not situation.in_play:
        return head_start
    request = situation.request
    scale = situation.table.scale
    start = scale.stay
    if _may_answer(request, situation.last_reply):
        start += scale.question
    if _leans_back(situation):
        is_pulled = is_elliptic(request) and not _is_of_others(situation)
        is_pulled = is_pulled or asks_attributes(request, situation.last_reply)
        start += scale.elliptic if is_pulled else scale.back
        if is_of_several(request):
            start += SEVERAL
        if refines(request):
            start += REFINED
    head_start[list(situation.in_play)] = start
    return head_start


def _is_of_others(situation: Situation) -> bool:
    """Whether the one word of a request is a word of tools that are not in play: "what are its terms", of an offer
    that the shop has shown. Of several things nobody else knows which are meant."""
    if not english.ONE_THING.search(situation.request):
        return False
    subject = content_words(english.REFERENCE.sub(" ", situation.request)) - english.FAINT
    return situation.table.belongs_elsewhere(subject, situation.in_play)


def _single(situation: Situation, scores: Floats, head_start: Floats, best: int) -> Decision:
    """One call, or none where the request is for nobody here."""
    request = situation.request
    last_reply = situation.last_reply
    leans = bool(situation.in_play) and (_may_answer(request, last_reply) or _leans_back(situation))
    if not leans and float(scores.max()) < UNLIKE:
        return Unfit()
    if is_for_nobody(request, last_reply, situation.table, leans=leans):
        return Unfit()
    if leans and float((scores + head_start).max()) < situation.table.scale.fits:
        best = max(situation.in_play, key=lambda position: (float(scores[position]), -position))
    return Routes((Part(best, request.strip(), float(scores[best])),), 1)


def _groups(matters: Sequence[_Matter], first: int, bar: float) -> dict[int, list[_Matter]]:
    """Adds tools while each gains enough on a clause of its own; every clause goes to the tool it prefers among those.

    `bar`: what is enough.
    """
    tools = [first]
    while len(tools) < len(matters):
        gains = np.max([matter.gains(tools) for matter in matters], axis=0)
        best = int(gains.argmax())
        if gains[best] < bar:
            break
        tools.append(best)
    groups: dict[int, list[_Matter]] = {}
    for matter in matters:
        if matter.weight > 0:
            tool = max(tools, key=lambda tool: float(matter.scores[tool]))
            groups.setdefault(tool, []).append(matter)
    return groups


def _routes(request: str, groups: Mapping[int, Sequence[_Matter]], cap: int) -> Routes:
    parts: list[Part] = []
    for tool, matters in groups.items():
        text = _text(request, [matter.clause for matter in matters])
        score = max(float(matter.scores[tool]) for matter in matters)
        parts.append(Part(tool, text, score))
    closest = sorted(parts, key=lambda part: -part.score)[:cap]
    return Routes(tuple(part for part in parts if part in closest), len(parts))


def _text(request: str, matters: Sequence[Clause]) -> str:
    """Clauses as the user wrote them, in one piece where they are neighbours."""
    stretches: list[tuple[int, int]] = []
    for clause in matters:
        if stretches and clause.start - stretches[-1][1] <= LONGEST_JOINER:
            stretches[-1] = (stretches[-1][0], clause.end)
        else:
            stretches.append((clause.start, clause.end))
    return " ".join(request[start:end].strip(" ,;") for start, end in stretches)
