"""What an answer owes, and the fixed words for it: for parts that failed, parts that were left out, reservations."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kit.compose.locale import Locale
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.speech import Text
from kit.core.display.agent_name import words_of_id
from kit.core.display.turn_parts import TurnStatus
from kit.core.language.retry import retries
from kit.core.language.small_talk import asks_for_help, bare_answer, takes_back
from kit.core.language.tongue import tongue_of
from kit.core.model import ModelSpec
from kit.core.outcome import NOTHING_LEFT, Answer, Failure, LeftOut, quoted
from kit.core.transcript import transcript
from kit.models.json_prose import prose
from kit.runtime.answer.clauses import loses, roots
from kit.runtime.answer.raw_text import scrub
from kit.runtime.context import RunContext, TurnState

MOST_NAMES = 12
"""So many parts are named in one sentence: all of any deck with a dozen agents. Nobody reads a list of 36."""
LONGEST_YES = 40
"""Characters of a message up to which it may be a bare yes or no: nearly all are longer, and are not looked at."""


@dataclass(frozen=True, slots=True)
class Owed:
    """What an answer owes its user."""

    failed: tuple[str, ...] = ()
    """Agents with a request that failed and has no answer."""
    nothing_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Of the agents that failed, those that have nothing on their requests, with the words of these."""
    over_cap: tuple[str, ...] = ()
    """Agents that the cap left out, and that did not fail as well."""
    left_out: LeftOut = NOTHING_LEFT
    """Parts of the message that no call was made for."""
    with_reservation: tuple[Answer, ...] = ()
    partly: frozenset[str] = frozenset()
    """Agents that failed or were left out and also answered another call."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Agent -> what people read in place of its id, of each that answered, failed or was left out."""

    def __bool__(self) -> bool:
        return bool(self.failed or self.over_cap or self.left_out.count or self.with_reservation)

    @property
    def agents(self) -> tuple[str, ...]:
        """Agents that something is owed for, each once: failed, left out, with a reservation."""
        cautious = [answer.agent for answer in self.with_reservation]
        return tuple(dict.fromkeys([*self.failed, *self.over_cap, *cautious]))

    def label_of(self, agent: str) -> str:
        """Returns what people read in place of an agent's id."""
        return self.labels.get(agent) or words_of_id(agent)


def owed_by(turn: TurnState) -> Owed:
    """Returns what a turn owes."""
    unanswered = turn.unanswered()
    failed = dict.fromkeys(failure.agent for failure in unanswered.failures)
    over_cap = dict.fromkeys(call.agent for call in unanswered.over_cap if call.agent not in failed)
    answers = [outcome for outcome in turn.outcomes if isinstance(outcome, Answer)]
    answering_agents = {answer.agent for answer in answers}
    return Owed(
        failed=tuple(failed),
        nothing_on=_nothing_on(unanswered.failures, turn),
        over_cap=tuple(over_cap),
        left_out=turn.coverage().left_out,
        with_reservation=tuple(answer for answer in answers if answer.reservation),
        partly=frozenset(answering_agents & {*failed, *over_cap}),
        labels={agent: turn.label_of(agent) for agent in (*failed, *over_cap, *answering_agents)},
    )


def _nothing_on(failures: Sequence[Failure], turn: TurnState) -> dict[str, tuple[str, ...]]:
    """Returns what was asked of agents all of whose failures are that they have nothing on it, by agent."""
    requests: dict[str, list[str]] = {}
    others: set[str] = set()
    for failure in failures:
        request = turn.words_asked(failure.call_id)
        if request and failure.reason == "unanswerable":
            requests.setdefault(failure.agent, []).append(quoted(request))
        else:
            others.add(failure.agent)
    return {agent: tuple(words) for agent, words in requests.items() if agent not in others}


def apology(owed: Owed, locale: Locale, wanted: Collection[str] | None = None) -> str:
    """The fixed sentences for what failed and what was left out; `wanted` limits them to these agents
    and names of parts."""
    words = locale.sentences
    failed: list[str] = []
    failed_partly: list[str] = []
    nothing_on: list[str] = []
    for agent in owed.failed:
        if wanted is not None and agent not in wanted:
            continue
        if agent in owed.nothing_on:
            requests = enumerate_names(owed.nothing_on[agent], words.or_, words.more_names)
            nothing_on.append(words.nothing_on.format(part=owed.label_of(agent), requests=requests))
        elif agent in owed.partly:
            failed_partly.append(owed.label_of(agent))
        else:
            failed.append(owed.label_of(agent))
    for_nobody: list[str] = []
    left_out: list[str] = []
    for name in _names_left_out(owed, locale, wanted):
        if name in owed.left_out.names_for_nobody:
            for_nobody.append(name)
        else:
            left_out.append(name)
    sentences: list[str] = []
    if failed:
        names = enumerate_names(failed, words.or_, words.more_names)
        sentences.append(words.failed.format(parts=names))
    if failed_partly:
        names = enumerate_names(failed_partly, words.or_, words.more_names)
        sentences.append(words.failed_partly.format(parts=names))
    sentences += nothing_on
    if left_out:
        several = len(left_out) > 1 or owed.left_out.unnamed > 1
        sentence = words.left_out_several if several else words.left_out
        names = enumerate_names(left_out, words.and_, words.more_names)
        sentences.append(sentence.format(parts=names))
    if for_nobody:
        names = enumerate_names(for_nobody, words.or_, words.more_names)
        sentences.append(words.for_nobody.format(parts=names))
    return " ".join(sentences)


