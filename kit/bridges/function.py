"""Any function as a system: a plain one, an async one, or an async generator of pieces of text."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from kit.bridges.framework import text_with_context
from kit.bridges.part import Bridge, Part, Piece, Question, Reported
from kit.core.errors import CodeError


@dataclass(frozen=True, slots=True)
class FunctionBridge:
    """A function of one string, or of a string and the Principal it is asked for.

    It returns text or a Reported. An async generator gives pieces of text, and any other Part.
    """

    function: Callable[..., Any]
    takes_principal: bool
    source: str

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Calls the function; a plain one runs in a thread, which nobody can stop. Raises TypeError
        for an answer that is neither text nor a Reported."""
        arguments: list[Any] = [text_with_context(question)]
        if self.takes_principal:
            arguments.append(question.principal)
        if inspect.isasyncgenfunction(self.function):
            pieces = cast("AsyncGenerator[object, None]", self.function(*arguments))
            async with aclosing(pieces):
                async for piece in pieces:
                    yield self._piece(piece)
            return
        if inspect.iscoroutinefunction(self.function):
            reply = await self.function(*arguments)
        else:
            reply = await asyncio.to_thread(self.function, *arguments)
            if inspect.isawaitable(reply):
                reply = await reply
        yield self._reported(reply)

    def _piece(self, piece: object) -> Part:
        if isinstance(piece, str):
            return Piece(piece)
        if isinstance(piece, Part):
            return piece
        raise TypeError(f"{self.source} gave a piece of type {type(piece).__name__}; yield text")

    def _reported(self, reply: object) -> Reported:
        if isinstance(reply, str):
            return Reported(reply)
        if isinstance(reply, Reported):
            return reply
        kind = type(reply).__name__
        raise TypeError(
            f"{self.source} returned a value of type {kind}; return text or kit.Reported(text, ...)"
        )


def function_bridge(value: object, source: str) -> Bridge | None:
    """A bridge to a function, or to an object that is called like one; None for anything else.
    Raises CodeError for a function that cannot be asked with one string."""
    if isinstance(value, type) or not callable(value):
        return None
    function = cast("Callable[..., Any]", value)
    if not inspect.isroutine(value):
        # An object with `async def __call__` says what it is by that method alone.
        function = cast("Any", value).__call__
    parameters = list(inspect.signature(function).parameters.values())
    required = 0
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty and parameter.kind in _POSITIONAL:
            required += 1
    if required > 2 or not parameters:
        raise CodeError(
            f"{source} takes {required} arguments; write `async def answer(message)`, or "
            "`async def answer(message, principal)`"
        )
    return FunctionBridge(function, takes_principal=required == 2, source=source)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
