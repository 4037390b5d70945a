"""Direct: the same decision and the same fan-out as mediated, but the sub-agents speak to the user themselves."""

from kit.core.outcome import AgentCall, Outcome
from kit.patterns.agents_as_tools import compose_rounds
from kit.patterns.live_slot import live_slot, slot_outcome
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.context import RunContext
from kit.runtime.guards.checks import decide
from kit.runtime.pattern import Pattern


async def run_direct(call: AgentCall, ctx: RunContext) -> Outcome:
    """Decide, fan out, and let the first to produce speak live; nobody composes (decisions 1).

    A decision without sub-agents ends as in mediated: the orchestrator answers itself.
    """
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = lead.open(call, ctx)
    decision = await decide(thread, call, lead, ctx, ctx.turn.settings.guards)
    if not decision.asks:
        return await compose_rounds(decision, thread, call, lead, ctx)
    async with live_slot(ctx) as slot:
        fan = await slot.ask(decision.asks)
        if decision.own:
            await lead.tool_messages(decision, fan, ctx)
    return slot_outcome(slot, call, ctx)


DIRECT = Pattern("direct", run_direct, has_failsafe=True)
