"""Drives a turn's status lines in time: says them as the deck's policy has it, and speaks for
agents that are silent."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kit.compose.parts import DeckSettings
from kit.core.bodies.speech import Status, StatusLine
from kit.core.event import Body, Event
from kit.core.status import Term, current_term
from kit.runtime.log import TurnLog
from kit.runtime.speech.status_lines import Narrator, TimedLine, wording

NO_PHRASES: Mapping[str, str] = {}


class Span(Protocol):
    """Where an invocation's events go."""

    @property
    def path(self) -> str: ...

    def emit(self, body: Body) -> Event: ...


class Progress:
    """The status lines of one turn. `statuses` are those that may be sent. `span_id` is the turn's own span,
    where lines stand that are about several agents; `own_phrases` are the words for the runtime's own
    statuses, where the deck has none.

    One alarm serves all that are silent in a turn, so that a turn in which nobody is slow pays for one timer.
    """

    def __init__(
        self,
        log: TurnLog,
        settings: DeckSettings,
        statuses: Mapping[str, Term],
        span_id: str = "",
        own_phrases: Mapping[str, str] = NO_PHRASES,
    ):
        policy = settings.status_policy
        phrases = {**own_phrases, **settings.status_phrases}
        self._log = log
        self._phrases = phrases
        self._span_id = span_id
        self._vocabulary = statuses
        self._narrator: Narrator | None = None
        if not policy.plain:
            self._narrator = Narrator(policy, phrases, self._vocabulary)
        self._quiet = None if policy.quiet_ms is None else policy.quiet_ms / 1000
        self._silent: dict[str, tuple[Span, str, float]] = {}
        """Path of an invocation that has sent no status yet -> its span, its agent, when it began."""
        self._alarm: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, span: Span, agent: str, path: str, began: float) -> None:
        """Notes that an invocation is at work; if it sends no status for a while, a line says that it is thinking."""
        if self._quiet is not None:
            self._silent[path] = span, agent, began
            if self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(self._quiet, self._ring)
        if self._narrator is not None:
            self._narrator.begin(agent)

    def end(self, agent: str, path: str) -> None:
        """Notes that an invocation has ended; the last one leaves no timer behind."""
        self._silent.pop(path, None)
        if self._alarm is not None and not self._silent:
            self._alarm.cancel()
            self._alarm = None
        if self._narrator is not None:
            self._say(self._narrator.end(agent, self._log.now()))

    def excuse(self, path: str) -> None:
        """The invocation at `path` need not be heard any more: others speak in its place."""
        self._silent.pop(path, None)

    def tell(self, status: Status, span: Span) -> None:
        """Says a status in the assistant's words; one outside the vocabulary is never shown."""
        # A status of its own is a sign of life: the alarm would only repeat it.
        self._silent.pop(span.path, None)
        if self._narrator is not None:
            self._say(self._narrator.hear(status.agent, status.status, self._log.now()))
        elif (term := current_term(status.status, self._vocabulary)) is not None:
            span.emit(StatusLine(agent=status.agent, text=wording(term, self._phrases)))

    def _say(self, lines: Sequence[TimedLine]) -> None:
        """Emits lines and sets the timer for the next; a line about several agents names none."""
        assert self._narrator is not None
        for line in lines:
            agent = line.agents[0] if len(line.agents) == 1 else ""
            self._log.emit(StatusLine(agent=agent, text=line.text), self._span_id)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._set(self._narrator.due, self._wake)

    def _wake(self) -> None:
        assert self._narrator is not None
        self._timer = None
        # A timer may go off a hair early by the log's clock: it speaks for the moment it was set for.
        self._say(self._narrator.wake(max(self._log.now(), self._narrator.due or 0.0)))

    def _ring(self) -> None:
        assert self._quiet is not None
        # a timer may go off a hair early by the log's clock
        now = self._log.now() + 1e-3
        for path, (span, agent, began) in list(self._silent.items()):
            if began + self._quiet <= now:
                del self._silent[path]
                status = Status(agent=agent, status="thinking_it_through")
                span.emit(status)
                self.tell(status, span)
        starts = [began for _, _, began in self._silent.values()]
        self._alarm = self._set(min(starts) + self._quiet if starts else None, self._ring)

    def _set(self, due: float | None, ring: Callable[[], None]) -> asyncio.TimerHandle | None:
        if due is None:
            return None
        return asyncio.get_running_loop().call_later(max(0.0, due - self._log.now()), ring)
