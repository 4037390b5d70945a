"""Checks between a model's decision and its execution, in one order; each one that acts leaves an
event with its reason."""

import inspect
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from langchain_core.messages.tool import ToolCall

from kit.compose.locale import language_of
from kit.compose.parts import Guards
from kit.core.bodies.guard import CallDropped
from kit.core.bodies.speech import Text
from kit.core.errors import FOREIGN, CodeError, describe_error
from kit.core.language.clauses import Clause, clauses
from kit.core.language.danger import DangerFinder
from kit.core.language.small_talk import small_talk
from kit.core.language.words import content_words, words
from kit.core.outcome import AgentCall, Failure, Outcome
from kit.core.picture import strip_marks
from kit.core.transcript import transcript
from kit.runtime.agents.contract import refusal
from kit.runtime.agents.llm_agent import Decision, LLMAgent
from kit.runtime.call_ledger import Request, request_key
from kit.runtime.context import RunContext, TurnState
from kit.runtime.dispatch import run_to_outcome
from kit.runtime.guards.echo import awaited_by
from kit.runtime.message import LONGEST, Thread, instructed

_AGENT = attrgetter("agent")
SHORT = 4
"""Words of a message that is never split."""


async def decide(
    thread: Thread, call: AgentCall, lead: LLMAgent, ctx: RunContext, guards: Guards
) -> Decision:
    """Makes the routing call and returns its decision as it is executed: asked again when short, then
    echo, fastpath, overlap, verbatim (decisions 4-7, 25), then the deck's own guards.

    With every guard off only call ids are put in order. Of a text that fastpath would not let stand,
    nothing is shown before a sub-agent is called; nothing else here is told to the user. This is for a
    turn's first decision; of what follows, `tidy` says. Of a picture without words the model alone can
    say what it is about: overlap and verbatim leave that to it.
    """
    must_route = guards.fastpath and _must_route(call, ctx)
    decision = await lead.decide(thread, call, ctx, live=not must_route)
    ctx.turn.note(decision.asks)
    decision = tidy(decision, ctx)
    expected = min(ctx.turn.reported, ctx.turn.cap)
    if guards.failsafe and len(decision.asks) < expected:
        decision = tidy(await complete(decision, thread, call, lead, ctx), ctx)
    # Echo goes before fastpath: the agent that asked is a better guess than the default one.
    if guards.echo:
        decision = echo(decision, call, lead, ctx)
    # A call of a tool that it does not have is told to the model, which calls again.
    has_mistaken_calls = False
    for tool_call in decision.own:
        if tool_call["name"] not in lead.tools:
            has_mistaken_calls = True
    # Nobody else is asked what the model refused.
    has_declined = refusal(decision.reply.message) is not None
    may_reroute = not decision.asks and not has_mistaken_calls and not has_declined
    if may_reroute and must_route:
        decision = fastpath(decision, call, lead, ctx)
    is_reworded = False
    for ask in decision.asks:
        if ask.query != call.query:
            is_reworded = True
    if is_reworded and strip_marks(call.query):
        if guards.overlap and len(decision.asks) > 1:
            decision = overlap(decision, call, ctx)
        if guards.verbatim:
            decision = verbatim(decision, call, ctx)
    for name, guard in ctx.turn.own_guards.items():
        decision = await _own(name, guard, decision, call, ctx)
    return decision


async def _own(
    name: str, guard: Callable[..., Any], decision: Decision, call: AgentCall, ctx: RunContext
) -> Decision:
    """Applies a guard of the deck's own, which is someone else's code. Raises CodeError, which names it, for one that
    raises or returns no decision."""
    try:
        result = guard(decision, call, ctx)
        if inspect.isawaitable(result):
            result = await result
    except FOREIGN as error:
        raise CodeError(f"guard {name!r} raised {describe_error(error)}") from error
    if not isinstance(result, Decision):
        raise CodeError(
            f"guard {name!r} returned a value of type {type(result).__name__}; return the decision, changed or not"
        )
    return result


