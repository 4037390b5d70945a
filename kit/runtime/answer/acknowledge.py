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

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kit.compose.locale import BY_LANGUAGE
from kit.core.bodies.guard import GuardActed
from kit.core.bodies.speech import Acknowledged, Acknowledgement
from kit.core.language.words import words
from kit.core.outcome import AgentCall, Answer, LeftOut, Outcome
from kit.models.json_prose import prose
from kit.runtime.answer.clauses import (
    Part,
    admits,
    admits_rest,
    assures,
    clauses,
    denies,
    loses,
    makes_claim,
    passes_on,
    stems,
)
from kit.runtime.answer.figures import LONGEST, numbers, unsourced
from kit.runtime.answer.owed import (
    Debt,
    apology,
    append,
    debt,
    enumerate_names,
    plain,
    rescue,
    reservations,
)
from kit.runtime.answer.raw_text import leaks
from kit.runtime.context import RunContext, TurnState
from kit.runtime.dispatch import run_to_outcome

Again = Callable[[str], Awaitable[str]]
"""Composes once more, told in plain words what the last composition lacked."""
STOCK = " ".join(locale.checks.stock for locale in BY_LANGUAGE.values())
"""Words of owning up: an answer that uses them has not been passed on by a text that does."""
NONE = Debt()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a composition lacks."""

    empty: bool = False
    silent: tuple[str, ...] = ()
    """Failed or left out, and not owned up to."""
    unreserved: tuple[Answer, ...] = ()
    raw: bool = False
    claims: tuple[str, ...] = ()
    """Values, or agents, for which something was made up."""
    missing_answers: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether a sentence more would not repair it."""
        return self.empty or self.raw or bool(self.claims or self.missing_answers)

    @property
    def fine(self) -> bool:
        return not (self.broken or self.silent or self.unreserved)

    @property
    def reason(self) -> str:
        groups = {
            "not owned up to": self.silent,
            "no reservation": [a.agent for a in self.unreserved],
            "lost": self.missing_answers,
        }
        lines = [f"{what}: {', '.join(agents)}" for what, agents in groups.items() if agents]
        flags = {"nothing said": self.empty, "raw text": self.raw, "made up": bool(self.claims)}
        return "; ".join([*lines, *(what for what, holds in flags.items() if holds)])


FINE = Verdict()


def judge(text: str, ctx: RunContext, owing: Debt, sources: str) -> Verdict:
    """Returns what a composed text lacks beside the outcomes; `sources` is all that its model was given to read."""
    turn = ctx.turn
    if not text:
        return Verdict(empty=True)
    answers = [outcome for outcome in turn.outcomes if outcome.kind == "answer"]
    if [
        answer for answer in answers if answer.text[:1] == "{"
    ]:  # a structured answer counts by its sentences
        answers = [answer.model_copy(update={"text": prose(answer.text)}) for answer in answers]
    raw = leaks(text, ctx) != ()
    unsaid = [answer for answer in answers if answer.text not in text]
    if unsaid:
        missing_answers = tuple(
            dict.fromkeys(a.agent for a in unsaid if _is_lost(a, text, answers, turn))
        )
    else:
        missing_answers = ()
    if not owing:
        if raw or missing_answers:
            return Verdict(raw=raw, missing_answers=missing_answers)
        return FINE
    parts = {agent: _part(agent, turn) for agent in owing.agents}
    read = clauses(text)
    missing = [*owing.failed, *owing.over_cap]
    alone = len({call.agent for call in turn.calls}) == 1
    rest = _rest(owing.left_out, turn)
    silent = [agent for agent in missing if not admits(read, parts[agent], alone=alone)]
    silent += [part.agent for part in rest if not admits(read, part)]
    if owing.left_out.unnamed and not admits_rest(read, [*parts.values(), *rest]):
        silent.append(owing.left_out.names[-1])
    single = len(answers) == 1
    quiet = (
        a
        for a in owing.with_reservation
        if not passes_on(text, parts[a.agent], a.reservation or "", a.text, alone=single)
    )
    answer_words = stems("\n".join(answer.text for answer in answers))
    overclaims = [
        agent
        for agent in missing
        if agent not in owing.partly and makes_claim(read, parts[agent], answer_words)
    ]
    overclaims += [part.agent for part in rest if makes_claim(read, part, answer_words)]
    if missing or rest:
        requests = " ".join(call.query for call in turn.calls)
        assurance = assures(read, answer_words | stems(f"{turn.message} {requests}"))
        overclaims += [assurance] if assurance else []
    made_up = numbers(text) - numbers(sources)
    claims = (*overclaims, *sorted(made_up))
    return Verdict(
        silent=tuple(silent),
        unreserved=tuple(quiet),
        raw=raw,
        claims=claims,
        missing_answers=missing_answers,
    )


async def acknowledge(
    text: str,
    ctx: RunContext,
    again: Again,
    *,
    clean: bool,
    sources: Callable[[], str] = str,
    seconds: float | None = None,
) -> str:
    """Returns the composed text when it lacks nothing; else the text composed once more; else a
    repaired one (decisions 8).

    `clean`: nothing failed, was left out or came with a reservation. `sources` gives all that the composing model was
    given to read. `seconds` is what composing again may take. The text is empty when nothing was composed and there is
    neither an answer nor a failure to speak of.
    """
    turn = ctx.turn
    if clean:
        owing = NONE
    else:
        owing = debt(turn)
    if owing:
        material_text = sources()
    else:
        material_text = ""
    verdict = judge(text, ctx, owing, material_text)
    if verdict is FINE or verdict.fine:
        _own(ctx, "composed", owing)
        if owing:
            return text
        return _mark_figures(text, ctx, sources)
    ctx.emit(
        GuardActed(guard="acknowledge", action="asked_again", agent=ctx.path, reason=verdict.reason)
    )
    second = await _once_more(again, ask_again(verdict, owing), ctx, seconds)
    after = judge(second, ctx, owing, material_text)
    if after.fine:
        _own(ctx, "recomposed", owing)
        if owing:
            return second
        return _mark_figures(second, ctx, sources)
    if not after.broken or verdict.broken:
        text = second
        verdict = after
    return _repaired(text, verdict, owing, ctx)