def _names_left_out(owed: Owed, locale: Locale, wanted: Collection[str] | None) -> list[str]:
    names: list[str] = []
    for agent in owed.over_cap:
        if wanted is None or agent in wanted:
            names.append(owed.label_of(agent))
    for number, name in enumerate(owed.left_out.names):
        if wanted is not None and name not in wanted:
            continue
        if number < len(owed.left_out.parts):
            names.append(name)
        elif owed.left_out.unnamed == 1:
            names.append(locale.sentences.one_more_part)
        else:
            names.append(locale.sentences.more_parts.format(count=owed.left_out.unnamed))
    return names


def reservations(answers: Iterable[Answer], turn: TurnState) -> str:
    """The fixed sentences for answers that hold with a reservation."""
    locale = turn.locale
    sentences: dict[str, None] = {}
    for answer in answers:
        reservation = _sentence(locale.reservation(answer.reservation or ""))
        sentence = locale.sentences.reserved.format(
            part=turn.label_of(answer.agent), reservation=reservation
        )
        sentences[sentence] = None
    return " ".join(sentences)


def rescue(ctx: RunContext) -> str:
    """Returns a reply that no model wrote: the answers in hand, then the fixed sentences for the rest."""
    if is_unanswerable(ctx.turn):
        return nobody_can(ctx)
    owed = owed_by(ctx.turn)
    paragraphs, unreadable_agents = _answers_in_hand(ctx)
    if unreadable_agents:
        owed = replace(owed, failed=(*owed.failed, *unreadable_agents))
    paragraphs += _acts_in_doubt(ctx.turn, paragraphs)
    sentences = apology(owed, ctx.turn.locale)
    if sentences:
        paragraphs.append(sentences)
    return "\n\n".join(paragraphs) or ctx.turn.locale.sentences.nothing


def stopped(ctx: RunContext, status: TurnStatus) -> str:
    """Returns what a turn has to say that its user stopped, marked as a part, or that was interrupted.

    The composition begun stands where it passes on every answer in hand; else the answers stand in its place.
    """
    turn = ctx.turn
    sentences = turn.locale.sentences
    text = transcript(turn.log.events).answer
    answers = [outcome for outcome in turn.outcomes if isinstance(outcome, Answer)]
    if text and all(_is_passed_on(answer, text, answers, turn) for answer in answers):
        paragraphs = [text]
    else:
        paragraphs, _ = _answers_in_hand(ctx)
    paragraphs += _acts_in_doubt(turn, paragraphs)
    if status == "interrupted":
        return "\n\n".join([*paragraphs, sentences.interrupted])
    if not paragraphs:
        return sentences.stopped_early
    return "\n\n".join([*paragraphs, sentences.stopped])


def _acts_in_doubt(turn: TurnState, paragraphs: Sequence[str]) -> list[str]:
    """Returns what is to be said of acts that have not come back, where their agents were left behind."""
    text = "\n".join(paragraphs)
    sentences = [act.sentence(turn.locale) for act in turn.acts.in_state("started")]
    return [sentence for sentence in sentences if sentence not in text]


def _answers_in_hand(ctx: RunContext) -> tuple[list[str], list[str]]:
    """Returns the answers as paragraphs, with their reservations last, and the agents whose answer nobody may read."""
    paragraphs: dict[str, None] = {}
    cautious: list[Answer] = []
    unreadable_agents: list[str] = []
    for outcome in ctx.turn.outcomes:
        if not isinstance(outcome, Answer):
            continue
        text = scrub(prose(outcome.text), ctx)
        if not text:
            unreadable_agents.append(outcome.agent)
            continue
        paragraphs[text] = None
        reservation = (outcome.reservation or "").rstrip(".").lower()
        if reservation and reservation not in text.lower():
            cautious.append(outcome)
    if cautious:
        paragraphs[reservations(cautious, ctx.turn)] = None
    return list(paragraphs), unreadable_agents


