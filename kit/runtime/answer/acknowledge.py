"""An answer owns up to every part that failed or was left out, leaks nothing raw and loses no
answer in hand.

A composition is checked, composed once more when it falls short, and repaired by fixed words when
it still does (decisions 8):

- a part is not owned up to, or a reservation is not passed on: a fixed sentence is appended;
- something raw is out, something is claimed for a failed part, or an answer in hand is lost: the
  answers themselves, then the fixed sentences, stand in its place.

What counts as owned up to, claimed and lost is decided in kit/runtime/answer/clauses.py. A clean
turn is checked too, for raw text and for answers that nothing of the composition repeats; it gets
no acknowledgement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from langchain_core.messages import HumanMessage

from kit.compose.locale import BY_LANGUAGE
from kit.core.bodies.speech import Acknowledged, Acknowledgement
from kit.core.language.words import words
from kit.core.outcome import BEFORE_YES, AgentCall, Answer, LeftOut, Outcome
from kit.models.json_prose import prose
from kit.runtime.act_ledger import NOT_BEGUN
from kit.runtime.answer.clauses import (
    LONGEST,
    Part,
    admits,
    admits_rest,
    assures,
    claims_all,
    clauses,
    denies,
    loses,
    makes_claim,
    numbers,
    passes_on,
    roots,
    stems,
    unsourced,
)
from kit.runtime.answer.owed import (
    Owed,
    apology,
    append,
    enumerate_names,
    owed_by,
    rescue,
    reservations,
)
from kit.runtime.answer.own_acts import claims_new_act, passes_over_act
from kit.runtime.answer.raw_text import leaks, scrub
from kit.runtime.context import Agent, RunContext, TurnState
from kit.runtime.dispatch import run_to_outcome
from kit.runtime.message import Thread, instructed


class Composition(Protocol):
    """What an orchestrator worded."""

    @property
    def text(self) -> str: ...


class Composer(Agent, Protocol):
    """The agent that words the answer of a turn."""

    async def compose(
        self, thread: Thread, call: AgentCall, ctx: RunContext, *, live: bool, news: int
    ) -> Composition: ...


STOCK = " ".join(locale.checks.stock for locale in BY_LANGUAGE.values())
"""Words of owning up: an answer that uses them has not been passed on by a text that does."""
NOTHING = Owed()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a composition lacks."""

    empty: bool = False
    silent: tuple[str, ...] = ()
    """Failed or left out, and not owned up to."""
    unreserved: tuple[Answer, ...] = ()
    """Answers whose reservation is not passed on."""
    raw: bool = False
    claims: tuple[str, ...] = ()
    """Values, or agents, for which something was made up."""
    missing_answers: tuple[str, ...] = ()

    @property
    def is_broken(self) -> bool:
        """Whether a sentence more would not repair it."""
        return self.empty or self.raw or bool(self.claims or self.missing_answers)

    @property
    def needs_words(self) -> bool:
        """Whether the composer can do better. It was not told that an answer is older than the user's yes, since a turn
        that goes on reads what it had read: that is said by the kit."""
        lacks = self.is_broken or bool(self.silent)
        return lacks or any(answer.reservation != BEFORE_YES for answer in self.unreserved)

    @property
    def reason(self) -> str:
        reasons: list[str] = []
        if self.silent:
            reasons.append(f"not owned up to: {', '.join(self.silent)}")
        if self.unreserved:
            agents = [answer.agent for answer in self.unreserved]
            reasons.append(f"no reservation: {', '.join(agents)}")
        if self.missing_answers:
            reasons.append(f"lost: {', '.join(self.missing_answers)}")
        if self.empty:
            reasons.append("nothing said")
        if self.raw:
            reasons.append("raw text")
        if self.claims:
            reasons.append("made up")
        return "; ".join(reasons)


FINE = Verdict()
"""Of a composition that lacks nothing."""


