"""Calls an agent's model, and after one failure of that the fallback its card names (decisions 10)."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from langchain_core.messages import BaseMessage

from kit.core.bodies.call import Purpose
from kit.core.errors import KitError
from kit.runtime.bound_model import BoundModel, Voice
from kit.runtime.budget import Deadline, OverBudget
from kit.runtime.call_model import ModelReply, call_model
from kit.runtime.context import RunContext
from kit.runtime.speech.narration import Hear


def call_with_fallback(
    voice: Voice,
    messages: Sequence[BaseMessage],
    ctx: RunContext,
    *,
    agent: str,
    purpose: Purpose,
    hear: Hear | None = None,
    news: int = 1,
) -> Awaitable[ModelReply]:
    """Calls the voice's model; arguments and result are those of `call_model`.

    The fallback is asked on a model's error or time-out only, never over a budget, never after a
    word of the first answer was passed on, and inside whatever time and tokens are left. Raises
    TimeoutError at the voice's limit.
    """
    call = partial(call_model, messages=messages, ctx=ctx, agent=agent, purpose=purpose, news=news)
    if voice.fallback is None or not voice.may_fall_back:
        reply = call(voice.model, hear=hear, instead_of=voice.instead_of)
        if voice.limit is None:
            return reply
        return _in_time(reply, voice.limit)
    return _call_either(voice, voice.fallback, call, hear)


async def _call_either(
    voice: Voice,
    fallback: BoundModel,
    call: Callable[..., Awaitable[ModelReply]],
    hear: Hear | None,
) -> ModelReply:
    spoke = False

    def listen(piece: str, tool: str = "", /) -> None:
        nonlocal spoke
        spoke = True
        if hear is not None:
            hear(piece, tool)

    reply = call(voice.model, hear=None if hear is None else listen)
    try:
        return await _in_time(
            reply, min((s for s in (voice.patience, voice.limit) if s is not None), default=None)
        )
    except (OverBudget, KitError):
        raise
    except Exception:
        # A second voice after the first words would contradict what the user has read.
        if not spoke:
            voice.model, voice.fallback, voice.instead_of = fallback, None, voice.model.spec.key
            return await _in_time(
                call(fallback, hear=hear, instead_of=voice.instead_of), voice.limit
            )
        raise


async def _in_time(reply: Awaitable[ModelReply], seconds: float | None) -> ModelReply:
    with Deadline(seconds):
        return await reply
