"""What reaches the user while a turn runs: text in readable portions, progress in the assistant's words."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

from kit.core.event import STATUSES, Body, Status, StatusLine, Text
from kit.runtime.context import RunContext

WINDOW = 0.03
"""Seconds in which pieces of text are gathered into one event: the eye sees no difference, the page does."""


class Speech:
    """Turns pieces of a model's text into Text events: the first at once, the rest gathered."""

    def __init__(self, ctx: RunContext, channel: Literal["lead", "answer"]):
        self._ctx = ctx
        self._channel: Literal["lead", "answer"] = channel
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self.begun = False

    def say(self, piece: str) -> None:
        self._pieces.append(piece)
        if not self.begun:
            self.begun = True
            self._flush()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WINDOW, self._due)

    def end(self) -> None:
        """Says what is still held back; call it whether or not the model finished."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _due(self) -> None:
        self._timer = None
        self._flush()

    def _flush(self) -> None:
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self._ctx.emit(Text(channel=self._channel, text=text))


def emitter(ctx: RunContext) -> Callable[[Body], None]:
    """What a tool emits through: a known status is followed by the assistant's words for it."""

    def emit(body: Body) -> None:
        ctx.emit(body)
        if isinstance(body, Status):
            line = narrate(body, ctx.turn.phrases)
            if line is not None:
                ctx.emit(line)

    return emit


def narrate(status: Status, phrases: Mapping[str, str]) -> StatusLine | None:
    """The assistant's words for a status; None for one outside the vocabulary, which is never shown (PC2-S5.7)."""
    if status.status not in STATUSES:
        return None
    words = phrases.get(status.status) or status.status.replace("_", " ").capitalize() + "…"
    return StatusLine(agent=status.agent, text=words)
