"""Checks between a model's decision and its execution, in one order; each one that acts leaves an
event with its reason."""

from collections.abc import Sequence

from langchain_core.messages.tool import ToolCall

from kit.compose.parts import Guards
from kit.core.bodies.guard import CallDropped, GuardActed
from kit.core.bodies.speech import Text
from kit.core.language.clauses import Clause, clauses
from kit.core.language.small_talk import small_talk
from kit.core.language.words import content_words, words
from kit.core.outcome import AgentCall, Answer
from kit.core.picture import strip_marks
from kit.core.transcript import transcript
from kit.runtime.agents.contract import refusal
from kit.runtime.agents.llm_agent import Decision, LLMAgent, Thread
from kit.runtime.call_ledger import request_key
from kit.runtime.context import RunContext, TurnState
from kit.runtime.guards.echo import awaited_by, said_last
from kit.runtime.guards.failsafe import complete, missing

SHORT = 4
"""Words of a message that is never split."""


async def decide(
    thread: Thread, call: AgentCall, lead: LLMAgent, ctx: RunContext, guards: Guards
) -> Decision:
    """Makes the routing call and returns its decision as it is executed. Of a text that fastpath
    would not let stand, nothing is shown before a sub-agent is called."""
    live = not (guards.fastpath and _must_route(call, ctx))
    return await apply_guards(
        await lead.decide(thread, call, ctx, live=live), thread, call, lead, ctx, guards
    )


async def apply_guards(
    decision: Decision,
    thread: Thread,
    call: AgentCall,
    lead: LLMAgent,
    ctx: RunContext,
    guards: Guards,
) -> Decision:
    """Returns the decision as it is executed: asked again when short, then echo, fastpath, overlap,
    verbatim (decisions 4-7, 25).

    `thread` is what the model was shown. With every guard off only call ids are put in order.
    Nothing here is told to the user. This is for a turn's first decision; of what follows, `tidy`
    says. Of a picture without words the model alone can say what it is about: overlap and verbatim
    leave that to it.
    """
    ctx.turn.note(decision.asks)
    decision = tidy(decision, ctx)
    if guards.failsafe and missing(decision.asks, ctx.turn) > 0:
        decision = tidy(await complete(decision, thread, call, lead, ctx), ctx)
    if guards.echo:
        decision = echo(decision, call, lead, ctx)
    mistaken = [
        own for own in decision.own if own["name"] not in lead.tools
    ]  # told to the model, which calls again
    declined = refusal(decision.reply.message) is not None  # nobody else is asked what it refused
    may_reroute = not decision.asks and not mistaken and not declined
    if guards.fastpath and may_reroute and _must_route(call, ctx):
        decision = fastpath(decision, call, lead, ctx)
    if [ask for ask in decision.asks if ask.query != call.query] and strip_marks(call.query):
        if guards.overlap and len(decision.asks) > 1:
            decision = overlap(decision, call, ctx)
        if guards.verbatim:
            decision = verbatim(decision, call, ctx)
    return decision


def tidy(decision: Decision, ctx: RunContext) -> Decision:
    """Returns a decision in which every call has an id of its own within the turn and no request
    repeats another.

    Decisions after the first get this and no other guard (docs/architecture.md says why). A request
    that failed may be made again; when all were answered, the text beside them is the answer.
    """
    decision = _with_own_ids(decision, ctx)
    turn = ctx.turn
    asks = decision.asks
    for ask in asks:
        turn.wording.setdefault(ask.call_id, ask.query)
    if not asks or not turn.settings.guards.duplicate:
        return decision
    if turn.outcomes:
        answers = _answered_requests(turn)
    else:
        answers = frozenset[tuple[str, str]]()
    if not answers and len({ask.agent for ask in asks}) == len(asks):
        return decision
    new = [ask for ask in asks if request_key(ask.agent, ask.query) not in answers]
    if len(new) < len(asks):
        decision = set_aside(
            decision, new, "duplicate", "the same request was answered in an earlier round", ctx
        )
    first: dict[tuple[str, str], AgentCall] = {}
    for ask in new:
        first.setdefault(request_key(ask.agent, ask.query), ask)
    if len(first) < len(new):
        reason = "the same request to the same sub-agent was made twice"
        decision = set_aside(decision, tuple(first.values()), "duplicate", reason, ctx)
    return decision


def _answered_requests(turn: TurnState) -> frozenset[tuple[str, str]]:
    """Returns the requests of this turn that have an answer, in the model's words and in those that were sent."""
    queries = {call.call_id: call.query for call in turn.calls}
    answers = [outcome for outcome in turn.outcomes if isinstance(outcome, Answer)]
    texts = (queries, turn.wording)
    return frozenset(
        request_key(a.agent, words[a.call_id])
        for words in texts
        for a in answers
        if a.call_id in words
    )


