"""The live slot: sub-agents that speak to the user themselves, one at a time, the first to produce first."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kit.core.bodies.speech import Separator, Text, TextReplaced
from kit.core.outcome import AgentCall, Answer, FanOut, Outcome
from kit.models.json_prose import prose
from kit.patterns.agents_as_tools import outcome_of
from kit.runtime.answer.acknowledge import settle
from kit.runtime.context import RunContext
from kit.runtime.dispatch import dispatch, fan_out
from kit.runtime.speech.narration import Hear
from kit.runtime.stream import Speech

GAP = "\n\n"
"""Between two parts, for the reader; the separator event is for history alone."""


@dataclass(slots=True)
class _Part:
    """What one invocation has to say, as far as it is known."""

    agent: str
    waiting: deque[str | None] = field(default_factory=deque[str | None])
    """Pieces not spoken yet; None: what was said before stands for nothing."""
    text: str = ""
    """What stands of its words, spoken or waiting."""
    complete: bool = False


class LiveSlot:
    """One stream to the user, held by one part at a time; the others buffer and follow in the order
    they began to speak."""

    def __init__(self, ctx: RunContext):
        self._ctx = ctx
        self._parts: dict[str, _Part] = {}
        self._order: list[_Part] = []
        self._news = asyncio.Event()
        self._closed = False

    @property
    def text(self) -> str:
        """The answers in the order in which they reached the user."""
        return GAP.join(part.text.strip() for part in self._order if part.text.strip())

    def listen(self, path: str) -> Hear | None:
        """Returns what gets the words of the invocation at `path`, and "" when they turn out to lead to a tool call."""
        part = self._parts.get(path)
        if part is None:
            return None
        return lambda piece, _="": self._say(part, piece) if piece else self._take_back(part)

    async def ask(self, calls: Sequence[AgentCall]) -> FanOut:
        """Runs calls at the same time as `fan_out` does, each with a voice of its own."""
        return await fan_out(calls, self._ctx._replace(slot=self.listen), self._carry)

    async def _carry(
        self, call: AgentCall, ctx: RunContext, position: str, endings: dict[str, Outcome]
    ) -> Outcome:
        """Carries a call out with a voice of its own; what its answer still lacks on the page is said at its end."""
        part = self._parts[f"{ctx.path}/{position}.{call.agent}"] = _Part(call.agent)
        try:
            outcome = await dispatch(call, ctx, position, endings)
            if isinstance(outcome, Answer):
                answer = prose(outcome.text)
            else:
                answer = ""
            if part.text.strip() != answer:
                self._take_back(part)
                if answer:
                    self._say(part, answer)
            return outcome
        finally:
            # Also of one that failed: the part after it would wait for ever.
            part.complete = True
            self._news.set()

    def close(self) -> None:
        """No further part begins; `drive` ends when the last one has been spoken."""
        self._closed = True
        self._news.set()

    async def drive(self) -> None:
        """Speaks the live part as it comes, then the next: what had waited with a pause after each
        piece, the rest live."""
        position = 0
        late = False
        while position < len(self._order) or not self._closed:
            if position == len(self._order):
                late = False
                # Whoever speaks first from here on is heard live.
                await self._wait()
                continue
            await self._speak(self._order[position], position, flushing=late)
            position = position + 1
            late = True

    def _say(self, part: _Part, text: str) -> None:
        if part not in self._order:
            self._order.append(part)
        part.waiting.append(text)
        part.text += text
        self._news.set()

    def _take_back(self, part: _Part) -> None:
        if part.text:
            part.waiting.clear()
            part.waiting.append(None)
            part.text = ""
            self._news.set()

    async def _speak(self, part: _Part, position: int, *, flushing: bool) -> None:
        turn = self._ctx.turn
        gap = ""
        for earlier in self._order[:position]:
            if earlier.text:
                gap = GAP
        speech = Speech(self._ctx)
        began = len(turn.log.events)
        lead = gap
        if position:
            self._ctx.emit(Separator(agent=part.agent))
        while part.waiting or not part.complete:
            if not part.waiting:
                flushing = False
                await self._wait()
                continue
            piece = part.waiting.popleft()
            if piece is None:
                speech.end()
                if any(isinstance(event.body, Text) for event in turn.log.events[began:]):
                    self._ctx.emit(TextReplaced(from_seq=began, text=""))
                speech = Speech(self._ctx)
                began = len(turn.log.events)
                lead = gap
            else:
                speech.say(lead + piece)
                lead = ""
            if flushing:
                await asyncio.sleep(turn.settings.flush_ms / 1000)
        speech.end()

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()


@asynccontextmanager
async def live_slot(ctx: RunContext) -> AsyncGenerator[LiveSlot]:
    """A slot for one turn; when the block ends every part has been spoken, and when it is left
    otherwise nothing more is said."""
    slot = LiveSlot(ctx)
    driver = asyncio.create_task(slot.drive(), name=f"live slot {ctx.turn.log.turn_id}")
    try:
        yield slot
        slot.close()
        await driver
    finally:
        driver.cancel()
        await asyncio.gather(driver, return_exceptions=True)


def slot_outcome(slot: LiveSlot, call: AgentCall, ctx: RunContext) -> Outcome:
    """Returns the outcome of a turn whose text the user has read; the fixed sentences it owes are
    appended (decisions 1)."""
    text = settle(slot.text, ctx)
    if slot.text and text.startswith(slot.text) and len(text) > len(slot.text):
        ctx.emit(Text(channel="answer", text=text[len(slot.text) :]))
    return outcome_of(text, call)