def judge(text: str, ctx: RunContext, owed: Owed, sources: str) -> Verdict:
    """Returns what a composed text lacks beside the outcomes; `sources` is all that its model was given to read."""
    turn = ctx.turn
    if not text:
        return Verdict(empty=True)
    answers: list[Answer] = []
    for outcome in turn.outcomes:
        if isinstance(outcome, Answer):
            # a structured answer counts by its sentences
            is_structured = outcome.text.startswith("{")
            answers.append(outcome.replace(text=prose(outcome.text)) if is_structured else outcome)
    raw = leaks(text, ctx) != ()
    missing_answers: dict[str, None] = {}
    for answer in answers:
        if answer.text not in text and _is_lost(answer, text, answers, turn):
            missing_answers[answer.agent] = None
    new_acts: tuple[str, ...] = ()
    caveats = [answer.caveat or "" for answer in owed.with_reservation]
    # Most turns do nothing in the world, and nobody says that they do.
    if turn.acts.entries or NOT_BEGUN in " ".join(caveats):
        missing_answers |= dict.fromkeys(_acts_passed_over(text, answers, turn))
        if claims_new_act(text, turn):
            new_acts = ("an act",)
    if not owed:
        return Verdict(raw=raw, claims=new_acts, missing_answers=tuple(missing_answers))
    parts = {agent: _part(agent, turn) for agent in owed.agents}
    unreserved: list[Answer] = []
    for answer in owed.with_reservation:
        reservation = answer.reservation or ""
        alone = len(answers) == 1
        if not passes_on(text, parts[answer.agent], reservation, answer.text, alone=alone):
            unreserved.append(answer)
    silent, claims = _unowned(text, owed, parts, answers, turn)
    return Verdict(
        silent=tuple(silent),
        unreserved=tuple(unreserved),
        raw=raw,
        claims=(*new_acts, *claims, *sorted(numbers(text) - numbers(sources))),
        missing_answers=tuple(missing_answers),
    )


def _unowned(
    text: str, owed: Owed, parts: dict[str, Part], answers: Sequence[Answer], turn: TurnState
) -> tuple[list[str], list[str]]:
    """Returns what failed or was left out and is not owned up to, and what is claimed for it all the same."""
    read = clauses(text)
    alone = len({call.agent for call in turn.calls}) == 1
    answer_words = stems("\n".join(answer.text for answer in answers))
    silent: list[str] = []
    claims: list[str] = []
    missing = [*owed.failed, *owed.over_cap]
    for agent in missing:
        if not admits(read, parts[agent], alone=alone):
            silent.append(agent)
        if agent not in owed.partly and makes_claim(read, parts[agent], answer_words):
            claims.append(agent)
    # What nobody was asked for can be claimed as well as what failed.
    left_out = _parts_left_out(owed.left_out, turn)
    for part in left_out:
        if not admits(read, part):
            silent.append(part.agent)
        if makes_claim(read, part, answer_words):
            claims.append(part.agent)
    # A part that is known by number alone has no words by which a text could name it.
    if owed.left_out.unnamed and not admits_rest(read, [*parts.values(), *left_out]):
        silent.append(owed.left_out.names[-1])
    # With everything answered a sentence about the user may be the composer's own manner of speaking.
    if missing or left_out:
        requests = " ".join(call.query for call in turn.calls)
        assurance = assures(read, answer_words | stems(f"{turn.message} {requests}"))
        if assurance:
            claims.append(assurance)
        if claim := claims_all(read, answer_words):
            claims.append(claim)
    return silent, claims