def echo(decision: Decision, call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Sends a short reply that answers the support agent's question to that agent, whatever the model made of it."""
    support = ctx.turn.settings.support_agent
    if (
        support is None
        or [ask.agent for ask in decision.asks] == [support]
        or awaited_by(call.query, ctx) != support
    ):
        return decision
    keep = [ask for ask in decision.asks if ask.agent == support][:1] or decision.asks[:1]
    if keep:
        decision = set_aside(
            decision, keep, "echo", "the reply only answers support's question", ctx
        )
        if keep[0].agent == support:
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
    if agent is None:
        default = ctx.turn.settings.default_sub_agent or ""
        return _rerouted(
            decision,
            default,
            "fastpath",
            "not small talk: routed to the default sub-agent",
            call,
            lead,
            ctx,
        )
    return _rerouted(
        decision,
        agent,
        "fastpath",
        "a short reply to the question of the agent in play",
        call,
        lead,
        ctx,
    )


def _must_route(call: AgentCall, ctx: RunContext) -> bool:
    """Whether a sub-agent is owed this message: anything but small talk on the allow-list, where a
    default one can be called."""
    default = ctx.turn.settings.default_sub_agent
    return (
        default is not None
        and default in ctx.callees
        and not small_talk(call.query, said_last(ctx))
    )


def overlap(decision: Decision, call: AgentCall, ctx: RunContext) -> Decision:
    """Drops calls that share no content word with the message, where other calls share one with its
    every part (decisions 25).

    A part is a clause; a message whose clauses cannot be told apart is one. Where no call shares a
    word, nobody is judged.
    """
    strange = [ask for ask in decision.asks if not _overlaps(ask.query, call.query)]
    keep = [ask for ask in decision.asks if ask not in strange]
    if (
        not strange
        or not keep
        or _parts_without(keep, call.query)
        or not content_words(strip_marks(call.query))
    ):
        return decision
    reason = "it shares no content word with the message, and the other calls cover every part"
    return set_aside(decision, keep, "overlap", reason, ctx)


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
    strange = [ask for ask in asks if not _overlaps(ask.query, call.query)]
    others = [ask for ask in asks if ask not in strange]
    if len(strange) == 1 and others:
        free = _parts_without(others, call.query)
    else:
        free = []
    if not free or not all(part.content for part in free) or ctx.turn.left_out(asks).count:
        return decision
    own = _reworded(
        strange[0],
        ", ".join(part.text for part in free),
        "it carries what no other call covers",
        ctx,
    )
    return decision.with_asks(tuple([own if ask is strange[0] else ask for ask in asks]))


def set_aside(
    decision: Decision, keep: Sequence[AgentCall], guard: str, reason: str, ctx: RunContext
) -> Decision:
    """Returns the decision with only these calls; the others are recorded, never run and never told
    to the user (decisions 7)."""
    ids = {ask.call_id for ask in keep}
    others = tuple(ask for ask in decision.asks if ask.call_id not in ids)
    for ask in others:
        ctx.emit(
            GuardActed(
                guard=guard, action="dropped", agent=ask.agent, call_id=ask.call_id, reason=reason
            )
        )
        ctx.emit(CallDropped(agent=ask.agent, call_id=ask.call_id, reason="guard", guard=guard))
    ctx.turn.calls += others
    ctx.turn.set_aside += others
    return decision.with_asks(tuple(keep), set_aside=(*decision.set_aside, *others))


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
    if decision.asks:
        call_id = decision.asks[0].call_id
    else:
        call_id = f"{call.call_id}-{guard}"
    if decision.asks:
        count = decision.asks[0].intent_count
    else:
        count = 1
    ask = AgentCall(call_id=call_id, agent=agent, query=call.query, intent_count=count)
    ctx.emit(
        GuardActed(guard=guard, action="rerouted", agent=agent, call_id=call_id, reason=reason)
    )
    page = transcript(ctx.turn.log.events)
    line = lead.card.preamble or ctx.turn.locale.sentences.preamble
    if not page.lead:
        ctx.emit(Text(channel="lead", text=line, synthetic=True))
    elif page.lead != line:
        ctx.replace_lead(line)
    return decision.calling((ask,))


def _with_own_ids(decision: Decision, ctx: RunContext) -> Decision:
    ids = [ask.call_id for ask in decision.asks]
    if decision.own:
        ids += [own["id"] or "" for own in decision.own]
    ids_in_use = {ask.call_id for ask in ctx.turn.calls}.union(filter(None, ctx.turn.tool_call_ids))
    if len({*ids, "", *ids_in_use}) == 1 + len(ids) + len(ids_in_use):
        return decision
    fresh = [_fresh(call_id, ids_in_use) for call_id in ids]
    asks = tuple(
        ask if ask.call_id == new else ask.model_copy(update={"call_id": new})
        for ask, new in zip(decision.asks, fresh, strict=False)
    )
    own = tuple(
        ToolCall(name=own["name"], args=own["args"], id=new)
        for own, new in zip(decision.own, fresh[len(asks) :], strict=True)
    )
    return decision.calling(asks, own)


def _fresh(call_id: str, ids_in_use: set[str]) -> str:
    """The id itself, or one made from it that is not taken; the same on every run."""
    new = call_id or "call-1"
    number = 1
    while new in ids_in_use:
        number += 1
        new = f"{call_id or 'call'}-{number}"
    ids_in_use.add(new)
    return new


def _reworded(ask: AgentCall, text: str, reason: str, ctx: RunContext) -> AgentCall:
    if ask.query == text:
        return ask
    ctx.emit(
        GuardActed(
            guard="verbatim", action="reworded", agent=ask.agent, call_id=ask.call_id, reason=reason
        )
    )
    return ask.model_copy(update={"query": text})


def _parts_without(asks: Sequence[AgentCall], text: str) -> list[Clause]:
    """Returns the parts of a text that share no content word with any of these calls."""
    queries = [content_words(ask.query) for ask in asks]
    return [
        part
        for part in clauses(strip_marks(text), opening=True)
        if all(part.content.isdisjoint(q) for q in queries)
    ]


def _overlaps(query: str, text: str) -> bool:
    """Whether a query speaks of what the text speaks of; one without content words must be the user's own words."""
    query_words = content_words(query)
    if query_words:
        return not query_words.isdisjoint(content_words(strip_marks(text)))
    return set(words(query)) <= set(words(text))
