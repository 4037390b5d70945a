"""What a turn was made to fail by, read from its events: from its start or in the middle, and whether it did."""

from collections.abc import Sequence

from kit.core.bodies.call import AgentEnded, AgentStarted, ModelStarted
from kit.core.bodies.turn import AgentBroken, TurnStarted
from kit.core.event import Event
from kit.core.fault import Fault
from kit.core.outcome import Answer, Outcome
from kit.core.value import Value


class WantedFault(Value):
    """A fault that somebody wanted in a turn."""

    fault: str
    """As `agent=kind`."""
    agent: str = ""
    """Whose fault it is; empty where the words of an earlier version cannot be read."""
    at: float | None = None
    """When it was added, in seconds since the turn began; None for one that was there at the start."""
    was_asked: bool = False
    """Whether its agent was asked in the turn at all."""
    has_cost: bool = False
    """Whether its agent then ended without an answer, or with one that lacks data."""


def wanted_faults(events: Sequence[Event]) -> tuple[WantedFault, ...]:
    """Returns the faults of a turn, in the order in which they were wanted; one of a kind for each agent."""
    wanted: dict[str, WantedFault] = {}
    asked: set[str] = set()
    for event in events:
        match event.body:
            case TurnStarted(faults=faults):
                for text in faults:
                    wanted[text] = WantedFault(fault=text, agent=_agent_of(text))
            case AgentBroken(agent=agent, fault=kind):
                text = str(Fault(where=agent, kind=kind))
                if text not in wanted:
                    wanted[text] = WantedFault(fault=text, agent=agent, at=event.at)
            case AgentStarted(agent=agent) | ModelStarted(agent=agent):
                asked.add(agent)
            case AgentEnded(agent=agent, outcome=outcome) if _lacks(outcome):
                for text, fault in wanted.items():
                    if fault.agent == agent:
                        wanted[text] = fault.replace(has_cost=True)
            case _:
                pass
    return tuple(fault.replace(was_asked=fault.agent in asked) for fault in wanted.values())


def _agent_of(text: str) -> str:
    try:
        return Fault.from_text(text).where
    except ValueError:
        return ""


def _lacks(outcome: Outcome) -> bool:
    """Whether an outcome is less than an answer, and neither its user nor a question to them is why."""
    if isinstance(outcome, Answer):
        return outcome.is_partial
    return not outcome.is_stopped
