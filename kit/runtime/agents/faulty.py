"""An agent that can be made to fail: same card, same prompt and tools, or the same system behind it."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from typing import Any

from kit.bridges.part import Bridge, BridgeFault, Part, Piece, Question, Reported
from kit.core.fault import InjectedFault, Kind
from kit.core.fault_injection import active_faults, land
from kit.core.outcome import AgentCall
from kit.models.faulty import REFUSAL, FaultyModel
from kit.runtime.agents.api_agent import ApiAgent
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


@dataclass(frozen=True, slots=True)
class FaultyBridge:
    """A bridge whose system cannot be started, raises, hangs, drips or refuses where the turn was told so.

    What goes wrong inside that system, at its own tools, is out of reach.
    """

    agent: str
    inner: Bridge

    @property
    def tells_calls(self) -> bool:
        return self.inner.tells_calls

    @property
    def tells_usage(self) -> bool:
        return self.inner.tells_usage

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        for fault in active_faults(self.agent, "agent"):
            raise InjectedFault(fault)
        faults = {fault.kind: fault for fault in active_faults(self.agent, "model")}
        for kind in _WITHIN_REACH & faults.keys():
            land(faults[kind])
        if "refuses" in faults:
            raise BridgeFault("refusal", REFUSAL)
        if "hang" in faults:
            await asyncio.sleep(faults["hang"].pause)
        has_dripped = False
        async with aclosing(self.inner.ask(question)) as parts:
            async for part in parts:
                if "raise" in faults:
                    raise InjectedFault(faults["raise"])
                if "slow_drip" not in faults or not isinstance(part, Piece | Reported):
                    yield part
                    continue
                if isinstance(part, Piece) or not has_dripped:
                    has_dripped = True
                    async for piece in _drip(part.text, faults["slow_drip"].pause):
                        yield piece
                if isinstance(part, Reported):
                    yield part


_WITHIN_REACH: frozenset[Kind] = frozenset(("raise", "hang", "slow_drip", "refuses"))


async def _drip(text: str, pause: float) -> AsyncGenerator[Piece, None]:
    for word in re.findall(r"[^ ]* |[^ ]+", text):
        await asyncio.sleep(pause)
        yield Piece(word)


def faulty_api_agent(agent: ApiAgent) -> ApiAgent:
    """Returns the same agent, its system ready for faults."""
    return replace(agent, bridge=FaultyBridge(agent.card.id, agent.bridge))
