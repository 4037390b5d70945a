"""What an answer owes, and the fixed words for it: for parts that failed, parts that were left out, reservations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kit.compose.locale import Locale
from kit.core.bodies.call import ModelStarted
from kit.core.bodies.guard import GuardActed
from kit.core.bodies.speech import Text
from kit.core.model import ModelSpec
from kit.core.outcome import NOTHING_LEFT, Answer, Failure, LeftOut
from kit.core.transcript import transcript
from kit.models.json_prose import prose
from kit.runtime.answer.clauses import loses, roots
from kit.runtime.answer.help import is_unanswerable, nobody_can
from kit.runtime.answer.raw_text import scrub
from kit.runtime.context import RunContext, TurnState

MOST_NAMES = 12
"""So many parts are named in one sentence: all of any deck with a dozen agents. Nobody reads a list of 36."""


def plain(agent: str) -> str:
    """An agent's id in plain words."""
    return agent.replace("_", " ").replace("-", " ").strip().lower()


@dataclass(frozen=True, slots=True)
class Debt:
    """What an answer owes: agents that failed, agents and parts that were left out, answers that
    came with a reservation."""

    failed: tuple[str, ...] = ()
    over_cap: tuple[str, ...] = ()
    left_out: LeftOut = NOTHING_LEFT
    """Parts of the message that no call was made for."""
    with_reservation: tuple[Answer, ...] = ()
    partly: frozenset[str] = frozenset()
    """Failed agents that also answered another call."""

    def __bool__(self) -> bool:
        return bool(self.failed or self.over_cap or self.left_out.count or self.with_reservation)

    @property
    def agents(self) -> tuple[str, ...]:
        """Agents that something is owed for, each once: failed, left out, with a reservation."""
        return tuple(
            dict.fromkeys(
                [*self.failed, *self.over_cap, *(answer.agent for answer in self.with_reservation)]
            )
        )


def debt(turn: TurnState) -> Debt:
    """Returns what a turn owes. A later answer to the same words makes good a failure, and a call that was left out."""
    words: dict[str, str] = {}
    for call in turn.calls:
        words[call.call_id] = call.query.casefold().strip()
    answer_keys: set[tuple[str, str | None]] = set()
    for o in turn.outcomes:
        if isinstance(o, Answer):
            answer_keys.add((o.agent, words.get(o.call_id)))
    failed: dict[str, list[str | None]] = {}
    answers: list[Answer] = []
    for outcome in turn.outcomes:
        query = words.get(outcome.call_id)
        if isinstance(outcome, Failure):
            failed.setdefault(outcome.agent, []).append(query)
            continue
        answers.append(outcome)
        queries = failed.get(outcome.agent, ())
        if query is not None and query in queries:
            failed[outcome.agent] = [other for other in queries if other != query]
    still = tuple(agent for agent, owing in failed.items() if owing)
    new = (
        call.agent
        for call in turn.over_cap
        if (call.agent, call.query.casefold().strip()) not in answer_keys
    )
    left_out = tuple(agent for agent in dict.fromkeys(new) if agent not in still)
    partly = frozenset(answer.agent for answer in answers) & {*still, *left_out}
    return Debt(
        still,
        left_out,
        turn.left_out(),
        tuple(answer for answer in answers if answer.reservation),
        partly,
    )


def apology(owing: Debt, locale: Locale, only: Sequence[str] | None = None) -> str:
    """The fixed sentences for what failed and what was left out; `only` limits them to these agents
    and names of parts."""
    words = locale.sentences
    unnamed = owing.left_out.unnamed
    failed = [agent for agent in owing.failed if only is None or agent in only]
    whole: list[str] = []
    for agent in failed:
        if agent not in owing.partly:
            whole.append(plain(agent))
    part: list[str] = []
    for agent in failed:
        if agent in owing.partly:
            part.append(plain(agent))
    names = {name: name for name in owing.left_out.names}
    if unnamed:
        names[owing.left_out.names[-1]] = (
            words.more_parts.format(count=unnamed) if unnamed > 1 else words.one_more_part
        )
    left_out: list[str] = []
    for agent in owing.over_cap:
        if only is None or agent in only:
            left_out.append(plain(agent))
    left_out += [
        words_of_answers for name, words_of_answers in names.items() if only is None or name in only
    ]
    lines = (
        (words.failed, whole, words.or_),
        (words.failed_partly, part, words.or_),
        (
            words.left_out_several if len(left_out) > 1 or unnamed > 1 else words.left_out,
            left_out,
            words.and_,
        ),
    )
    return " ".join(
        line.format(parts=enumerate_names(parts, word, words.more_names))
        for line, parts, word in lines
        if parts
    )


def reservations(answers: Iterable[Answer], locale: Locale) -> str:
    """The fixed sentences for answers that hold with a reservation."""
    lines = (
        locale.sentences.reserved.format(
            part=plain(a.agent), reservation=_sentence(locale.reservation(a.reservation or ""))
        )
        for a in answers
    )
    return " ".join(dict.fromkeys(lines))


