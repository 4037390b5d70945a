"""A sub-agent that is somebody's service: it takes one string, keeps no history of ours, and costs no tokens (SAT-8)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kit.core.card import AgentCard
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.runtime.context import RunContext

Ask = Callable[[str, RunContext], Awaitable[str]]
"""Asks the service on behalf of `ctx.inherited.principal`; whatever it raises becomes a failure of this agent."""


@dataclass(frozen=True, slots=True)
class ApiAgent:
    """An agent without a model. It cannot read a conversation, so prior_context is put before the question."""

    card: AgentCard
    ask: Ask
    time_budget: float | None = None

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """One question, one answer."""
        text = await self.ask(f"{call.prior_context}\n\n{call.query}" if call.prior_context else call.query, ctx)
        if text.strip():
            return Answer(call_id=call.call_id, agent=self.card.id, text=text.strip())
        return Failure(call_id=call.call_id, agent=self.card.id, axis="invocation", reason="insufficient", detail="empty answer")
