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
    """The model of one invocation. Once the fallback has taken over it stays; it gets no second chance of its own."""

    model: BoundModel
    fallback: BoundModel | None = None
    patience: float | None = None
    """Seconds the model has for one call while the fallback still stands behind it."""
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
        of the first answer was passed on, and inside whatever time and tokens are left."""
        if self.fallback is None or not self.trusted:
            return call_model(
                self.model, messages, ctx, agent=agent, purpose=purpose, hear=hear, news=news, instead_of=self.instead_of
            )
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
        try:
            async with asyncio.timeout(self.patience):
                return await call_model(self.model, messages, ctx, agent=agent, purpose=purpose, hear=listener, news=news)
        except (OverBudget, KitError):
            raise
        except Exception:
            if not heard:
                self.model, self.fallback, self.instead_of = fallback, None, self.model.spec.key
                return await self.ask(messages, ctx, agent=agent, purpose=purpose, hear=hear, news=news)
            raise