def settle(text: str, ctx: RunContext) -> str:
    """Does what `acknowledge` does without composing again, for patterns whose text the user has read already."""
    owing = debt(ctx.turn)
    verdict = judge(text, ctx, owing, text)
    if verdict.fine:
        _own(ctx, "composed", owing)
        return text
    return _repaired(text, verdict, owing, ctx)


def ask_again(verdict: Verdict, owing: Debt) -> str:
    """Returns the request for a second composition: what the answer has to hold, in plain words."""
    lines = ["Write the answer again, from the results above and nothing else."]
    lines += [
        f"State that you could not get an answer about {plain(agent)}, and nothing more of it."
        for agent in owing.failed
    ]
    lines += [
        f"State that {plain(agent)} was left out for now and can be taken next."
        for agent in owing.over_cap
    ]
    lines += [
        f"State that {name} was left out for now and can be taken next."
        for name in owing.left_out.names
    ]
    lines += [
        f"Pass on this reservation about {plain(a.agent)}: {a.reservation}"
        for a in owing.with_reservation
    ]
    lines += [f"Include what {plain(agent)} answered." for agent in verdict.missing_answers]
    lines += (
        ["Use everyday words only: no technical names, identifiers or codes."]
        if verdict.raw
        else []
    )
    lines += ["Give no figure and no fact that is not in the results."] if verdict.claims else []
    return "\n".join(lines)


def rescued(ctx: RunContext) -> str:
    """Returns the answer of a turn whose pattern ended without one: what the agents answered, and what they owe."""
    text = rescue(ctx)
    _own(ctx, "rescued", debt(ctx.turn))
    return text


def _repaired(text: str, verdict: Verdict, owing: Debt, ctx: RunContext) -> str:
    if not verdict.broken:
        _own(ctx, "appended", owing)
        locale = ctx.turn.locale
        return "\n\n".join(
            filter(
                None,
                [
                    text,
                    reservations(verdict.unreserved, locale),
                    apology(owing, locale, verdict.silent),
                ],
            )
        )
    ctx.emit(GuardActed(guard="rescue", action="mended", agent=ctx.path, reason=verdict.reason))
    if verdict.empty and not ctx.turn.outcomes and not owing:
        return ""
    _own(ctx, "rescued", owing)
    return rescue(ctx)


async def _once_more(again: Again, notice: str, ctx: RunContext, seconds: float | None) -> str:
    """Returns the second composition; "" when composing failed, and then the first text is repaired."""

    async def work(call: AgentCall, _: RunContext) -> Outcome:
        return Answer(call_id=call.call_id, agent=call.agent, text=await again(notice))

    outcome = await run_to_outcome(
        work, AgentCall(call_id="again", agent=ctx.path, query=""), ctx, seconds
    )
    if isinstance(outcome, Answer):
        return outcome.text
    return ""


def _own(ctx: RunContext, path: Acknowledgement, owing: Debt) -> None:
    if owing:  # a clean turn owes nothing, so no event says that it was paid
        ctx.emit(Acknowledged(path=path, owed=(*owing.agents, *owing.left_out.names)))


def _mark_figures(text: str, ctx: RunContext, sources: Callable[[], str]) -> str:
    """Returns a clean turn's text, with a sentence more where it gives figures that its model has read nowhere.

    Most of such a text has been read by the user already, and may be right: it is not replaced.
    """
    answers = "\n".join(o.text for o in ctx.turn.outcomes if isinstance(o, Answer))
    beginning = text[:LONGEST]
    figures_of_text = numbers(beginning)
    if not figures_of_text or figures_of_text <= numbers(answers):
        return text  # nearly every turn: what the model was given to read is not looked at
    material_text = sources()
    if material_text:
        figures = unsourced(beginning, material_text, answers)
    else:
        figures = []
    if not figures:
        return text
    reason = f"no source gives {', '.join(figures)}"
    ctx.emit(GuardActed(guard="figures", action="mended", agent=ctx.path, reason=reason))
    words = ctx.turn.locale.sentences
    names = enumerate_names(figures, words.or_, words.more_names)
    return append(text, words.unsourced.format(figures=names), ctx)


def _part(agent: str, turn: TurnState) -> Part:
    mine = stems(" ".join(call.query for call in turn.calls if call.agent == agent))
    others = stems(
        " ".join(f"{call.query} {plain(call.agent)}" for call in turn.calls if call.agent != agent)
    )
    return Part(agent, plain(agent), mine - others)


def _rest(left_out: LeftOut, turn: TurnState) -> list[Part]:
    """Returns the parts without a call whose words are known, by the names they have in a sentence."""
    others = stems(
        " ".join(
            f"{turn.wording.get(call.call_id, call.query)} {plain(call.agent)}"
            for call in turn.calls
        )
    )
    return [
        Part(name, " ".join(words(part)), stems(part) - others)
        for name, part in zip(left_out.names, left_out.parts, strict=False)
    ]


def _is_lost(answer: Answer, text: str, answers: list[Answer], turn: TurnState) -> bool:
    if denies(text, answer.text):
        return True
    stock = [
        STOCK,
        plain(answer.agent),
        answer.reservation or "",
        *(call.query for call in turn.calls),
    ]
    return loses(answer.text, text, stock, [other.text for other in answers if other is not answer])
