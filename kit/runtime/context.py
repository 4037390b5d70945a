"""All that a dispatch may reach: the turn's log and limits, the inherited context, and the agents bound for this turn."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kit.compose.parts import GUARDS, Guards
from kit.compose.status import StatusPolicy
from kit.core.card import AgentCard
from kit.core.context import DynamicContext, InheritedContext
from kit.core.event import Body, Event
from kit.core.outcome import AgentCall, Outcome
from kit.core.picture import Picture
from kit.core.record import Message
from kit.runtime.budget import Ledger
from kit.runtime.log import TurnLog
from kit.runtime.recording.cassette import Cassette

if TYPE_CHECKING:
    from kit.runtime.call_model import BoundModel, Hear
    from kit.runtime.fallback import Voice
    from kit.runtime.speech.stream import Progress

PLAIN = StatusPolicy()


class Agent(Protocol):
    """Whatever can answer a call: an LLM agent, a remote peer, a stub."""

    @property
    def card(self) -> AgentCard: ...

    @property
    def time_budget(self) -> float | None:
        """Seconds one invocation may take; None for no limit of its own."""
        ...

    async def run(self, call: AgentCall, ctx: "RunContext") -> Outcome: ...


Carry = Callable[[Sequence[AgentCall], "RunContext"], Awaitable[list[AgentCall]]]


class Slot(Protocol):
    """Where sub-agents speak to the user themselves, one at a time (SAT-7)."""

    def listen(self, path: str) -> "Hear | None":
        """What hears the words of the invocation at `path`; None when it has no voice of its own."""
        ...


@dataclass(slots=True)
class TurnState:
    """What one turn shares among all its dispatches. The only mutable thing below `run_turn`."""

    log: TurnLog
    agents: Mapping[str, Agent]
    dynamic: DynamicContext
    cap: int
    pattern: str
    history: Callable[[str], Sequence[Message]]
    """Narration as one reader may see it: "" is the orchestrator, an agent id its own turns (PC1-FR-7)."""
    suffix: Callable[[str], str] = lambda _: ""
    """What else of earlier turns one reader's prompt ends with: a summary, references to what was shown."""
    routed: frozenset[str] = frozenset()
    """Who was called in the last turn that called anybody; whoever else is called now is a switch (decisions 3)."""
    seconds: float = math.inf
    """What the turn may take."""
    call_seconds: float | None = None
    """What one model call of the orchestrator may take."""
    voice: "Voice | None" = None
    """Who speaks for the orchestrator: its model, or since that failed its fallback."""
    carry: Carry | None = None
    """Gives calls on a switch their prior_context."""
    jobs: Mapping[str, "BoundModel"] = field(default_factory=dict[str, "BoundModel"])
    """Models bound to one structured job each."""
    slot: Slot | None = None
    """Set by patterns whose sub-agents speak to the user."""
    flush_seconds: float = 0.015
    """Between two pieces of text that waited for that slot (SAT-23)."""
    helper_seconds: float = 3.0
    """Most that a helper model's job may take."""
    phrases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Status identifier -> the assistant's words for it (PC2-FR-13)."""
    status_policy: StatusPolicy = PLAIN
    """What of the sub-agents' progress is read, and when."""
    progress: "Progress | None" = None
    """What drives that policy in time; None while it only forwards."""
    silent: "dict[str, tuple[RunContext, str, float]]" = field(default_factory=dict[str, "tuple[RunContext, str, float]"])
    """Invocations at work that have sent no status yet: path -> its span, its agent, when it began."""
    alarm: asyncio.TimerHandle | None = None
    """When to speak for those."""
    default_sub_agent: str | None = None
    """Who takes what fits nobody (decisions 5)."""
    support_agent: str | None = None
    """Whose questions the echo guard watches (SAT-3)."""
    guards: Guards = GUARDS
    cassette: Cassette | None = None
    pictures: tuple[Picture, ...] = ()
    """What came with the message; `RunContext.pictures` says who gets them."""
    taken: int = 0
    """Sub-agent calls admitted so far, over all rounds (PC2-S5.4a)."""
    rounds: int = 0
    emitted: list[AgentCall] = field(default_factory=list[AgentCall])
    dropped: list[AgentCall] = field(default_factory=list[AgentCall])
    refused: list[AgentCall] = field(default_factory=list[AgentCall])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    worded: dict[str, str] = field(default_factory=dict[str, str])
    """Call id -> the model's own words, whatever a guard made of them."""
    asked: dict[str, int] = field(default_factory=dict[str, int])
    """Model calls so far, by path."""
    private: list[str] = field(default_factory=list[str])
    """Personal values that crossed a hand-off: no event shows them from then on (SO-22)."""

    @property
    def out_of_time(self) -> bool:
        """Whether its time is over; a timer may go off a hair early by the log's clock."""
        return self.log.now() >= self.seconds - 1e-3

    def place(self, path: str) -> str:
        """Names the next model call made from `path`, the same on every run: never by arrival order."""
        number = self.asked[path] = self.asked.get(path, 0) + 1
        return f"{path}:{number}"

    def admit(self, calls: Sequence[AgentCall]) -> tuple[list[AgentCall], list[AgentCall]]:
        """Splits calls into those under the cap and those over it, in emission order (PC2-FR-7)."""
        room = max(0, self.cap - self.taken)
        run, over = list(calls[:room]), list(calls[room:])
        self.taken += len(run)
        self.dropped += over
        return run, over

    def take(self, most: int) -> int:
        """How many further calls, of at most `most`, the cap leaves room for; they are counted (decisions 12)."""
        granted = max(0, min(most, self.cap - self.taken))
        self.taken += granted
        return granted


@dataclass(frozen=True, slots=True)
class RunContext:
    """One agent's view of the turn: its span, who it runs for, whom it may call."""

    turn: TurnState
    inherited: InheritedContext
    span_id: str
    parent_span_id: str | None = None
    callees: frozenset[str] = frozenset()
    """Ids this caller's card names in `sub_agents`; anything else is refused (SO-6)."""
    path: str = ""
    """Where in the turn this runs (`orchestrator/1.2.rewards`: round, position, agent): names model calls in a cassette."""
    ledger: Ledger = field(default_factory=Ledger)
    """What this agent may spend and has spent, the agents it dispatched included (SO-2)."""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The message's pictures, for the orchestrator and for whom it calls itself; nobody below those gets them (SAT-14)."""
        above = self.ledger.parent
        return self.turn.pictures if above is None or above.parent is None else ()

    def emit(self, body: Body) -> Event:
        return self.turn.log.emit(body, self.span_id, self.parent_span_id)

    def opened(self, body: Body) -> "RunContext":
        """A context for a new span under this one, with `body` as its first event."""
        child = RunContext(
            self.turn, self.inherited, self.turn.log.new_span(), self.span_id, self.callees, self.path, self.ledger
        )
        child.emit(body)
        return child
