"""From statuses and the time to the lines a person reads: no clock, no loop, so a recorded log can be told again."""

from collections.abc import Mapping
from typing import NamedTuple

from kit.compose.status import StatusPolicy
from kit.core.status import OWN, Term, current_term

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

    Times are seconds since the turn began and must not go back. Without a vocabulary every status
    that has a phrase is known. Whoever drives it calls `wake` at `due` at the latest.
    """

    def __init__(
        self, policy: StatusPolicy, phrases: Phrases, vocabulary: Mapping[str, Term] | None = None
    ):
        self._policy = policy
        self._phrases = phrases
        if vocabulary is None:
            self._vocabulary = {**OWN, **dict.fromkeys(phrases, Term())}
        else:
            self._vocabulary = vocabulary
        self._waiting: list[_Waiting] = []
        self._working: list[str] = []
        self._last_at: float | None = None
        self._last_heard: str | None = None

    def begin(self, agent: str) -> None:
        """Notes that an invocation of this agent is at work."""
        self._working.append(agent)

    def end(self, agent: str, at: float) -> list[TimedLine]:
        """Notes that an invocation has ended and returns the lines that are due; waiting lines of
        an idle agent are left out."""
        if agent in self._working:
            self._working.remove(agent)
        if agent not in self._working:
            self._waiting = [waiting for waiting in self._waiting if waiting.agent != agent]
        return self.wake(at)

    def hear(self, agent: str, status: str, at: float) -> list[TimedLine]:
        """Returns the lines that a status brings about; one outside the vocabulary brings none."""
        term = current_term(status, self._vocabulary)
        if term is None:
            return []
        rule = self._policy.rule(status)
        if rule.act != "suppress":
            text = wording(
                (current_term(rule.into or "", self._vocabulary) or term)
                if rule.act == "transform"
                else term,
                self._phrases,
            )
            if rule.act == "batch":
                due = self._batch_end(agent, at)
            else:
                due = at
            if not any(
                waiting.agent == agent and waiting.text == text for waiting in self._waiting
            ):
                self._waiting.append(_Waiting(agent, text, due))
        return self.wake(at)

    def wake(self, at: float) -> list[TimedLine]:
        """Returns the lines whose time has come."""
        lines: list[TimedLine] = []
        while (group := self._next(at)) and self._room() <= at:
            self._waiting = [waiting for waiting in self._waiting if waiting not in group]
            agents = tuple(dict.fromkeys(waiting.agent for waiting in group))
            lines.append(TimedLine(at, agents, sentence([waiting.text for waiting in group])))
            self._last_at = at
            self._last_heard = agents[-1]
        return lines

    @property
    def due(self) -> float | None:
        """When the next line will be said if nothing else happens; None when nothing would be."""
        times: list[float] = []
        for waiting in self._waiting:
            if self._may_speak(waiting.agent):
                times.append(waiting.due)
        if times:
            return max(min(times), self._room())
        return None

    def _batch_end(self, agent: str, at: float) -> float:
        apart = self._policy.batch_by == "agent"
        gathering: list[float] = []
        for w in self._waiting:
            if w.due > at and (w.agent == agent or not apart):
                gathering.append(w.due)
        return min(gathering, default=at + self._policy.window_ms / 1000)

    def _room(self) -> float:
        if self._last_at is None:
            return 0.0
        return self._last_at + self._policy.gap_ms / 1000

    def _may_speak(self, agent: str) -> bool:
        if self._policy.order == "arrival" or agent != self._last_heard:
            return True
        return all(other == agent for other in self._working)

    def _next(self, at: float) -> list[_Waiting]:
        ready: list[_Waiting] = []
        for waiting in self._waiting:
            if waiting.due <= at and self._may_speak(waiting.agent):
                ready.append(waiting)
        if not self._policy.collapse:
            return ready[:1]
        if self._policy.batch_by == "agent":
            waitings: list[_Waiting] = []
            for waiting in ready:
                if waiting.agent == ready[0].agent:
                    waitings.append(waiting)
            return waitings
        return ready


def wording(status: str, phrases: Phrases) -> str:
    """The assistant's words for a status."""
    return phrases.get(status) or status.replace("_", " ").capitalize() + "…"


def sentence(lines: list[str]) -> str:
    """One sentence out of several lines: "Searching offers and looking up your points"."""
    lines = list(dict.fromkeys(lines))
    if len(lines) == 1:
        return lines[0]
    first, *rest = [line.rstrip(" .…") for line in lines]
    parts = [
        first,
        *(line if line[1:2].isupper() else line[:1].lower() + line[1:] for line in rest),
    ]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
