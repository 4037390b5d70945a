"""What is said of acts is held against the ledger: what was done is not told as left undone, nor what nobody did as
done."""

import json
from collections.abc import Iterable, Sequence

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall

from kit.core.language.clauses import inquires
from kit.core.language.words import words
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.models.json_prose import WORDLESS, prose
from kit.runtime.act_ledger import DECLINED, NOT_BEGUN
from kit.runtime.answer.clauses import (
    Part,
    act_claims,
    clauses,
    denies_act,
    is_told,
    numbers,
    roots,
    unsourced,
)
from kit.runtime.context import RunContext, TurnState
from kit.runtime.message import Thread
from kit.tools.tool import ToolResult

BARE = 2
"""A clause of at most so many words, such as "All done", says that something was done and not what."""
Results = Sequence[tuple[ToolCall, ToolResult]]


def as_it_became(
    outcome: Outcome,
    call: AgentCall,
    results: Results,
    thread: Thread,
    tools: Iterable[str],
    ctx: RunContext,
) -> Outcome:
    """Returns what an agent whose `tools` act may say of its acts, whatever its model makes of them.

    What its tools returned stands in the place of words that deny an act or tell another one; where it did nothing and
    says that it did, that stands there.
    """
    if not isinstance(outcome, Answer):
        return outcome
    text = prose(outcome.text)
    claims = act_claims(text, _verbs_of(tools, [call.query]))
    if DECLINED in (outcome.caveat or ""):
        found = _found(results)
        if found and all(is_told(claim, "\n".join(found)) for claim in claims):
            return outcome
        return outcome.replace(text=ctx.turn.locale.reservation(DECLINED))
    acts = ctx.turn.acts.acts_at(ctx.path)
    if acts:
        texts = [entry.act.text for entry in acts if entry.act]
        done = "\n".join(prose(text) for text in texts if text and text not in WORDLESS)
        if not done:
            return outcome
        if _denies_done(text, done) or _tells_another(claims, results):
            return outcome.replace(text=done)
        if not claims and not _tells(text, done):
            return outcome.replace(text=f"{done}\n{text}")
        return outcome
    found = _found(results)
    told = "\n".join([*found, *_said(thread)])
    if all(is_told(claim, told) for claim in claims):
        return outcome
    if found and inquires(call.query):
        # What was done at some time is worded in other words than those of the data.
        return outcome
    outcome = outcome.replace(caveat=" ".join(filter(None, (outcome.caveat, NOT_BEGUN))))
    if found:
        # What it found is told beside that.
        return outcome
    return outcome.replace(text=ctx.turn.locale.reservation(NOT_BEGUN))


def claims_new_act(text: str, turn: TurnState) -> bool:
    """Returns whether an orchestrator's text tells of an act of which no answer in hand, and no earlier turn, tells."""
    verbs = _verbs_of_all(turn)
    if not verbs:
        return False
    not_begun = turn.locale.reservation(NOT_BEGUN)
    told = [line.text for line in turn.memory.history("") if line.role == "assistant"]
    for outcome in turn.outcomes:
        if isinstance(outcome, Answer) and outcome.text != not_begun:
            told.append(prose(outcome.text))
    told_words = "\n".join(told)
    has_acted = bool(turn.acts.in_state("done"))
    for claim in act_claims(text, verbs):
        # A mere "done" is true where something was.
        is_bare = has_acted and len(words(claim)) <= BARE
        if not is_bare and not is_told(claim, told_words):
            return True
    return False


def passes_over_act(
    text: str, answer: str, part: Part, others: Sequence[Part], turn: TurnState
) -> bool:
    """Returns whether a composed text denies what an agent did, as its answer says, or tells nothing of it."""
    if any(map(denies_act, clauses(answer))):
        # A denial of the text's may be that one.
        return False
    if _denies_done(text, answer, part, others):
        return True
    return not act_claims(text, _verbs_of_all(turn)) and not _tells(text, answer)


def _verbs_of(tools: Iterable[str], requests: Iterable[str]) -> frozenset[str]:
    """Returns the words that may name what was done, without their endings: those of tools (`redeem_points`) and of
    what was asked for."""
    return roots(" ".join([*tools, *requests]).replace("_", " "))


def _verbs_of_all(turn: TurnState) -> frozenset[str]:
    """Returns those of all tools and requests of a turn; none where no agent of the deck acts."""
    tools: set[str] = set()
    for agent in turn.agents.values():
        names: frozenset[str] = getattr(agent, "acts", frozenset[str]())
        tools |= names
    if not tools:
        return frozenset()
    return _verbs_of(tools, [turn.message, *(call.query for call in turn.calls)])


def _found(results: Results) -> list[str]:
    """Returns what the lookups of an agent found; what its user said no to is none."""
    found: list[str] = []
    for _, result in results:
        if result.fault is None and result.caveat != DECLINED:
            found.append(prose(result.text))
    return found


def _denies_done(
    text: str, done: str, part: Part | None = None, others: Sequence[Part] = ()
) -> bool:
    """Whether a text says that something was not done which was, `done` says how, and tells nothing of it.

    `others`: parts beside the one that acted, whose own denials say nothing of the act.
    """
    act_roots = roots(done)
    is_denied = False
    for clause in clauses(text):
        if denies_act(clause):
            is_meant = part is not None and part.is_meant(clause)
            if is_meant or not any(other.is_meant(clause) for other in others):
                is_denied = True
        elif _repeats(clause.text, act_roots):
            return False
    return is_denied


def _tells_another(claims: Sequence[str], results: Results) -> bool:
    """Whether an agent tells of its act with a figure that stands neither in its calls nor in what they returned."""
    returned: list[str] = []
    for call, result in results:
        returned.append(f"{json.dumps(call['args'], default=str)} {result.text}")
    known = "\n".join(returned)
    return any(unsourced(claim, known, known) for claim in claims)


def _tells(text: str, done: str) -> bool:
    """Whether a text tells of what was done, in its words or by one of its figures."""
    act_roots = roots(done)
    if not numbers(text).isdisjoint(numbers(done)):
        return True
    return any(_repeats(clause.text, act_roots) for clause in clauses(text))


def _repeats(text: str, act_roots: frozenset[str]) -> bool:
    return 2 * len(roots(text) & act_roots) >= len(act_roots)


def _said(thread: Thread) -> list[str]:
    """Returns what was answered in earlier turns: of an act of theirs an agent may tell."""
    texts: list[str] = []
    for message in thread:
        if not isinstance(message, AIMessage):
            continue
        if message.tool_calls:
            # From here on it speaks of this turn.
            break
        texts.append(str(message.text))
    return texts
