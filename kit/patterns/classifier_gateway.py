"""The gateway baseline: a structured-output classifier in front of agents that answer one after
another.

It is what agents-as-tools replaced, kept faithful so that the two can be compared: no preamble, no
composition, mixed messages in sequence. The labels are the deck's cards, so it runs over any deck;
the support agent goes first where there is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kit.core.outcome import AgentCall, Outcome
from kit.core.schema.json_value import is_list
from kit.models.message import human_text, system_text
from kit.patterns.agents_as_tools import outcome_of
from kit.patterns.live_slot import live_slot, slot_outcome
from kit.runtime.agents.llm_agent import Decision, LLMAgent
from kit.runtime.call_model import call_model
from kit.runtime.context import RunContext
from kit.runtime.guards.checks import echo, verbatim
from kit.runtime.handoff import ROUTE, in_sequence
from kit.runtime.job import QUERY, run_job
from kit.runtime.pattern import Pattern

CLASSIFY = (
    "You are a classifier. Classify the user's latest message, and only that one; you do "
    "not answer it. The labels:"
)


async def run_gateway(call: AgentCall, ctx: RunContext) -> Outcome:
    """Classify, then each labelled agent in turn; every agent after the first is asked for what is
    left of the message."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    decision = await classify(call, lead, ctx)
    if not decision.asks:
        return outcome_of(ctx.turn.locale.sentences.outside, call)
    async with live_slot(ctx) as slot:
        await slot.ask([decision.asks[0]])
        for ask in decision.asks[1:]:
            await slot.ask(await _rewritten(ask, decision, call, ctx))
    return slot_outcome(slot, call, ctx)


CLASSIFIER_GATEWAY = Pattern("classifier_gateway", run_gateway)


async def classify(call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Returns the labels as calls, in the order in which they are made, after the guards of a
    gateway: echo and verbatim."""
    labels = "\n".join(f"{card.id}: {card.description}" for card in lead.sub_cards.values())
    thread = [
        system_text(f"{CLASSIFY}\n{labels}{ctx.turn.memory.suffix('')}"),
        *lead.open(call, ctx)[1:],
    ]
    reply = await call_model(ctx.turn.jobs[ROUTE], thread, ctx, agent=call.agent, purpose="decide")
    args: Mapping[str, object] = {}
    for submission in reversed(reply.calls):
        if submission["name"] == ROUTE:
            args = submission["args"]
    decision = Decision(reply, _in_order(args.get("labels"), args.get("query"), call, lead, ctx))
    ctx.turn.note(decision.asks)
    if ctx.turn.settings.guards.echo:
        decision = echo(decision, call, lead, ctx)
    if ctx.turn.settings.guards.verbatim and len(decision.asks) == 1:
        return verbatim(decision, call, ctx)
    return decision


def _in_order(
    labels: object, query: object, call: AgentCall, lead: LLMAgent, ctx: RunContext
) -> tuple[AgentCall, ...]:
    known: list[str] = []
    if is_list(labels):
        # A model may repeat a label, or make one up.
        names = set(labels)
        known = [card.id for card in lead.sub_cards.values() if card.id in names]
    agents = in_sequence(known, ctx.turn.settings.support_agent)
    default = ctx.turn.settings.default_sub_agent
    if not agents and default is not None and default in ctx.callees:
        agents = [default]
    words = call.query
    if isinstance(query, str) and query.strip():
        words = query
    calls: list[AgentCall] = []
    for number, agent in enumerate(agents, 1):
        calls.append(
            AgentCall(call_id=f"route-{number}", agent=agent, query=words, intent_count=len(agents))
        )
        # The query is the first agent's; what is left for the others is worded when the first has answered.
        words = call.query
    return tuple(calls)


async def _rewritten(
    ask: AgentCall, decision: Decision, call: AgentCall, ctx: RunContext
) -> Sequence[AgentCall]:
    """The call with what is left of the message for it, written by the helper model; the whole
    message where that fails."""
    siblings = ", ".join(sibling.agent for sibling in decision.asks if sibling is not ask)
    task = f"For the specialist {ask.agent}; {siblings} have their parts."
    text = await run_job(QUERY, [human_text(call.query)], task, ctx, news=2)
    asks = (decision.asks[0], ask.replace(query=text or call.query))
    rewritten = replace(decision, asks=asks)
    if ctx.turn.settings.guards.verbatim:
        rewritten = verbatim(rewritten, call, ctx)
    return rewritten.asks[1:]
