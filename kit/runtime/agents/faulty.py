"""An agent that can be made to fail: same card, same prompt, same tools."""

from dataclasses import fields, replace
from typing import Any

from kit.core.fault import InjectedFault
from kit.core.fault_injection import active_faults
from kit.core.outcome import AgentCall
from kit.models.faulty import FaultyModel
from kit.runtime.agents.llm_agent import LLMAgent, Thread
from kit.runtime.context import RunContext


class FaultyAgent(LLMAgent):
    """An agent that raises InjectedFault where the turn was told to break it."""

    def open(self, call: AgentCall, ctx: RunContext) -> Thread:
        for fault in active_faults(self.card.id, "agent"):
            raise InjectedFault(fault)
        return super().open(call, ctx)


def faulty_agent(agent: LLMAgent) -> FaultyAgent:
    """Returns the same agent, ready for faults; a fallback model is left alone."""
    values: dict[str, Any] = {}
    for field in fields(agent):
        values[field.name] = getattr(agent, field.name)
    values["model"] = replace(
        agent.model, runnable=FaultyModel(agent.card.id, agent.model.runnable)
    )
    return FaultyAgent(**values)