def rescue(ctx: RunContext) -> str:
    """Returns a reply that no model wrote: the answers in hand, then the fixed sentences for the rest."""
    if is_unanswerable(ctx.turn):
        return nobody_can(ctx)
    owing = debt(ctx.turn)
    answers: list[Answer] = []
    for outcome in ctx.turn.outcomes:
        if isinstance(outcome, Answer):
            answers.append(outcome)
    texts: dict[str, str] = {}
    for answer in answers:
        texts[answer.call_id] = scrub(prose(answer.text), ctx)
    parts = list(dict.fromkeys(text for text in texts.values() if text))
    unsaid: list[str] = []
    for answer in answers:
        if not texts[answer.call_id]:
            unsaid.append(answer.agent)
    if unsaid:
        owing = replace(owing, failed=(*owing.failed, *unsaid))
    cautious: list[Answer] = []
    for a in owing.with_reservation:
        if texts[a.call_id] and not reserves(texts[a.call_id], a):
            cautious.append(a)
    locale = ctx.turn.locale
    return (
        "\n\n".join(filter(None, [*parts, reservations(cautious, locale), apology(owing, locale)]))
        or locale.sentences.nothing
    )


def stopped(ctx: RunContext, text: str) -> str:
    """Returns what a turn has to say that its user stopped, marked as a part.

    The composition begun stands where it passes on every answer in hand; else the answers stand in its place.
    """
    turn = ctx.turn
    sentences = turn.locale.sentences
    answers: list[Answer] = []
    for outcome in turn.outcomes:
        if isinstance(outcome, Answer):
            answers.append(outcome)
    if text and all(_is_told(answer, text, answers, turn) for answer in answers):
        return f"{text}\n\n{sentences.stopped}"
    texts: list[str] = []
    for answer in answers:
        texts.append(scrub(prose(answer.text), ctx))
    words_of_answers = "\n\n".join(dict.fromkeys(filter(None, texts)))
    if not words_of_answers:
        return sentences.stopped_early
    cautious: list[Answer] = []
    for answer in answers:
        if answer.reservation and not reserves(words_of_answers, answer):
            cautious.append(answer)
    pieces = [words_of_answers, reservations(cautious, turn.locale), sentences.stopped]
    return "\n\n".join(filter(None, pieces))


def _is_told(answer: Answer, text: str, answers: Sequence[Answer], turn: TurnState) -> bool:
    """Whether a composition that was broken off passes on an answer.

    `loses` gives an answer of few words the benefit of the doubt; here it is told only when a word of it is out.
    """
    words = prose(answer.text)
    if words in text:
        return True
    if roots(words).isdisjoint(roots(text)):
        return False
    requests = [call.query for call in turn.calls]
    siblings: list[str] = []
    for other in answers:
        if other is not answer:
            siblings.append(other.text)
    return not loses(words, text, [plain(answer.agent), *requests], siblings)


def reserves(text: str, answer: Answer) -> bool:
    """True when a text holds an answer's reservation word for word."""
    return (answer.reservation or "").rstrip(".").lower() in text.lower()


def enumerate_names(names: Sequence[str], word: str, more: str) -> str:
    """Joins names to one phrase; of very many the first are named and the others counted."""
    if len(names) > MOST_NAMES:
        further = len(names) - MOST_NAMES
        names = [*names[:MOST_NAMES], more.format(count=further)]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _sentence(text: str) -> str:
    if text.endswith("."):
        return text[:1].lower() + text[1:]
    return f"{text[:1].lower()}{text[1:]}."


def mention_pictures(text: str, ctx: RunContext, models: Mapping[str, ModelSpec]) -> str:
    """Returns an answer that says so where none of the models that were called could look at the message's pictures."""
    turn = ctx.turn
    called: set[str] = set()
    for event in turn.log.events:
        if isinstance(event.body, ModelStarted):
            called.add(event.body.model)
    if any(key not in models or models[key].sees_pictures for key in called):
        return text
    ctx.emit(
        GuardActed(
            guard="pictures",
            action="mended",
            agent=ctx.path,
            reason="no model that was called can see",
        )
    )
    return append(text, turn.locale.sentences.unseen, ctx)


def append(text: str, sentence: str, ctx: RunContext) -> str:
    """Returns a text with a sentence more; where the page shows that text already, the page gets the sentence alone."""
    page = transcript(ctx.turn.log.events)
    text_on_page = page.answer
    if not text_on_page and not ctx.turn.calls:
        text_on_page = page.lead
    if text_on_page.strip() == text.strip():
        if page.answer:
            channel = "answer"
        else:
            channel = "lead"
        ctx.emit(Text(channel=channel, text=f"\n\n{sentence}"))
    return f"{text}\n\n{sentence}"
