"""What is said of acts is held against the ledger: what was done is not told as left undone, nor what nobody did as
done."""

import json
from collections.abc import Sequence

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
from kit.tools.tool import ToolResult

BARE = 2
"""A clause of at most so many words, such as "All done", says that something was done and not what."""
Results = Sequence[tuple[ToolCall, ToolResult]]


def as_it_became(outcome: Outcome, call: AgentCall, results: Results, ctx: RunContext) -> Outcome:
    """Returns what an agent whose tools act may say of its acts, whatever its model makes of them.

    What its tools returned stands in the place of words that deny an act, tell another one or tell nothing of it; where
    it did nothing and says that it did, that stands there.
    """
    if not isinstance(outcome, Answer):
        return outcome
    turn = ctx.turn
    text = prose(outcome.text)
    claims = act_claims(text, _verbs(turn))
    found = _found(results)
    if DECLINED in (outcome.caveat or ""):
        if found and _are_told(claims, found):
            return outcome
        return outcome.replace(text=turn.locale.reservation(DECLINED))
    acts = turn.acts.acts_at(ctx.path)
    if acts:
        texts = [entry.act.text for entry in acts if entry.act]
        done = "\n".join(prose(text) for text in texts if text and text not in WORDLESS)
        if done and (_passes_over(text, done, claims) or _tells_another(claims, results)):
            return outcome.replace(text=done)
        return outcome
    if _are_told(claims, [*found, *_said_before(turn, call.agent)]):
        return outcome
    if found and inquires(call.query):
        # What was done at some time is worded in other words than those of the data.
        return outcome
    outcome = outcome.replace(caveat=" ".join(filter(None, (outcome.caveat, NOT_BEGUN))))
    if found:
        # What it found is told beside that.
        return outcome
    return outcome.replace(text=turn.locale.reservation(NOT_BEGUN))


def claims_new_act(text: str, turn: TurnState) -> bool:
    """Returns whether an orchestrator's text tells of an act of which no answer in hand, and no earlier turn, tells."""
    verbs = _verbs(turn)
    if not verbs:
        return False
    claims = act_claims(text, verbs)
    if turn.acts.in_state("done"):
        # A mere "done" is true where something was.
        claims = [claim for claim in claims if len(words(claim)) > BARE]
    if not claims:
        return False
    told = _said_before(turn, "")
    not_begun = turn.locale.reservation(NOT_BEGUN)
    for outcome in turn.outcomes:
        if isinstance(outcome, Answer) and outcome.text != not_begun:
            told.append(prose(outcome.text))
    return not _are_told(claims, told)


def passes_over_act(
    text: str, answer: str, part: Part, others: Sequence[Part], turn: TurnState
) -> bool:
    """Returns whether a composed text denies what an agent did, as its answer says, or tells nothing of it.

    `others`: parts beside the one that acted, whose own denials say nothing of the act.
    """
    if any(map(denies_act, clauses(answer))):
        # A denial of the text's may be that one.
        return False
    return _passes_over(text, answer, act_claims(text, _verbs(turn)), part, others)


def _verbs(turn: TurnState) -> frozenset[str]:
    """Returns the words that may name what was done, without their endings: those of tools (`redeem_points`) and of
    what was asked for; none where no agent of the deck acts."""
    tools: set[str] = set()
    for agent in turn.agents.values():
        names: frozenset[str] = getattr(agent, "acts", frozenset[str]())
        tools |= names
    if not tools:
        return frozenset()
    requests = [turn.message, *(call.query for call in turn.calls)]
    return roots(" ".join([*tools, *requests]).replace("_", " "))


def _found(results: Results) -> list[str]:
    """Returns what the tools of an agent returned; what its user said no to is nothing."""
    found: list[str] = []
    for _, result in results:
        if result.fault is None and result.caveat != DECLINED:
            found.append(prose(result.text))
    return found


def _said_before(turn: TurnState, reader: str) -> list[str]:
    """Returns what was answered in earlier turns: of an act of theirs one may tell."""
    return [line.text for line in turn.memory.history(reader) if line.role == "assistant"]


def _are_told(claims: Sequence[str], told: Sequence[str]) -> bool:
    told_words = "\n".join(told)
    return all(is_told(claim, told_words) for claim in claims)


def _passes_over(
    text: str,
    done: str,
    claims: Sequence[str],
    part: Part | None = None,
    others: Sequence[Part] = (),
) -> bool:
    """Whether a text denies what was done, in the words of `done`, or tells nothing of it."""
    act_roots = roots(done)
    is_denied = False
    for clause in clauses(text):
        if denies_act(clause):
            is_meant = part is not None and part.is_meant(clause)
            if is_meant or not any(other.is_meant(clause) for other in others):
                is_denied = True
        elif 2 * len(roots(clause.text) & act_roots) >= len(act_roots):
            return False
    return is_denied or (not claims and numbers(text).isdisjoint(numbers(done)))


def _tells_another(claims: Sequence[str], results: Results) -> bool:
    """Whether an agent tells of its act with a figure that stands neither in its calls nor in what they returned."""
    returned: list[str] = []
    for call, result in results:
        returned.append(f"{json.dumps(call['args'], default=str)} {result.text}")
    known = "\n".join(returned)
    return any(unsourced(claim, known, known) for claim in claims)
