"""Who speaks for an agent: its model, and after one failure of that the fallback its card names (decisions 10)."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from kit.core.errors import KitError
from kit.core.event import Purpose
from kit.runtime.budget import OverBudget
from kit.runtime.call_model import BoundModel, Hear, ModelReply, call_model
from kit.runtime.context import RunContext


@dataclass(slots=True)
class Voice:
    """The model of one invocation, or of an orchestrator for one turn.

    Once the fallback has taken over it stays; it gets no second chance of its own.
    """

    model: BoundModel
    fallback: BoundModel | None = None
    patience: float | None = None
    """Seconds the model has for one call while the fallback still stands behind it."""
    limit: float | None = None
    """Seconds that any one call may take, the fallback's too; None: as long as whoever asks has."""
    trusted: bool = True
    """False once a foreign principal's data turned up: no other model is asked after that."""
    instead_of: str | None = None

    def ask(
        self,
        messages: Sequence[BaseMessage],
        ctx: RunContext,
        *,
        agent: str,
        purpose: Purpose,
        hear: Hear | None = None,
        news: int = 1,
    ) -> Awaitable[ModelReply]:
        """Calls the model. The fallback is asked on a model's error or time-out only, never over a budget, never after a word
        of the first answer was passed on, and inside whatever time and tokens are left. Raises TimeoutError at the limit."""
        if self.fallback is None or not self.trusted:
            reply = call_model(
                self.model, messages, ctx, agent=agent, purpose=purpose, hear=hear, news=news, instead_of=self.instead_of
            )
            return reply if self.limit is None else _in_time(reply, self.limit)
        return self._either(self.fallback, messages, ctx, agent, purpose, hear, news)

    async def _either(
        self,
        fallback: BoundModel,
        messages: Sequence[BaseMessage],
        ctx: RunContext,
        agent: str,
        purpose: Purpose,
        hear: Hear | None,
        news: int,
    ) -> ModelReply:
        heard: list[str] = []

        def listen(piece: str) -> None:
            heard.append(piece)
            if hear is not None:
                hear(piece)

        listener = None if hear is None else listen
        reply = call_model(self.model, messages, ctx, agent=agent, purpose=purpose, hear=listener, news=news)
        try:
            return await _in_time(reply, min((s for s in (self.patience, self.limit) if s is not None), default=None))
        except (OverBudget, KitError):
            raise
        except Exception:
            if not heard:
                self.model, self.fallback, self.instead_of = fallback, None, self.model.spec.key
                return await self.ask(messages, ctx, agent=agent, purpose=purpose, hear=hear, news=news)
            raise


async def _in_time(reply: Awaitable[ModelReply], seconds: float | None) -> ModelReply:
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await reply
    except TimeoutError as error:
        if deadline.expired():
            raise TimeoutError(f"no answer within {seconds:g} s") from error
        raise
