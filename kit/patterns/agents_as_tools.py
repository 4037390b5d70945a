"""Agents as tools, mediated: the orchestrator's model routes by tool calls and composes what comes back (PC2-S5.3, S5.4)."""

from kit.core.outcome import AgentCall, Answer, Failure, FanOut, Outcome
from kit.runtime.acknowledge import settle
from kit.runtime.agent import Decision, LLMAgent, Thread
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.guards import fastpath

MAX_ROUNDS = 4
"""Rounds of calls an orchestrator gets in one turn; the cap counts over all of them."""


async def mediated(call: AgentCall, ctx: RunContext) -> Outcome:
    """Decide, fan out, compose. Every word the user reads is the orchestrator's (PC2-FR-4)."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = lead.open(call, ctx)
    decision = fastpath(await lead.decide(thread, call, ctx), call, lead, ctx)
    fans: list[FanOut] = []
    while decision.calls and len(fans) < MAX_ROUNDS:
        fans.append(await fan_out(decision.asks, ctx))
        decision = await _compose(lead, thread, decision, fans, call, ctx)
    if not decision.text:
        return Failure(
            call_id=call.call_id, agent=call.agent, axis="invocation", reason="insufficient", detail="no text composed"
        )
    return Answer(call_id=call.call_id, agent=call.agent, text=settle(decision.text, ctx))


async def _compose(
    lead: LLMAgent, thread: Thread, decision: Decision, fans: list[FanOut], call: AgentCall, ctx: RunContext
) -> Decision:
    news = await lead.tool_messages(decision, fans[-1], ctx)
    thread += news
    return await lead.compose(thread, call, ctx, live=all(fan.clean for fan in fans), news=len(news) - 1)
