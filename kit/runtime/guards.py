"""Checks between a model's decision and its execution; each one that acts leaves an event."""

from kit.core.event import Guarded, TextReplaced
from kit.core.outcome import AgentCall
from kit.core.transcript import transcript
from kit.models.offline.routing import small_talk
from kit.runtime.agent import PREAMBLE, Decision, LLMAgent
from kit.runtime.context import RunContext


def fastpath(decision: Decision, call: AgentCall, lead: LLMAgent, ctx: RunContext) -> Decision:
    """Lets a reply without calls stand only for small talk on the allow-list; anything else is routed (SAT-6, decisions 5).

    With no default sub-agent the reply stands: the orchestrator says itself that nothing fits.
    """
    default = ctx.turn.default_sub_agent
    if decision.calls or default is None or default not in ctx.callees or small_talk(call.query, _said_last(ctx)):
        return decision
    said = transcript(ctx.turn.log.events)
    ctx.emit(Guarded(guard="fastpath", agent=default, reason="not small talk: routed to the default sub-agent"))
    if said.lead:
        first = next(event.seq for event in ctx.turn.log.events if event.kind == "text")
        ctx.emit(TextReplaced(channel="lead", from_seq=first, text=lead.card.preamble or PREAMBLE))
    ask = AgentCall(call_id=f"{call.call_id}-default", agent=default, query=call.query, intent_count=1)
    return lead.calling(decision, (ask,))


def _said_last(ctx: RunContext) -> str:
    """The assistant's last words: "yes" after a question is an answer, not small talk."""
    return next((message.text for message in reversed(ctx.turn.history("")) if message.role == "assistant"), "")
