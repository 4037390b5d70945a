"""A team whose agents can be made to fail: same cards, same prompts, same tools."""

from dataclasses import fields, replace
from typing import Any

from kit.core.fault import InjectedFault
from kit.core.fault_injection import active_faults
from kit.core.outcome import AgentCall
from kit.models.faulty import FaultyModel
from kit.runtime.agents.llm_agent import LLMAgent, Thread
from kit.runtime.context import RunContext
from kit.runtime.team import Team


class FaultyAgent(LLMAgent):
    """An agent that raises InjectedFault where the turn was told to break it."""

    def open(self, call: AgentCall, ctx: RunContext) -> Thread:
        for fault in active_faults(self.card.id, "agent"):
            raise InjectedFault(fault)
        return super().open(call, ctx)


def faulty_team(team: Team) -> Team:
    """The same team, ready for faults; an agent that is no LLM agent stays as it is. A fallback model is left alone."""
    return team.with_agents(
        {key: _faulty(agent) for key, agent in team.agents.items() if isinstance(agent, LLMAgent)}
    )


def _faulty(agent: LLMAgent) -> FaultyAgent:
    values: dict[str, Any] = {}
    for field in fields(agent):
        values[field.name] = getattr(agent, field.name)
    values["model"] = replace(
        agent.model, runnable=FaultyModel(agent.card.id, agent.model.runnable)
    )
    return FaultyAgent(**values)
