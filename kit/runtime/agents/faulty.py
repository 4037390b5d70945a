"""An agent that can be made to fail: same card, same prompt and tools, or the same system behind it.

It fails by the faults that its turn began with, or by one that comes while it is at work.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from langchain_core.messages.tool import ToolCall

from kit.bridges.part import Bridge, BridgeFault, Part, Piece, Question, Reported
from kit.core.fault import Fault, InjectedFault, Kind
from kit.core.fault_injection import active_faults, current_injection, land
from kit.core.outcome import AgentCall, Outcome
from kit.models.faulty import REFUSAL, FaultyModel
from kit.runtime.agents.api_agent import ApiAgent
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.call_tool import ToolRun
from kit.runtime.context import RunContext
from kit.runtime.message import Thread


class BreakingPoint:
    """`with BreakingPoint(agent, kinds):` breaks off what its block awaits once a fault of these kinds comes.

    What is broken off is cancelled as by `asyncio.timeout`; the block then ends without an error,
    and `fault` says why. A stop or a deadline that comes at the same moment goes first.
    """

    def __init__(self, agent: str, kinds: Collection[Kind]):
        self.fault: Fault | None = None
        self._kinds = kinds
        self._breaker = (agent, self._break_off)
        self._injection = current_injection()

    def __enter__(self) -> "BreakingPoint":
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        if self._injection is not None:
            self._injection.breakers.append(self._breaker)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._injection is not None:
            self._injection.breakers.remove(self._breaker)
        if self.fault is None:
            return False
        is_own = self._task.uncancel() <= self._cancelling
        return is_own and kind is asyncio.CancelledError

    def _break_off(self, fault: Fault) -> bool:
        if self.fault is not None or fault.kind not in self._kinds:
            return False
        self.fault = fault
        self._task.cancel()
        return True


_STOPS: frozenset[Kind] = frozenset(("raise", "hang"))
"""Kinds that end an agent's work in the middle of it."""
_FORGES: frozenset[Kind] = frozenset(("foreign_principal",))
"""Kinds that are of a service's reply."""


async def breakable(agent: str, work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Awaits an agent's work; what stops it in the middle makes it raise InjectedFault, or hang first."""
    point = BreakingPoint(agent, _STOPS)
    with point:
        return await work
    fault = point.fault
    assert fault is not None
    if fault.kind == "hang":
        await asyncio.sleep(fault.pause)
    raise InjectedFault(fault)


class FaultyAgent(LLMAgent):
    """An agent that raises InjectedFault where the turn was told to break it."""

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        return await breakable(self.card.id, super().run(call, ctx))

    async def call_tools(
        self, calls: Sequence[ToolCall], ctx: RunContext, owners: Mapping[str, str] | None = None
    ) -> list[ToolRun]:
        """Runs calls of its tools. Lookups on whose way a reply is forged are made again, and get that
        one; an act is not made twice for that."""
        if any(call["name"] in self.acts for call in calls):
            return await super().call_tools(calls, ctx, owners)
        with BreakingPoint(self.card.id, _FORGES):
            return await super().call_tools(calls, ctx, owners)
        return await super().call_tools(calls, ctx, owners)

    def open(self, call: AgentCall, ctx: RunContext) -> Thread:
        for fault in active_faults(self.card.id, "agent"):
            raise InjectedFault(fault)
        return super().open(call, ctx)


def faulty_agent(agent: LLMAgent) -> FaultyAgent:
    """Returns the same agent, ready for faults; a fallback model is left alone."""
    model = replace(agent.model, runnable=FaultyModel(agent.card.id, agent.model.runnable))
    values: dict[str, Any] = {**vars(agent), "model": model}
    return FaultyAgent(**values)


@dataclass(frozen=True, slots=True)
class FaultyBridge:
    """A bridge whose system cannot be started, raises, hangs, drips or refuses where the turn was told so.

    What goes wrong inside that system, at its own tools, is out of reach.
    """

    agent: str
    inner: Bridge

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


class FaultyApiAgent(ApiAgent):
    """An agent elsewhere whose question is broken off where the turn was told to break it."""

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        return await breakable(self.card.id, super().run(call, ctx))


def faulty_api_agent(agent: ApiAgent) -> ApiAgent:
    """Returns the same agent, its system ready for faults."""
    bridge = FaultyBridge(agent.card.id, agent.bridge)
    return FaultyApiAgent(agent.card, bridge, agent.policy, agent.contract)
