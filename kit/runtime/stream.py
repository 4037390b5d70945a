"""Text as it reaches the user while a turn runs: in readable portions, and nothing raw."""

import asyncio
import string
from typing import Literal

from kit.core.bodies.speech import Text, TextReplaced
from kit.core.value import builder
from kit.runtime.answer.clauses import asserts
from kit.runtime.answer.raw_text import OPENINGS, leaks, looks_raw
from kit.runtime.context import RunContext

_new_text = builder(Text)
WINDOW = 0.03
"""Seconds in which pieces of text are gathered into one event: the eye sees no difference, the page does."""
_OF_WORDS = string.ascii_letters + string.digits + "_-"
"""A text that ends with one of these ends in a word that may go on: whether it is an identifier
shows when it has ended."""

_BACK = 40
"""Characters said before that are looked at again with what follows them."""


class Speech:
    """Turns pieces of a model's text into Text events: the first at once, the rest gathered.

    Whole words go out only, and from the first one that looks raw on nothing more does: what to
    make of such a text is decided when all of it is known (kit/runtime/answer/acknowledge.py).
    """

    channel: Literal["lead", "answer"] = "answer"

    def __init__(self, ctx: RunContext):
        self._ctx = ctx
        self._pieces: list[str] = []
        self._word_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._first: int | None = None
        self._muted = False
        self._is_held = False
        """Whether the next words wait."""
        self._before = ""
        self.begun = False

    def say(self, piece: str, _tool: str = "", /) -> None:
        self._pieces.append(piece)
        if piece.strip(_OF_WORDS):
            self._word_ended = True
        # The first words go out at once, for they are what a waiting user sees; the rest is gathered.
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
        if not self._pieces or self._muted or self._is_held:
            return
        # To join and search what is held for every piece of an endless word would take time in the
        # square of its length.
        if not self._word_ended and not last:
            return
        self._word_ended = False
        text = "".join(self._pieces)
        self._pieces = []
        if not last:
            finished = text.rstrip(_OF_WORDS)
            unfinished = text[len(finished) :]
            if unfinished:
                self._pieces.append(unfinished)
            text = finished
        if not text:
            return
        if self._must_wait(text):
            self._pieces = [text, *self._pieces]
            return
        if self._first is None and text.lstrip().startswith(OPENINGS):
            self._mute()
            return
        recent = self._before + text
        # What was said last is looked at again: an identifier may come in two pieces.
        if looks_raw(recent) and leaks(recent, self._ctx):
            self._mute()
            return
        self._before = recent[-_BACK:]
        event = self._ctx.emit(_new_text(channel=self.channel, text=text))
        if self._first is None:
            self._first = event.seq

    def _must_wait(self, text: str) -> bool:
        """Whether the next words have to wait."""
        return False

    def _mute(self) -> None:
        self._muted = True


class Preamble(Speech):
    """What a routing call says while it is not known whether it will call anybody.

    If it calls, its text comes before any result and can know no figure and nothing of the user: from the first such
    claim on it is held back, and the card's line takes its place. If it calls nobody its text is the answer, and
    stands.
    """

    channel = "lead"

    def __init__(self, ctx: RunContext, preamble: str | None, message: str):
        super().__init__(ctx)
        self._preamble = preamble
        self._message = message
        self._calls_follow = False
        self._stands = False

    def line(self) -> str:
        """Returns the words that stand where the model says none of its own."""
        return self._ctx.turn.locale.line(self._preamble)

    def precedes_calls(self) -> None:
        """Notes that this text is followed by calls."""
        self._calls_follow = True
        if self._is_held:
            self._replace()

    def is_the_answer(self) -> None:
        """Notes that nobody is called."""
        self._stands = True
        self._is_held = False

    def _must_wait(self, text: str) -> bool:
        if self._stands or not asserts(self._before + text, self._message):
            return False
        self._is_held = True
        if self._calls_follow:
            self._replace()
        return True

    def _replace(self) -> None:
        self._ctx.guarded("preamble", "mended", "a claim before there was any result")
        self._is_held = False
        self._mute()

    def _mute(self) -> None:
        super()._mute()
        line = self.line()
        if not line:
            return
        if self._first is None:
            self._ctx.emit(Text(channel="lead", text=line, synthetic=True))
        else:
            self._ctx.emit(TextReplaced(channel="lead", from_seq=self._first, text=line))