async def acknowledge(
    text: str, lead: Composer, thread: Thread, call: AgentCall, ctx: RunContext, *, clean: bool
) -> str:
    """Returns the composed text when it lacks nothing; else the text composed once more; else a
    repaired one (decisions 8).

    `clean`: nothing failed or came with a reservation. `thread` is what `lead` composed from. The text is empty
    when nothing was composed and there is neither an answer nor a failure to speak of.
    """
    owes_nothing = clean and not ctx.turn.coverage().left_out.count
    owed = NOTHING if owes_nothing else owed_by(ctx.turn)
    # on a clean turn nearly every text is fine, and what its model was given to read is long
    sources = material(thread) if owed else ""
    verdict = judge(text, ctx, owed, sources)
    path: Acknowledgement = "composed"
    if verdict != FINE and verdict.needs_words:
        ctx.guarded("acknowledge", "asked_again", verdict.reason)
        notice = ask_again(verdict, owed)
        second = await _compose_again(lead, instructed(thread, notice), call, ctx)
        second_verdict = judge(second, ctx, owed, sources)
        # a second text that is worse than the first does not take its place
        if not second_verdict.is_broken or verdict.is_broken:
            text = second
            verdict = second_verdict
            path = "recomposed"
    if verdict != FINE:
        return _repaired(text, verdict, owed, ctx)
    if not owed:
        return _mark_figures(text, ctx, thread)
    _note(ctx, path, owed)
    return text


def settle(text: str, ctx: RunContext) -> str:
    """Does what `acknowledge` does without composing again, for patterns whose text the user has read already."""
    owed = owed_by(ctx.turn)
    verdict = judge(text, ctx, owed, text)
    if verdict != FINE:
        return _repaired(text, verdict, owed, ctx)
    _note(ctx, "composed", owed)
    return text


def of_nobody(text: str, ctx: RunContext) -> str:
    """Returns what an orchestrator says that asked nobody: without raw text, and with a sentence more where it tells
    of an act."""
    text = scrub(text, ctx)
    if claims_new_act(text, ctx.turn):
        ctx.guarded("acts", "mended", "nothing was called that acts")
        return append(text, ctx.turn.locale.reservation(NOT_BEGUN), ctx)
    return text


def ask_again(verdict: Verdict, owed: Owed) -> str:
    """Returns the request for a second composition: what the answer has to hold, in plain words."""
    lines = ["Write the answer again, from the results above and nothing else."]
    for agent in owed.failed:
        lines.append(
            f"State that you could not get an answer about {owed.label_of(agent)}, and nothing more of it."
        )
    for name in (*map(owed.label_of, owed.over_cap), *owed.left_out.names):
        lines.append(f"State that {name} was left out for now and can be taken next.")
    for answer in owed.with_reservation:
        lines.append(
            f"Pass on this reservation about {owed.label_of(answer.agent)}: {answer.reservation}"
        )
    for agent in verdict.missing_answers:
        lines.append(f"Include what {owed.label_of(agent)} answered.")
    if verdict.raw:
        lines.append("Use everyday words only: no technical names, identifiers or codes.")
    if verdict.claims:
        lines.append("Give no figure and no fact that is not in the results.")
    return "\n".join(lines)


def rescued(ctx: RunContext) -> str:
    """Returns the answer of a turn whose pattern ended without one: what the agents answered, and what they owe."""
    text = rescue(ctx)
    _note(ctx, "rescued", owed_by(ctx.turn))
    return text


def _repaired(text: str, verdict: Verdict, owed: Owed, ctx: RunContext) -> str:
    if verdict.is_broken:
        ctx.guarded("rescue", "mended", verdict.reason)
        if verdict.empty and not ctx.turn.outcomes and not owed:
            return ""
        _note(ctx, "rescued", owed)
        return rescue(ctx)
    _note(ctx, "appended", owed)
    locale = ctx.turn.locale
    sentences = (reservations(verdict.unreserved, ctx.turn), apology(owed, locale, verdict.silent))
    return "\n\n".join([text, *filter(None, sentences)])


async def _compose_again(lead: Composer, thread: Thread, call: AgentCall, ctx: RunContext) -> str:
    """Returns the second composition; "" when composing failed, and then the first text is repaired."""

    async def work(call: AgentCall, ctx: RunContext) -> Outcome:
        decision = await lead.compose(thread, call, ctx, live=False, news=1)
        return call.answered(decision.text)

    outcome = await run_to_outcome(work, call, ctx, lead.time_budget)
    if isinstance(outcome, Answer):
        return outcome.text
    return ""


