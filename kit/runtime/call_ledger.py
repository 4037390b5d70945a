"""The ledger of a turn's calls: emitted, run, refused, left out over the cap, or counted by the
model and made by nobody."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kit.core.language.clauses import ASKING, clauses
from kit.core.language.words import content_words, words
from kit.core.outcome import NOTHING_LEFT, AgentCall, LeftOut, Outcome
from kit.core.picture import strip_marks

SHORTEST = 10
"""Characters beside its requests from which on a message may hold a part that was sent to nobody."""


def request_key(agent: str, query: str) -> tuple[str, str]:
    """Returns what makes two requests the same one: the agent and its query, spaces and case aside."""
    return agent, " ".join(query.casefold().split())


@dataclass(slots=True, kw_only=True)
class CallLedger:
    """What became of every part of a message. The debt of an answer, the routing event and the pages read it here."""

    cap: int
    message: str = ""
    """What the user wrote."""
    emitted: int = 0
    """Distinct calls of the model's first response, before any guard (decisions 34)."""
    emitted_later: int = 0
    """Calls of its later responses."""
    reported: int = 0
    """Parts of the message that the model says it saw; 0 where it gave no count."""
    cap_used: int = 0
    """How many sub-agent calls the cap has let through, over all rounds."""
    rounds: int = 0
    calls: list[AgentCall] = field(default_factory=list[AgentCall])
    """Every sub-agent call that was made, whatever became of it."""
    over_cap: list[AgentCall] = field(default_factory=list[AgentCall])
    set_aside: list[AgentCall] = field(default_factory=list[AgentCall])
    """Calls that a guard dropped."""
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    tool_call_ids: set[str | None] = field(default_factory=set[str | None])
    """Ids of the orchestrator's calls of its own tools."""
    unsent: LeftOut | None = None
    """What was plainly sent to nobody; None until it is asked for, and again once there are new calls."""
    wording: dict[str, str] = field(default_factory=dict[str, str])
    """Call id -> the model's own words, whatever a guard made of them."""

    def note(self, asks: Sequence[AgentCall], message: str) -> None:
        """Notes the model's first response to the user's message, before any guard."""
        self.message = message
        self.emitted = (
            len(asks) if len(asks) < 2 else len({request_key(ask.agent, ask.query) for ask in asks})
        )
        for ask in asks:
            if ask.intent_count is not None and ask.intent_count > self.reported:
                self.reported = ask.intent_count

    def open_round(self, calls: Sequence[AgentCall]) -> tuple[list[AgentCall], list[AgentCall]]:
        """Begins a round: notes its calls and splits them into those under the cap and those over
        it, in emission order."""
        self.rounds += 1
        if self.rounds == 1 and not self.message:
            self.note(calls, "")
        self.calls += calls
        self.unsent = None
        room = max(0, self.cap - self.cap_used)
        admitted, over = list(calls[:room]), list(calls[room:])
        self.cap_used += len(admitted)
        self.over_cap += over
        return admitted, over

    def record(self, outcomes: Sequence[Outcome], calls: Sequence[AgentCall] = ()) -> None:
        """Notes how calls ended, the latest outcome of each; `calls` are theirs, where no round was
        opened with them."""
        if not self.outcomes:
            self.outcomes += outcomes
            self.calls += calls
            self.emitted, self.unsent = self.emitted or len(calls), None
            return
        places = {
            (outcome.agent, outcome.call_id): place for place, outcome in enumerate(self.outcomes)
        }
        self.calls += [call for call in calls if (call.agent, call.call_id) not in places]
        self.unsent = None
        for outcome in outcomes:
            place = places.get((outcome.agent, outcome.call_id), len(self.outcomes))
            self.outcomes[place : place + 1] = [outcome]

    def take(self, most: int) -> int:
        """How many further calls, of at most `most`, the cap leaves room for; they are counted (decisions 12)."""
        granted = max(0, min(most, self.cap - self.cap_used))
        self.cap_used += granted
        return granted

    def left_out(self, asks: Sequence[AgentCall] = ()) -> LeftOut:
        """Returns the parts that no call was made for, `asks` counted as made: those that the model
        counted (decisions 26), else those that ask for something and were plainly sent to nobody.

        They have names where exactly those clauses of the message stand in no call. A message with
        no more clauses than calls, and no word that was not sent, has no further part: the model
        miscounted.
        """
        calls = (*self.calls, *asks)
        if self.reported <= self.emitted:
            if asks or self.unsent is None:  # it is asked several times in a turn
                self.unsent = self._unsent(calls)
            return self.unsent
        requests = {
            request_key(call.agent, self.wording.get(call.call_id, call.query)) for call in calls
        }
        text = strip_marks(self.message)
        count = min(self.reported, len(words(text))) - len(requests)
        pieces = clauses(text, opening=True)
        queries = [content_words(query) for _, query in requests]
        own = {piece.content: piece.text for piece in pieces if piece.content}
        miscounted = len(own) <= len(requests) and frozenset[str]().union(*own) <= frozenset[
            str
        ]().union(*queries)
        if count <= 0 or miscounted or not requests:
            return NOTHING_LEFT
        loose = tuple(
            text
            for content, text in own.items()
            if not any(2 * len(content & query) >= len(content) for query in queries)
        )
        return LeftOut(count=count, parts=loose if len(loose) <= count else ())

    def _unsent(self, calls: Sequence[AgentCall]) -> LeftOut:
        """Clauses that ask for something and share no word with any request, where each request is
        a stretch of the message: one that was worded anew may stand for any clause."""
        if not calls[1:]:
            return NOTHING_LEFT
        rest = self.message
        for call in calls:
            rest = rest.replace(call.query, "\n", 1) if call.query in self.message else ""
        if len(rest) < SHORTEST or not ASKING.search(rest):  # cheap: most messages end here
            return NOTHING_LEFT
        sent = frozenset[str]().union(*(content_words(call.query) for call in calls))
        pieces = [
            piece
            for piece in clauses(strip_marks(self.message), opening=True)
            if piece.asks and piece.content
        ]
        parts = tuple(piece.text for piece in pieces if piece.content.isdisjoint(sent))
        return LeftOut(count=len(parts), parts=parts) if parts else NOTHING_LEFT