def tidy(decision: Decision, ctx: RunContext) -> Decision:
    """Returns a decision in which every call has an id of its own within the turn and no request
    repeats another.

    Decisions after the first get this and no other guard (docs/architecture.md says why). A request
    that failed may be made again; when all were answered, the text beside them is the answer.
    """
    if not (decision.asks or decision.own):
        return decision
    decision = _with_own_ids(decision, ctx)
    turn = ctx.turn
    asks = decision.asks
    for ask in asks:
        turn.wording.setdefault(ask.call_id, ask.query)
    if not asks or not turn.settings.guards.duplicate:
        return decision
    answered = set[Request]()
    if turn.outcomes:
        answered = turn.answered_requests()
    elif len(set(map(_AGENT, asks))) == len(asks):
        # nearly every decision: its first calls, each to somebody else
        return decision
    unanswered = [ask for ask in asks if request_key(ask) not in answered]
    if len(unanswered) < len(asks):
        reason = "the same request was answered in an earlier round"
        decision = set_aside(decision, unanswered, "duplicate", reason, ctx)
    new_asks: dict[Request, AgentCall] = {}
    for ask in unanswered:
        new_asks.setdefault(request_key(ask), ask)
    if len(new_asks) < len(unanswered):
        reason = "the same request to the same sub-agent was made twice"
        decision = set_aside(decision, tuple(new_asks.values()), "duplicate", reason, ctx)
    return decision


