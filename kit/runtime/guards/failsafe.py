"""A model that saw more intents than it called sub-agents for is asked once more, for what is missing."""

from collections.abc import Sequence

from kit.core.bodies.guard import GuardActed, GuardAction
from kit.core.language.words import content_words, words
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.core.picture import strip_marks
from kit.models.message import system_text
from kit.runtime.agents.llm_agent import Decision, LLMAgent, Thread
from kit.runtime.context import RunContext, TurnState
from kit.runtime.dispatch import run_to_outcome


def missing(asks: Sequence[AgentCall], turn: TurnState) -> int:
    """How many calls a decision lacks: min(reported intents, cap) less the calls made (decisions 4)."""
    return min(turn.reported, turn.cap) - len(asks)


async def complete(
    decision: Decision, thread: Thread, call: AgentCall, lead: LLMAgent, ctx: RunContext
) -> Decision:
    """Asks once more for missing calls, adds what is new, records what still lacks; a retry that
    fails changes nothing."""
    turn = ctx.turn
    text = strip_marks(call.query)
    note = _demand(decision.asks, missing(decision.asks, turn), text)
    _say(ctx, lead, "asked_again", note)
    again = await _once_more(note, thread, call, lead, ctx)
    turn.reported = max([turn.reported, *(ask.intent_count or 0 for ask in again)])
    asks = merge(decision.asks, again, text, ctx.callees)
    added = asks[len(decision.asks) :]
    turn.emitted_later += len(added)
    if added:
        _say(ctx, lead, "merged", "the retry added " + ", ".join(ask.agent for ask in added))
    # Once is enough: a model that forgets a part twice forgets it a third time, and the answer owns up to it.
    if missing(asks, turn) > 0:
        _say(
            ctx,
            lead,
            "short",
            f"{turn.reported - len(asks)} of {turn.reported} intents without a call after the retry",
        )
    if added:
        return decision.calling(asks)
    return decision


def merge(
    first: tuple[AgentCall, ...], again: Sequence[AgentCall], text: str, callees: frozenset[str]
) -> tuple[AgentCall, ...]:
    """The first calls, then those of the retry that are new, as many as intents were reported;
    agents that do not exist stay out.

    A second call to the same sub-agent is new only when it brings up something of the user's text
    that the first did not.
    """
    calls = list(first)
    count = max((ask.intent_count or 0 for ask in (*first, *again)), default=0)
    topic = content_words(text)
    for ask in again:
        words_asked: set[str] = set()
        is_first = True
        for call in calls:
            if call.agent == ask.agent:
                is_first = False
                words_asked |= content_words(call.query)
        is_new = is_first or not (content_words(ask.query) & topic) <= words_asked
        if is_new and ask.agent in callees and len(calls) < count:
            calls.append(ask)
    return tuple(calls)


async def _once_more(
    note: str, thread: Thread, call: AgentCall, lead: LLMAgent, ctx: RunContext
) -> tuple[AgentCall, ...]:
    """The calls of the retry; none when it fails, which must not cost the user the calls in hand."""
    retry: list[AgentCall] = []

    async def ask(call: AgentCall, ctx: RunContext) -> Outcome:
        stronger: Thread = [system_text(f"{thread[0].text}\n\n{note}"), *thread[1:]]
        retry.extend((await lead.decide_again(stronger, call, ctx)).asks)
        return Answer(call_id=call.call_id, agent=call.agent, text=note)

    outcome = await run_to_outcome(ask, call, ctx, lead.time_budget)
    if isinstance(outcome, Failure):
        _say(ctx, lead, "short", f"the retry failed: {outcome.reason}")
    return tuple(retry)


def _demand(asks: Sequence[AgentCall], lacking: int, text: str) -> str:
    """What the model is told: what it called, what the message still holds, and to call only for that."""
    calls = "; ".join(f'ask_{ask.agent} with "{ask.query}"' for ask in asks)
    call_words = frozenset[str]().union(*(content_words(ask.query) for ask in asks))
    open_words = [word for word in words(text) if content_words(word) - call_words]
    about = ""
    if open_words:
        about = f" These words of the message are in none of them: {' '.join(open_words)}."
    return (
        f"<missing_calls>You counted {len(asks) + lacking} intents in the latest message and called for {len(asks)}: "
        f"{calls}.{about} "
        f"Call the tools for the missing {lacking} now, all in one reply, each with its own part "
        f"of the message word for word. "
        "Do not repeat a call already made.</missing_calls>"
    )


def _say(ctx: RunContext, lead: LLMAgent, action: GuardAction, reason: str) -> None:
    ctx.emit(GuardActed(guard="failsafe", action=action, agent=lead.card.id, reason=reason))
