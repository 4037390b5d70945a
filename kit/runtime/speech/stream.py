"""What reaches the user while a turn runs: text in readable portions, progress in the assistant's words."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from kit.core.event import Body, Status, StatusLine, Text, TextReplaced
from kit.core.status import known
from kit.runtime.answer.raw_text import leaks, looks_raw
from kit.runtime.context import RunContext, TurnState
from kit.runtime.speech.status_lines import Narrator, Said, wording

WINDOW = 0.03
"""Seconds in which pieces of text are gathered into one event: the eye sees no difference, the page does."""
_UNFINISHED = re.compile(r"[A-Za-z0-9_-]+\Z")
"""A word that may go on: whether it is an identifier shows when it has ended."""

_BACK = 40
"""Characters said before that are looked at again with what follows them."""


class Speech:
    """Turns pieces of a model's text into Text events: the first at once, the rest gathered.

    Whole words go out only, and from the first one that looks raw on nothing more does: what to make of such a text is decided
    when all of it is known (kit/runtime/answer/acknowledge.py). With `instead`, that line takes its place at once.
    """

    def __init__(self, ctx: RunContext, channel: Literal["lead", "answer"], instead: str = ""):
        self._ctx = ctx
        self._channel: Literal["lead", "answer"] = channel
        self._instead = instead
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._first: int | None = None
        self._muted = False
        self._before = ""
        self.begun = False

    def say(self, piece: str) -> None:
        self._pieces.append(piece)
        if self._first is None and (self.begun or not piece[-1:].isalnum()):
            self._flush()
        self.begun = True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WINDOW, self._due)

    def end(self) -> None:
        """Says what is still held back; call it whether or not the model finished."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush(last=True)

    def _due(self) -> None:
        self._timer = None
        self._flush()

    def _flush(self, last: bool = False) -> None:
        if not self._pieces or self._muted:
            return
        text = "".join(self._pieces)
        self._pieces = []
        if not last and (held := _UNFINISHED.search(text)):
            text, self._pieces = text[: held.start()], [held[0]]
        if not text:
            return
        seen = self._before + text
        if looks_raw(seen) and leaks(seen, self._ctx):
            self._mute()
            return
        self._before = seen[-_BACK:]
        event = self._ctx.emit(Text(channel=self._channel, text=text))
        if self._first is None:
            self._first = event.seq

    def _mute(self) -> None:
        self._muted = True
        if self._instead and self._first is None:
            self._ctx.emit(Text(channel=self._channel, text=self._instead, synthetic=True))
        elif self._instead and self._first is not None:
            self._ctx.emit(TextReplaced(channel=self._channel, from_seq=self._first, text=self._instead))


def emitter(ctx: RunContext) -> Callable[[Body], None]:
    """What a tool emits through: a status is kept as it is, and read as the deck's policy has it."""

    def emit(body: Body) -> None:
        ctx.emit(body)
        if isinstance(body, Status):
            _tell(body, ctx)

    return emit


def _tell(status: Status, ctx: RunContext) -> None:
    turn = ctx.turn
    turn.silent.pop(ctx.path, None)
    if turn.progress is not None:
        turn.progress.say(turn.progress.narrator.hear(status.agent, status.status, turn.log.now()))
    elif line := narrate(status, turn.phrases):
        ctx.emit(line)


def narrate(status: Status, phrases: Mapping[str, str]) -> StatusLine | None:
    """The assistant's words for a status; None for one outside the vocabulary, which is never shown (PC2-S5.7)."""
    term = known(status.status)
    return None if term is None else StatusLine(agent=status.agent, text=wording(term, phrases))


class Progress:
    """Drives a turn's narrator in time: says its lines, and wakes it when one falls due. `ctx` is the turn's own."""

    def __init__(self, ctx: RunContext):
        turn = ctx.turn
        self.narrator = Narrator(turn.status_policy, turn.phrases)
        self._ctx = ctx
        self._timer: asyncio.TimerHandle | None = None

    def say(self, lines: Sequence[Said]) -> None:
        """Emits lines and sets the alarm for the next; a line about several agents names none."""
        for line in lines:
            self._ctx.emit(StatusLine(agent=line.agents[0] if len(line.agents) == 1 else "", text=line.text))
        if self._timer is not None:
            self._timer.cancel()
        due = self.narrator.due
        wait = None if due is None else max(0.0, due - self._ctx.turn.log.now())
        self._timer = None if wait is None else asyncio.get_running_loop().call_later(wait, self._wake)

    def _wake(self) -> None:
        self._timer = None
        # An alarm may go off a hair early by the log's clock: it speaks for the moment it was set for.
        self.say(self.narrator.wake(max(self._ctx.turn.log.now(), self.narrator.due or 0.0)))


def watch(ctx: RunContext, agent: str, path: str, began: float) -> None:
    """An invocation is at work: should nothing be heard of it for a while, it is said to be thinking (PC2-NFR-5).

    One alarm serves all that are silent in a turn, so that a turn in which nobody is slow pays for one timer.
    """
    turn = ctx.turn
    quiet = turn.status_policy.quiet_ms
    if quiet is not None:
        turn.silent[path] = ctx, agent, began
        if turn.alarm is None:
            turn.alarm = asyncio.get_running_loop().call_later(quiet / 1000, _alarm, turn, quiet / 1000)
    if turn.progress is not None:
        turn.progress.narrator.began(agent)


def unwatch(ctx: RunContext, agent: str, path: str) -> None:
    """It has ended, however it did; the last one leaves no timer behind."""
    turn = ctx.turn
    turn.silent.pop(path, None)
    if turn.alarm is not None and not turn.silent:
        turn.alarm.cancel()
        turn.alarm = None
    if turn.progress is not None:
        turn.progress.say(turn.progress.narrator.ended(agent, turn.log.now()))


def _alarm(turn: TurnState, quiet: float) -> None:
    now = turn.log.now() + 1e-3  # a timer may go off a hair early by the log's clock
    for path, (ctx, agent, began) in list(turn.silent.items()):
        if began + quiet <= now:
            del turn.silent[path]
            status = Status(agent=agent, status="thinking_it_through")
            ctx.emit(status)
            _tell(status, ctx)
    next_at = min((began for _, _, began in turn.silent.values()), default=None)
    wait = None if next_at is None else max(0.0, next_at + quiet - turn.log.now())
    turn.alarm = None if wait is None else asyncio.get_running_loop().call_later(wait, _alarm, turn, quiet)