def echo(decision: Decision, call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Sends a short reply that answers the support agent's question to that agent, whatever the model made of it."""
    support = ctx.turn.settings.support_agent
    if support is None or not ctx.turn.dynamic.in_play:
        return decision
    agents = [ask.agent for ask in decision.asks]
    if agents == [support] or awaited_by(call.query, ctx) != support:
        return decision
    if support in agents:
        keep = [decision.asks[agents.index(support)]]
    else:
        # its id and its count of parts go on with the call to support
        keep = decision.asks[:1]
    if keep:
        reason = "the reply only answers support's question"
        decision = set_aside(decision, keep, "echo", reason, ctx)
    if support in agents:
        return decision
    return _rerouted(
        decision, support, "echo", "a short reply to support's question", call, lead, ctx
    )


def fastpath(decision: Decision, call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Routes a message beside which the model called no sub-agent: its own refusal or question does
    not stand (decisions 5, 38).

    It goes to the agent whose question it answers, else to the default sub-agent.
    """
    agent = awaited_by(call.query, ctx)
    reason = "a short reply to the question of the agent in play"
    if agent is None:
        agent = ctx.turn.settings.default_sub_agent or ""
        reason = "not small talk: routed to the default sub-agent"
    return _rerouted(decision, agent, "fastpath", reason, call, lead, ctx)


def _must_route(call: AgentCall, ctx: RunContext) -> bool:
    """Whether a sub-agent is owed this message: anything but small talk on the allow-list, where a
    default one can be called."""
    default = ctx.turn.settings.default_sub_agent
    return (
        default is not None
        and default in ctx.callees
        and not small_talk(call.query, ctx.turn.memory.said_last())
    )


def overlap(decision: Decision, call: AgentCall, ctx: RunContext) -> Decision:
    """Drops calls that share no content word with the message, where other calls share one with its
    every part (decisions 25).

    A part is a clause; a message whose clauses cannot be told apart is one. Where no call shares a
    word, nobody is judged.
    """
    sharing, strange = _by_overlap(decision.asks, call.query)
    if not strange or not sharing or not content_words(strip_marks(call.query)):
        return decision
    if _parts_without(sharing, call.query):
        return decision
    reason = "it shares no content word with the message, and the other calls cover every part"
    return set_aside(decision, sharing, "overlap", reason, ctx)


def verbatim(decision: Decision, call: AgentCall, ctx: RunContext) -> Decision:
    """Gives the user's exact text to a single call and to a message of four words; of a split, a
    call that shares no word with the message gets the parts that no other call covers. Where those
    cannot be told it keeps the model's words."""
    asks = decision.asks
    reason = ""
    if len(asks) == 1:
        reason = "a single call carries the user's exact text"
    elif len(words(strip_marks(call.query))) <= SHORT:
        reason = f"a message of at most {SHORT} words is never split"
    if reason:
        return decision.with_asks(tuple([_reworded(ask, call.query, reason, ctx) for ask in asks]))
    sharing, strange = _by_overlap(asks, call.query)
    if len(strange) != 1 or not sharing or ctx.turn.coverage(asks).left_out.count:
        return decision
    free_parts = _parts_without(sharing, call.query)
    if not free_parts or not all(part.content for part in free_parts):
        return decision
    reason = "it carries what no other call covers"
    text = ", ".join(part.text for part in free_parts)
    reworded = _reworded(strange[0], text, reason, ctx)
    return decision.with_asks(tuple([reworded if ask is strange[0] else ask for ask in asks]))


def set_aside(
    decision: Decision, keep: Sequence[AgentCall], guard: str, reason: str, ctx: RunContext
) -> Decision:
    """Returns the decision with only these calls; the others are recorded, never run and never told
    to the user (decisions 7)."""
    kept_ids = {ask.call_id for ask in keep}
    dropped = tuple(ask for ask in decision.asks if ask.call_id not in kept_ids)
    for ask in dropped:
        ctx.guarded(guard, "dropped", reason, ask)
        ctx.emit(CallDropped(agent=ask.agent, call_id=ask.call_id, reason="guard", guard=guard))
    ctx.turn.calls += dropped
    ctx.turn.set_aside += dropped
    return decision.with_asks(tuple(keep), set_aside=(*decision.set_aside, *dropped))


def _rerouted(
    decision: Decision,
    agent: str,
    guard: str,
    reason: str,
    call: AgentCall,
    lead: LLMAgent,
    ctx: RunContext,
) -> Decision:
    """Returns the decision as one call to `agent` with the user's exact text; a preamble for
    another agent is replaced."""
    call_id = f"{call.call_id}-{guard}"
    count = 1
    if decision.asks:
        call_id = decision.asks[0].call_id
        count = decision.asks[0].intent_count
    ask = AgentCall(call_id=call_id, agent=agent, query=call.query, intent_count=count)
    ctx.guarded(guard, "rerouted", reason, ask)
    page = transcript(ctx.turn.log.events)
    line = ctx.turn.locale.line(lead.card.preamble)
    if not page.lead:
        ctx.emit(Text(channel="lead", text=line, synthetic=True))
    # The preamble may name the agent that the model meant, and another one is asked.
    elif page.lead != line:
        ctx.replace_lead(line)
    return decision.calling((ask,))


def _with_own_ids(decision: Decision, ctx: RunContext) -> Decision:
    """Returns a decision whose calls have ids of their own within the turn.

    A repeated id would let two results answer the same call, and providers refuse such a thread.
    """
    ids_in_use = set(filter(None, ctx.turn.tool_call_ids))
    for earlier in ctx.turn.calls:
        ids_in_use.add(earlier.call_id)
    is_changed = False
    asks: list[AgentCall] = []
    for ask in decision.asks:
        call_id = _fresh(ask.call_id, ids_in_use)
        if call_id != ask.call_id:
            is_changed = True
            ask = ask.replace(call_id=call_id)
        asks.append(ask)
    own: list[ToolCall] = []
    for tool_call in decision.own:
        call_id = _fresh(tool_call["id"] or "", ids_in_use)
        if call_id != tool_call["id"]:
            is_changed = True
        own.append(ToolCall(name=tool_call["name"], args=tool_call["args"], id=call_id))
    if not is_changed:
        return decision
    return decision.calling(tuple(asks), tuple(own))


def _fresh(call_id: str, ids_in_use: set[str]) -> str:
    """The id itself, or one made from it that is not taken; the same on every run."""
    fresh_id = call_id or "call-1"
    number = 1
    while fresh_id in ids_in_use:
        number += 1
        fresh_id = f"{call_id or 'call'}-{number}"
    ids_in_use.add(fresh_id)
    return fresh_id


def _reworded(ask: AgentCall, text: str, reason: str, ctx: RunContext) -> AgentCall:
    if ask.query == text:
        return ask
    ctx.guarded("verbatim", "reworded", reason, ask)
    return ask.replace(query=text)


def _parts_without(asks: Sequence[AgentCall], text: str) -> list[Clause]:
    """Returns the parts of a text that share no content word with any of these calls."""
    words_of_calls = frozenset[str]().union(*(content_words(ask.query) for ask in asks))
    parts: list[Clause] = []
    for part in clauses(strip_marks(text), opening=True):
        if part.content.isdisjoint(words_of_calls):
            parts.append(part)
    return parts


def _by_overlap(asks: Sequence[AgentCall], text: str) -> tuple[list[AgentCall], list[AgentCall]]:
    """Returns the calls that speak of what the text speaks of, and the others."""
    sharing: list[AgentCall] = []
    strange: list[AgentCall] = []
    for ask in asks:
        if _overlaps(ask.query, text):
            sharing.append(ask)
        else:
            strange.append(ask)
    return sharing, strange


def _overlaps(query: str, text: str) -> bool:
    """Whether a query speaks of what the text speaks of; one without content words must be the user's own words."""
    query_words = content_words(query)
    if query_words:
        return not query_words.isdisjoint(content_words(strip_marks(text)))
    return set(words(query)) <= set(words(text))


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
    ctx.guarded("failsafe", "asked_again", note)
    again = await _once_more(note, thread, call, lead, ctx)
    turn.reported = max([turn.reported, *(ask.intent_count or 0 for ask in again)])
    asks = merge(decision.asks, again, text, ctx.callees)
    added = asks[len(decision.asks) :]
    turn.emitted_later += len(added)
    if added:
        ctx.guarded(
            "failsafe", "merged", "the retry added " + ", ".join(ask.agent for ask in added)
        )
    # Once is enough: a model that forgets a part twice forgets it a third time, and the answer owns up to it.
    if missing(asks, turn) > 0:
        lacking = turn.reported - len(asks)
        reason = f"{lacking} of {turn.reported} intents without a call after the retry"
        ctx.guarded("failsafe", "short", reason)
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
        retry.extend((await lead.decide_again(instructed(thread, note), call, ctx)).asks)
        return call.answered(note)

    outcome = await run_to_outcome(ask, call, ctx, lead.time_budget)
    if isinstance(outcome, Failure):
        ctx.guarded("failsafe", "short", f"the retry failed: {outcome.reason}")
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


def answer_to_danger(message: str, dangers: Sequence[DangerFinder], ctx: RunContext) -> str | None:
    """Returns the deck's words for a message that speaks of danger to life; None for any other.

    Every locale of the deck is looked through, for people in need write in their own language, and they are answered
    in it. Where two locales hold the same words, the session's goes first.
    """
    if not dangers:
        return None
    # A message of any length is searched only as far as one is read at all.
    text = strip_marks(message)[:LONGEST]
    language = language_of(ctx.inherited.locale)
    own_language_first = sorted(
        dangers, key=lambda finder: language_of(finder.danger.id) != language
    )
    for finder in own_language_first:
        kind = finder.kind_of(text)
        if kind is not None:
            reason = f"the message speaks of {kind.replace('_', ' ')} ({finder.danger.id})"
            ctx.guarded("danger", "answered", reason)
            return finder.danger.kinds[kind].reply
    return None
