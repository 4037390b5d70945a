"""Checks between a model's decision and its execution, in one order; each one that acts leaves an event with its reason."""

from collections.abc import Sequence

from langchain_core.messages.tool import ToolCall

from kit.compose.parts import Guards
from kit.core.event import CallDropped, GuardActed
from kit.core.language.small_talk import small_talk
from kit.core.language.words import content_words, words
from kit.core.outcome import AgentCall, Answer
from kit.core.picture import strip_marks
from kit.core.transcript import transcript
from kit.runtime.agents.llm_agent import PREAMBLE, Decision, LLMAgent, Thread
from kit.runtime.context import RunContext, TurnState
from kit.runtime.guards.echo import awaited_by, said_last
from kit.runtime.guards.failsafe import complete, missing

SHORT = 4
"""Words of a message that is never split."""
_Request = tuple[str, str]
"""An agent and what it is asked, spaces and case aside."""


async def apply_guards(
    decision: Decision, thread: Thread, call: AgentCall, lead: LLMAgent, ctx: RunContext, guards: Guards
) -> Decision:
    """Returns the decision as it is executed: asked again when short, then echo, fastpath, overlap, verbatim (decisions 4 to 7).

    `thread` is what the model was shown. With every guard off only call ids are put in order. Nothing here is told to the user.
    This is for a turn's first decision; of what follows, `tidy` says.
    Of a picture without words the model alone can say what it is about: overlap and verbatim leave that to it.
    """
    decision = tidy(decision, ctx)
    if guards.failsafe and missing(decision.asks, ctx.turn.cap) > 0:
        decision = tidy(await complete(decision, thread, call, lead, ctx), ctx)
    if guards.echo:
        decision = echo(decision, call, lead, ctx)
    if guards.fastpath and not decision.asks and not decision.own:
        decision = fastpath(decision, call, lead, ctx)
    if [ask for ask in decision.asks if ask.query != call.query] and strip_marks(call.query):
        if guards.overlap and len(decision.asks) > 1:
            decision = overlap(decision, call, ctx)
        if guards.verbatim:
            decision = verbatim(decision, call, ctx)
    return decision


def tidy(decision: Decision, ctx: RunContext) -> Decision:
    """Returns a decision in which every call has an id of its own within the turn and no request repeats another.

    Decisions after the first get this and no other guard (docs/architecture.md says why). A request that failed may be made
    again; when all were answered, the text beside them is the answer.
    """
    decision = _with_own_ids(decision, ctx)
    turn, asks = ctx.turn, decision.asks
    if not asks or not turn.settings.guards.duplicate:
        return decision
    for ask in asks:
        turn.wording.setdefault(ask.call_id, ask.query)
    answers = _answered_requests(turn) if turn.outcomes else frozenset[_Request]()
    if not answers and len({ask.agent for ask in asks}) == len(asks):
        return decision
    new = [ask for ask in asks if _request(ask.agent, ask.query) not in answers]
    if len(new) < len(asks):
        decision = set_aside(decision, new, "duplicate", "the same request was answered in an earlier round", ctx)
    first: dict[_Request, AgentCall] = {}
    for ask in new:
        first.setdefault(_request(ask.agent, ask.query), ask)
    if len(first) < len(new):
        reason = "the same request to the same sub-agent was made twice"
        decision = set_aside(decision, tuple(first.values()), "duplicate", reason, ctx)
    return decision


def _request(agent: str, query: str) -> _Request:
    return agent, " ".join(query.casefold().split())


def _answered_requests(turn: TurnState) -> frozenset[_Request]:
    """Returns the requests of this turn that have an answer, in the model's words and in those that were sent."""
    queries = {call.call_id: call.query for call in turn.calls}
    answers = [outcome for outcome in turn.outcomes if isinstance(outcome, Answer)]
    requests = (_request(a.agent, words[a.call_id]) for words in (queries, turn.wording) for a in answers if a.call_id in words)
    return frozenset(requests)


