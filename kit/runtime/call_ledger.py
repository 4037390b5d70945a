"""The ledger of a turn's calls: emitted, run, refused, left out over the cap, and which parts of the message
they cover."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kit.core.language.words import content_words
from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.core.value import new_dict, new_list, new_set
from kit.runtime.message_parts import NOTHING_TO_COVER, Cards, Coverage, coverage, parts_of

Request = tuple[str, str]
"""An agent and its query, spaces and case aside: what makes two requests the same one."""


def request_key(call: AgentCall) -> Request:
    """Returns the request that a call makes."""
    return call.agent, " ".join(call.query.casefold().split())


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The requests of a turn that have no answer."""

    failures: tuple[Failure, ...]
    """Those that were made and failed, and that no other call of the same request makes good."""
    over_cap: tuple[AgentCall, ...]
    """Those that the cap left out, each request once."""


NOTHING_UNANSWERED = Unanswered((), ())


@dataclass(slots=True, kw_only=True)
class CallLedger:
    """What became of every part of a message. The debt of an answer, the routing event and the pages read it here."""

    cap: int
    message: str = ""
    """What the user wrote, or what it stands for ("go on")."""
    cards: Cards = ()
    """Whom the message may be for."""
    in_own_words: bool = True
    """Calls may stand for parts whose words they do not carry; steps of a plan may not."""
    noted: bool = False
    """The model's first response was seen."""
    emitted: int = 0
    """Distinct calls of the model's first response, before any guard (decisions 34)."""
    emitted_later: int = 0
    """Calls of its later responses."""
    reported: int = 0
    """Parts of the message that the model says it saw; 0 where it gave no count."""
    cap_used: int = 0
    """How many sub-agent calls the cap has let through, over all rounds."""
    rounds: int = 0
    calls: list[AgentCall] = field(default_factory=new_list)
    """Every sub-agent call that was made, whatever became of it."""
    over_cap: list[AgentCall] = field(default_factory=new_list)
    set_aside: list[AgentCall] = field(default_factory=new_list)
    """Calls that a guard dropped."""
    outcomes: list[Outcome] = field(default_factory=new_list)
    tool_call_ids: set[str | None] = field(default_factory=new_set)
    """Ids of the orchestrator's calls of its own tools."""
    coverage_so_far: Coverage | None = None
    """What the calls so far cover; None until it is asked for, and again once there are new calls or outcomes."""
    wording: dict[str, str] = field(default_factory=new_dict)
    """Call id -> the model's own words, whatever a guard made of them."""

    def note(self, asks: Sequence[AgentCall]) -> None:
        """Notes the model's first response to the user's message, before any guard."""
        self.noted = True
        self.emitted = len(set(map(request_key, asks)))
        for ask in asks:
            if ask.intent_count is not None and ask.intent_count > self.reported:
                self.reported = ask.intent_count

    def open_round(self, calls: Sequence[AgentCall]) -> tuple[list[AgentCall], list[AgentCall]]:
        """Begins a round: notes its calls and splits them into those under the cap and those over
        it, in emission order."""
        self.rounds += 1
        # A monolith dispatches without a first response of a model that could be noted.
        if not self.noted:
            self.note(calls)
        self.calls += calls
        self.coverage_so_far = None
        # The cap counts over all rounds, or a model could go round it by asking one agent after the other.
        room = max(0, self.cap - self.cap_used)
        admitted = list(calls[:room])
        over = list(calls[room:])
        self.cap_used += len(admitted)
        self.over_cap += over
        return admitted, over

    def record(self, outcomes: Sequence[Outcome], calls: Sequence[AgentCall] = ()) -> None:
        """Notes how calls ended, the latest outcome of each; `calls` are theirs, where no round was
        opened with them."""
        if not self.outcomes:
            self.outcomes += outcomes
            self.calls += calls
            self.emitted = self.emitted or len(calls)
            self.coverage_so_far = None
            return
        positions: dict[tuple[str, str], int] = {}
        for position, outcome in enumerate(self.outcomes):
            positions[outcome.agent, outcome.call_id] = position
        self.calls += [call for call in calls if (call.agent, call.call_id) not in positions]
        self.coverage_so_far = None
        for outcome in outcomes:
            position = positions.get((outcome.agent, outcome.call_id), len(self.outcomes))
            self.outcomes[position : position + 1] = [outcome]

    def disregard(self, calls: Sequence[AgentCall]) -> None:
        """Takes calls out of the account that cover no part of the message, such as those a plan is carried out by."""
        ids = {call.call_id for call in calls}
        self.calls = [call for call in self.calls if call.call_id not in ids]
        self.outcomes = [outcome for outcome in self.outcomes if outcome.call_id not in ids]
        self.coverage_so_far = None

    def take(self, wanted: int) -> int:
        """Returns for how many further calls, of those wanted, the cap leaves room; they are counted (decisions 12)."""
        granted = max(0, min(wanted, self.cap - self.cap_used))
        self.cap_used += granted
        return granted

    def answered_requests(self) -> set[Request]:
        """Returns the requests that have an answer, in the words that were sent and in the model's own."""
        answering_calls: set[str] = set()
        for outcome in self.outcomes:
            if isinstance(outcome, Answer):
                answering_calls.add(outcome.call_id)
        requests: set[Request] = set()
        for call in self.calls:
            if call.call_id in answering_calls:
                requests.add(request_key(call))
                wording = self.wording.get(call.call_id, call.query)
                if wording != call.query:
                    requests.add(request_key(call.replace(query=wording)))
        return requests

    def words_asked(self, call_id: str) -> str:
        """Returns what a call asked for in the model's own words; empty where these are the whole message."""
        for call in self.calls:
            if call.call_id == call_id:
                words_of_call = self.wording.get(call_id, call.query)
                return "" if words_of_call == self.message else words_of_call
        return ""

    def unanswered(self) -> Unanswered:
        """Returns the requests without an answer, for the routing event, the answer and the next turn alike."""
        failed: list[Failure] = []
        for outcome in self.outcomes:
            if isinstance(outcome, Failure):
                failed.append(outcome)
        if not failed and not self.over_cap:
            return NOTHING_UNANSWERED
        answered = self.answered_requests()
        requests = {call.call_id: request_key(call) for call in self.calls}
        failures = [failure for failure in failed if requests.get(failure.call_id) not in answered]
        over_cap: dict[Request, AgentCall] = {}
        for call in self.over_cap:
            request = request_key(call)
            if request not in answered:
                over_cap.setdefault(request, call)
        return Unanswered(tuple(failures), tuple(over_cap.values()))

    @property
    def owed_parts(self) -> tuple[str, ...]:
        """What the answer offers to take next, in words that can be asked: parts left out, and calls over the cap."""
        owed: dict[str, None] = {}
        if self.over_cap:
            for call in self.unanswered().over_cap:
                # A call that repeats the whole message names no part of it: "go on" would ask for everything again.
                if call.query != self.message:
                    owed[call.query] = None
        left_out = self.coverage().left_out
        for part in left_out.parts:
            if part not in left_out.for_nobody:
                owed[part] = None
        return tuple(owed)

    def coverage(self, asks: Sequence[AgentCall] = ()) -> Coverage:
        """Returns the coverage ledger of the turn, `asks` counted as made.

        The parts are counted from the message (`kit/runtime/message_parts.py`), never from what the model reports:
        a model that forgets a part does not count it either, and one that reports a billion asks for no more than
        there is.
        Nothing is left out where nobody was asked: the orchestrator's own answer stands for the whole message then.
        """
        # it is asked for several times in a turn
        if self.coverage_so_far is not None and not asks:
            return self.coverage_so_far
        parts = parts_of(self.message, self.cards)
        if not parts:
            self.coverage_so_far = NOTHING_TO_COVER
            return NOTHING_TO_COVER
        calls = self._calls_of_parts(asks)
        self.coverage_so_far = coverage(parts, calls, self.outcomes, in_own_words=self.in_own_words)
        return self.coverage_so_far

    def _calls_of_parts(self, asks: Sequence[AgentCall]) -> list[AgentCall]:
        """Returns the calls that may cover a part: not those a guard dropped, nor those that only handed it on."""
        idle = {call.call_id for call in self.set_aside}
        for outcome in self.outcomes:
            if isinstance(outcome, Answer) and outcome.is_handover:
                idle.add(outcome.call_id)
        # A request that is made again in a later round stands for no further part.
        requests: dict[Request, AgentCall] = {}
        for call in (*self.calls, *asks):
            if call.call_id not in idle:
                requests.setdefault(request_key(call), call)
        # A model that counts more parts than it makes requests for knows itself that one stands for one part.
        lacks_calls = self.reported > len(requests)
        return [self._as_meant(call, lacks_calls) for call in requests.values()]

    def _as_meant(self, call: AgentCall, lacks_calls: bool) -> AgentCall:
        """Returns a call in the model's own words, where a guard added what the model never asked anybody for.

        That is so where the model copied a stretch of the message, where it counted more parts than it made calls
        for, and where neither its words nor any card tell which part it meant.
        """
        wording = self.wording.get(call.call_id, call.query)
        if wording == call.query:
            return call
        is_stretch = wording.casefold() in self.message.casefold()
        cannot_tell = not self.cards and content_words(wording).isdisjoint(
            content_words(self.message)
        )
        if is_stretch or lacks_calls or cannot_tell:
            return call.replace(query=wording)
        return call