def _is_passed_on(answer: Answer, text: str, answers: Sequence[Answer], turn: TurnState) -> bool:
    """Whether a composition that was broken off passes on an answer.

    `loses` gives an answer of few words the benefit of the doubt; here it is passed on only when a word of it is out.
    """
    words = prose(answer.text)
    if words in text:
        return True
    if roots(words).isdisjoint(roots(text)):
        return False
    requests = [call.query for call in turn.calls]
    siblings = [sibling.text for sibling in answers if sibling is not answer]
    return not loses(words, text, [turn.label_of(answer.agent), *requests], siblings)


def enumerate_names(names: Sequence[str], joiner: str, further_names: str) -> str:
    """Joins names to one phrase; of very many the first are named and the others counted."""
    if len(names) > MOST_NAMES:
        further = len(names) - MOST_NAMES
        names = [*names[:MOST_NAMES], further_names.format(count=further)]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} {joiner} {names[-1]}"


def _sentence(text: str) -> str:
    return f"{text[:1].lower()}{text[1:].removesuffix('.')}."


def with_mentions(text: str, ctx: RunContext, models: Mapping[str, ModelSpec]) -> str:
    """Returns an answer with what else its user has to be told: of pictures that nobody looked at, and of each act that
    was cut off, where the message asks for it once more and nobody has met it again."""
    if ctx.turn.pictures:
        text = _mention_pictures(text, ctx, models)
    for key, entry in ctx.turn.memory.acts_cut_off().items():
        if entry.act is not None and not entry.has_failed and key not in ctx.turn.acts.entries:
            text = append(text, entry.sentence(ctx.turn.locale), ctx)
    return text


def _mention_pictures(text: str, ctx: RunContext, models: Mapping[str, ModelSpec]) -> str:
    """Returns an answer that says so where none of the models that were called could look at the message's pictures."""
    for event in ctx.turn.log.events:
        if isinstance(event.body, ModelStarted):
            spec = models.get(event.body.model)
            # of a model that models.yaml does not know nobody can say what it sees
            if spec is None or spec.sees_pictures:
                return text
    ctx.guarded("pictures", "mended", "no model that was called can see")
    return append(text, ctx.turn.locale.sentences.unseen, ctx)


def append(text: str, sentence: str, ctx: RunContext) -> str:
    """Returns a text with a sentence more; where the page shows that text already, the page gets the sentence alone."""
    page = transcript(ctx.turn.log.events)
    if page.answer:
        channel = "answer"
        text_on_page = page.answer
    else:
        channel = "lead"
        # with calls made the lead is a preamble, and the answer comes beside it
        text_on_page = "" if ctx.turn.calls else page.lead
    if text_on_page.strip() == text.strip():
        ctx.emit(Text(channel=channel, text=f"\n\n{sentence}"))
    return f"{text}\n\n{sentence}"


def help_with(message: str, ctx: RunContext) -> str | None:
    """Returns what can be asked, when a message asks just that and the fastpath guard is on; else
    None (decisions 38)."""
    if not ctx.turn.settings.guards.fastpath or not asks_for_help(message):
        return None
    return askable(ctx) or None


def still_asked(message: str, ctx: RunContext) -> str | None:
    """Returns what still waits for its user, when a message is a bare yes or no to it, or only says to go on; None for
    any other message.

    A yes counts for one question, and only where it is shown beside what will be done.
    """
    if "?" in message or len(message) > LONGEST_YES:
        return None
    if not bare_answer(message) and not takes_back(message) and not retries(message):
        return None
    question = ctx.turn.memory.waiting_question()
    if question is None:
        return None
    return ctx.turn.locale.sentences.still_asked.format(question=question)


def unread(message: str, language: str, locale: Locale) -> str | None:
    """Returns what the stand-in says, in the session's language, to a message that is not in English; None for any
    other message. `language`: the code of that of the session, such as "es"."""
    if tongue_of(message, language) is None:
        return None
    return locale.sentences.unread


def is_unanswerable(turn: TurnState) -> bool:
    """Whether everybody who was asked has nothing on it, and nobody was left out."""
    for outcome in turn.outcomes:
        if not isinstance(outcome, Failure) or outcome.reason != "unanswerable":
            return False
    return bool(turn.outcomes) and not turn.over_cap and not turn.coverage().left_out.count


def nobody_can(ctx: RunContext) -> str:
    """Returns the fixed sentence for a question that nobody can answer, with what can be asked."""
    return f"{ctx.turn.locale.sentences.nobody} {askable(ctx)}".strip()


def askable(ctx: RunContext) -> str:
    """Returns what can be asked, in the words of the cards; empty where there is nobody to ask."""
    agents = ctx.turn.agents
    cards = [agents[name].card for name in agents[ctx.path].card.sub_agents if name in agents]
    if not cards:
        # a monolith asks nobody, and holds the tools of every agent
        cards = [agent.card for agent in agents.values() if agent.card.topics]
    topics = [card.topics or card.label for card in cards]
    if topics:
        return ctx.turn.locale.sentences.askable.format(topics="; ".join(topics))
    return ""