def _note(ctx: RunContext, path: Acknowledgement, owed: Owed) -> None:
    """Says in the trace how the answer owned up; a clean turn owes nothing, so no event says that it was paid."""
    if owed:
        ctx.emit(Acknowledged(path=path, owed=(*owed.agents, *owed.left_out.names)))


def _mark_figures(text: str, ctx: RunContext, thread: Thread) -> str:
    """Returns a clean turn's text, with a sentence more where it gives figures that its model has read nowhere.

    Most of such a text has been read by the user already, and may be right: it is not replaced.
    """
    texts: list[str] = []
    for outcome in ctx.turn.outcomes:
        if isinstance(outcome, Answer):
            texts.append(outcome.text)
    answers = "\n".join(texts)
    beginning = text[:LONGEST]
    if numbers(beginning) <= numbers(answers):
        # nearly every turn: what the model was given to read is not looked at
        return text
    figures = unsourced(beginning, material(thread), answers)
    if not figures:
        return text
    ctx.guarded("figures", "mended", f"no source gives {', '.join(figures)}")
    sentences = ctx.turn.locale.sentences
    names = enumerate_names(figures, sentences.or_, sentences.more_names)
    return append(text, sentences.unsourced.format(figures=names), ctx)


def material(thread: Thread) -> str:
    """Returns all that a model was given to read in this turn, without its own words since the request."""
    texts: list[str] = []
    for position, message in enumerate(thread):
        if isinstance(message, HumanMessage):
            # Before the request the model's own words count too: they were said in earlier turns.
            texts = [str(earlier.text) for earlier in thread[:position]]
        if message.type != "ai":
            texts.append(str(message.text))
    return "\n".join(texts)


def _part(agent: str, turn: TurnState) -> Part:
    own_requests: list[str] = []
    other_requests: list[str] = []
    for call in turn.calls:
        if call.agent == agent:
            own_requests.append(call.query)
        else:
            other_requests.append(f"{call.query} {turn.label_of(call.agent)}")
    own_words = roots(" ".join(own_requests)) - roots(" ".join(other_requests))
    return Part(agent, turn.label_of(agent), own_words)


def _parts_left_out(left_out: LeftOut, turn: TurnState) -> list[Part]:
    """Returns the parts without a call whose words are known, by the names they have in a sentence."""
    requests: list[str] = []
    for call in turn.calls:
        requests.append(f"{turn.wording.get(call.call_id, call.query)} {turn.label_of(call.agent)}")
    words_of_calls = roots(" ".join(requests))
    parts: list[Part] = []
    for name, text in zip(left_out.names, left_out.parts, strict=False):
        parts.append(Part(name, " ".join(words(text)), roots(text) - words_of_calls))
    return parts


def _acts_passed_over(text: str, answers: Sequence[Answer], turn: TurnState) -> list[str]:
    """Returns the agents that did something which a text denies, or of which it tells nothing."""
    done = turn.acts.in_state("done")
    acted = {entry.path.rpartition(".")[2] for entry in done}
    # A monolith acts itself, for the agent whose tool it is: what the tool returned is that one's answer.
    for answer in answers:
        texts = [entry.act.text for entry in done if entry.act and "." not in entry.path]
        if any(text and text in answer.text for text in texts):
            acted.add(answer.agent)
    agents = {call.agent for call in turn.calls}
    passed_over: list[str] = []
    for answer in answers:
        if answer.agent not in acted or answer.text in text:
            continue
        others = [_part(agent, turn) for agent in agents - {answer.agent}]
        if passes_over_act(text, answer.text, _part(answer.agent, turn), others, turn):
            passed_over.append(answer.agent)
    return passed_over


def _is_lost(answer: Answer, text: str, answers: Sequence[Answer], turn: TurnState) -> bool:
    if denies(text, answer.text):
        return True
    queries = [call.query for call in turn.calls]
    stock = [STOCK, turn.label_of(answer.agent), answer.reservation or "", *queries]
    siblings = [sibling.text for sibling in answers if sibling is not answer]
    return loses(answer.text, text, stock, siblings)
