"""Supervisor: the orchestrator asks one sub-agent at a time and decides again after each."""

from kit.core.outcome import AgentCall, Outcome
from kit.patterns.agents_as_tools import compose_rounds
from kit.runtime.agents.llm_agent import Decision, LLMAgent
from kit.runtime.context import RunContext
from kit.runtime.guards.checks import decide, verbatim
from kit.runtime.message import instructed
from kit.runtime.pattern import Pattern

TURNS = (
    "Call one tool at a time. After each result you decide again: call the next one, or "
    "answer when nothing is missing."
)

OFF = {"failsafe": False, "overlap": False, "verbatim": False}
"""Guards that compare a decision with the whole message: here it is about one part of it by design."""


async def run_supervisor(call: AgentCall, ctx: RunContext) -> Outcome:
    """Decide, ask one, decide again, until the model answers; at most as many steps as the cap has calls, and one."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = instructed(lead.open(call, ctx), TURNS)
    guards = ctx.turn.settings.guards
    decision = _first(await decide(thread, call, lead, ctx, guards.replace(**OFF)), ctx)
    if guards.verbatim and [ask.intent_count or 1 for ask in decision.asks] == [1]:
        decision = verbatim(decision, call, ctx)
    return await compose_rounds(decision, thread, call, lead, ctx, ctx.turn.cap + 1, _first)


def _first(decision: Decision, ctx: RunContext) -> Decision:
    """Returns the decision with its first call alone; the others were not made and may be made next."""
    if len(decision.asks) < 2:
        return decision
    for ask in decision.asks[1:]:
        reason = "one at a time: the supervisor decides again after the first"
        ctx.guarded("one_at_a_time", "dropped", reason, ask)
    return decision.calling(decision.asks[:1])


SUPERVISOR = Pattern("supervisor", run_supervisor)