def echo(decision: Decision, call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Sends a short reply that answers the support agent's question to that agent, whatever the model made of it."""
    support = ctx.turn.settings.support_agent
    if support is None or [ask.agent for ask in decision.asks] == [support] or awaited_by(call.query, ctx) != support:
        return decision
    keep = [ask for ask in decision.asks if ask.agent == support][:1] or decision.asks[:1]
    if keep:
        decision = set_aside(decision, keep, "echo", "the reply only answers support's question", ctx)
        if keep[0].agent == support:
            return decision
    return _rerouted(decision, support, "echo", "a short reply to support's question", call, lead, ctx)


def fastpath(decision: Decision, call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Lets a reply without calls stand only for small talk on the allow-list; anything else is routed (decisions 5, 6).

    It goes to the agent whose question it answers, else to the default sub-agent. With no default sub-agent the reply stands:
    the orchestrator says itself that nothing fits.
    """
    default = ctx.turn.settings.default_sub_agent
    if default is None or default not in ctx.callees or small_talk(call.query, said_last(ctx)):
        return decision
    agent = awaited_by(call.query, ctx)
    if agent is None:
        return _rerouted(decision, default, "fastpath", "not small talk: routed to the default sub-agent", call, lead, ctx)
    return _rerouted(decision, agent, "fastpath", "a short reply to the question of the agent in play", call, lead, ctx)


def overlap(decision: Decision, call: AgentCall, ctx: RunContext) -> Decision:
    """Drops calls of a mixed decision whose query shares no content word with the user's text.

    Skipped for a text without content words. One call always stays: when none overlaps, the first, with the user's exact text.
    """
    topic = content_words(strip_marks(call.query))
    if not topic:
        return decision
    relevant = tuple(ask for ask in decision.asks if _overlaps(ask.query, call.query, topic))
    if len(relevant) == len(decision.asks):
        return decision
    if not relevant:
        relevant = (_reworded(decision.asks[0], call.query, "overlap", "no call shares a word with the message", ctx),)
    return set_aside(decision, relevant, "overlap", "its query shares no content word with the message", ctx)


def verbatim(decision: Decision, call: AgentCall, ctx: RunContext) -> Decision:
    """Gives the user's exact text to a single call, to a message of four words and to a split that does not overlap with it."""
    asks = tuple([_exact(ask, decision, call.query, ctx) for ask in decision.asks])
    return decision if asks == decision.asks else decision.with_asks(asks)


def set_aside(decision: Decision, keep: Sequence[AgentCall], guard: str, reason: str, ctx: RunContext) -> Decision:
    """Returns the decision with only these calls; the others are recorded, never run and never told to the user (decisions 7)."""
    ids = {ask.call_id for ask in keep}
    others = tuple(ask for ask in decision.asks if ask.call_id not in ids)
    for ask in others:
        ctx.emit(GuardActed(guard=guard, action="dropped", agent=ask.agent, call_id=ask.call_id, reason=reason))
        ctx.emit(CallDropped(agent=ask.agent, call_id=ask.call_id, reason="guard", guard=guard))
    ctx.turn.calls += others
    ctx.turn.set_aside += others
    return decision.with_asks(tuple(keep), set_aside=(*decision.set_aside, *others))


def _rerouted(
    decision: Decision, agent: str, guard: str, reason: str, call: AgentCall, lead: LLMAgent, ctx: RunContext
) -> Decision:
    """Returns the decision as one call to `agent` with the user's exact text; a preamble for another agent is replaced."""
    call_id = decision.asks[0].call_id if decision.asks else f"{call.call_id}-{guard}"
    count = decision.asks[0].intent_count if decision.asks else 1
    ask = AgentCall(call_id=call_id, agent=agent, query=call.query, intent_count=count)
    ctx.emit(GuardActed(guard=guard, action="rerouted", agent=agent, call_id=call_id, reason=reason))
    page, line = transcript(ctx.turn.log.events), lead.card.preamble or PREAMBLE
    if page.lead and page.lead != line:
        ctx.replace_lead(line)
    return decision.calling((ask,))


def _with_own_ids(decision: Decision, ctx: RunContext) -> Decision:
    ids = [ask.call_id for ask in decision.asks]
    if decision.own:
        ids += [own["id"] or "" for own in decision.own]
    ids_in_use = {ask.call_id for ask in ctx.turn.calls}
    if len({*ids, "", *ids_in_use}) == 1 + len(ids) + len(ids_in_use):
        return decision
    fresh = [_fresh(call_id, ids_in_use) for call_id in ids]
    asks = tuple(
        ask if ask.call_id == new else ask.model_copy(update={"call_id": new})
        for ask, new in zip(decision.asks, fresh, strict=False)
    )
    own = tuple(
        ToolCall(name=own["name"], args=own["args"], id=new) for own, new in zip(decision.own, fresh[len(asks) :], strict=True)
    )
    return decision.calling(asks, own)


def _fresh(call_id: str, ids_in_use: set[str]) -> str:
    """The id itself, or one made from it that is not taken; the same on every run."""
    new, number = call_id or "call-1", 1
    while new in ids_in_use:
        number += 1
        new = f"{call_id or 'call'}-{number}"
    ids_in_use.add(new)
    return new


def _exact(ask: AgentCall, decision: Decision, text: str, ctx: RunContext) -> AgentCall:
    plain = strip_marks(text)
    if len(decision.asks) == 1:
        return _reworded(ask, text, "verbatim", "a single call carries the user's exact text", ctx)
    if len(words(plain)) <= SHORT:
        return _reworded(ask, text, "verbatim", f"a message of at most {SHORT} words is never split", ctx)
    if _overlaps(ask.query, text, content_words(plain)):
        return ask
    return _reworded(ask, text, "verbatim", "its query shares no content word with the message", ctx)


def _reworded(ask: AgentCall, text: str, guard: str, reason: str, ctx: RunContext) -> AgentCall:
    if ask.query == text:
        return ask
    ctx.emit(GuardActed(guard=guard, action="reworded", agent=ask.agent, call_id=ask.call_id, reason=reason))
    return ask.model_copy(update={"query": text})


def _overlaps(query: str, text: str, topic: frozenset[str]) -> bool:
    """Whether a query speaks of what the text speaks of; one without content words must be the user's own words."""
    if query == text:
        return True
    query_words = content_words(query)
    return not topic.isdisjoint(query_words) if query_words else set(words(query)) <= set(words(text))
