"""A sub-agent that is somebody's service: it takes one string, keeps no history of ours, and says what it has cost."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from kit.core.card import AgentCard
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.runtime.context import RunContext

Service = Callable[[str, RunContext], Awaitable[str | Answer] | AsyncGenerator[str, None]]
"""Asks the service on behalf of `ctx.inherited.principal`, for its whole answer or for pieces as
they come; an Answer says with its `usage` what it has spent. Whatever it raises becomes a failure of
this agent."""


@dataclass(frozen=True, slots=True)
class ApiAgent:
    """An agent without a model. It cannot read a conversation, so prior_context is put before the question."""

    card: AgentCard
    service: Service
    time_budget: float | None = None

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Asks one question and returns the answer; an empty one is a failure.

        Where sub-agents speak to the user themselves, pieces reach the user as they come.
        """
        question = call.query
        if call.prior_context:
            question = f"{call.prior_context}\n\n{question}"
        reply = self.service(question, ctx)
        if isinstance(reply, AsyncGenerator):
            answer = await _gather(reply, ctx)
        else:
            answer = await reply
        if isinstance(answer, str):
            answer = Answer(call_id=call.call_id, agent=self.card.id, text=answer)
        if answer.text.strip():
            fields = {"call_id": call.call_id, "agent": self.card.id, "text": answer.text.strip()}
            return answer.model_copy(update=fields)
        return Failure(
            usage=answer.usage,
            call_id=call.call_id,
            agent=self.card.id,
            axis="invocation",
            reason="insufficient",
            detail="empty answer",
        )


async def _gather(pieces: AsyncGenerator[str, None], ctx: RunContext) -> str:
    hear = None
    if ctx.slot is not None:
        hear = ctx.slot(ctx.path)
    text = ""
    async with aclosing(pieces):
        async for piece in pieces:
            text += piece
            if hear is not None and piece:
                hear(piece)
    return text
