"""From statuses and the time to the lines a person reads: no clock, no loop, so a recorded log can be told again."""

from collections.abc import Mapping
from typing import NamedTuple

from kit.compose.parts import StatusPolicy
from kit.core.status import Term, current_term

Phrases = Mapping[str, str]


class TimedLine(NamedTuple):
    """One line, as it is read."""

    at: float
    agents: tuple[str, ...]
    """Whose progress it tells, each once."""
    text: str


class _Waiting(NamedTuple):
    agent: str
    text: str
    due: float


class Narrator:
    """Applies a policy to the statuses of one turn; the same calls in the same order give the same
    lines.

    Times are seconds since the turn began and must not go back. Whoever drives it calls `wake`
    at `due` at the latest.
    """

    def __init__(self, policy: StatusPolicy, phrases: Phrases, vocabulary: Mapping[str, Term]):
        self._policy = policy
        self._phrases = phrases
        self._vocabulary = vocabulary
        self._waiting: list[_Waiting] = []
        self._working: list[str] = []
        self._last_at: float | None = None
        self._last_heard: str | None = None

    def begin(self, agent: str) -> None:
        """Notes that an invocation of this agent is at work."""
        self._working.append(agent)

    def end(self, agent: str, now: float) -> list[TimedLine]:
        """Notes that an invocation has ended and returns the lines that are due; waiting lines of
        an idle agent are left out."""
        if agent in self._working:
            self._working.remove(agent)
        if agent not in self._working:
            self._waiting = [waiting for waiting in self._waiting if waiting.agent != agent]
        return self.wake(now)

    def hear(self, agent: str, status: str, now: float) -> list[TimedLine]:
        """Returns the lines that a status brings about; one outside the vocabulary brings none."""
        term = current_term(status, self._vocabulary)
        if term is None:
            return []
        rule = self._policy.rule(status)
        if rule.act != "suppress":
            if rule.act == "transform":
                term = current_term(rule.into or "", self._vocabulary) or term
            text = wording(term, self._phrases)
            due = self._batch_end(agent, now) if rule.act == "batch" else now
            is_waiting = any((w.agent, w.text) == (agent, text) for w in self._waiting)
            if not is_waiting:
                self._waiting.append(_Waiting(agent, text, due))
        return self.wake(now)

    def wake(self, now: float) -> list[TimedLine]:
        """Returns the lines whose time has come."""
        lines: list[TimedLine] = []
        while (group := self._next(now)) and self._silent_until() <= now:
            self._waiting = [waiting for waiting in self._waiting if waiting not in group]
            agents = tuple(dict.fromkeys(waiting.agent for waiting in group))
            lines.append(TimedLine(now, agents, sentence([waiting.text for waiting in group])))
            self._last_at = now
            self._last_heard = agents[-1]
        return lines

    @property
    def due(self) -> float | None:
        """When the next line will be said if nothing else happens; None when nothing would be."""
        times = [waiting.due for waiting in self._waiting if self._may_speak(waiting.agent)]
        if times:
            return max(min(times), self._silent_until())
        return None

    def _batch_end(self, agent: str, now: float) -> float:
        is_apart = self._policy.batch_by == "agent"
        ends = [now + self._policy.window_ms / 1000]
        for waiting in self._waiting:
            if waiting.due > now and (waiting.agent == agent or not is_apart):
                ends.append(waiting.due)
        # a batch that is gathering already takes this line in
        return min(ends)

    def _silent_until(self) -> float:
        if self._last_at is None:
            return 0.0
        return self._last_at + self._policy.gap_ms / 1000

    def _may_speak(self, agent: str) -> bool:
        if self._policy.order == "arrival" or agent != self._last_heard:
            return True
        # two lines in a row of one agent read as if the others had stopped
        return all(working == agent for working in self._working)

    def _next(self, now: float) -> list[_Waiting]:
        ready: list[_Waiting] = []
        for waiting in self._waiting:
            if waiting.due <= now and self._may_speak(waiting.agent):
                ready.append(waiting)
        if not self._policy.collapse:
            return ready[:1]
        if self._policy.batch_by == "agent":
            return [waiting for waiting in ready if waiting.agent == ready[0].agent]
        return ready


def wording(status: str, phrases: Phrases) -> str:
    """The assistant's words for a status."""
    return phrases.get(status) or status.replace("_", " ").capitalize() + "…"


def sentence(lines: list[str]) -> str:
    """One sentence out of several lines: "Searching offers and looking up your points"."""
    lines = list(dict.fromkeys(lines))
    if len(lines) == 1:
        return lines[0]
    parts = [line.rstrip(" .…") for line in lines]
    for number, part in enumerate(parts[1:], 1):
        # of "FAQ search" the first letter stays as it is
        if not part[1:2].isupper():
            parts[number] = part[:1].lower() + part[1:]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
