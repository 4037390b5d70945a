"""All that a dispatch may reach: the turn's log and limits, the inherited context, and the agents
bound for this turn."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from kit.compose.locale import ENGLISH, Locale
from kit.compose.parts import DeckSettings
from kit.core.bodies.call import Envelope
from kit.core.bodies.guard import GuardActed, GuardAction
from kit.core.bodies.speech import Status, TextReplaced
from kit.core.card import AgentCard
from kit.core.context import DynamicContext, InheritedContext
from kit.core.display.agent_name import words_of_id
from kit.core.event import Body, Event
from kit.core.outcome import AgentCall, Outcome
from kit.core.picture import Picture
from kit.core.record import Message, TurnRecord
from kit.core.value import new_dict, new_list, new_set
from kit.runtime.act_ledger import ActLedger, LedgerEntry
from kit.runtime.bound_model import BoundModel, Voice
from kit.runtime.budget import Ledger
from kit.runtime.call_ledger import CallLedger
from kit.runtime.log import TurnLog
from kit.runtime.recording.player import Player
from kit.runtime.speech.narration import Hear
from kit.runtime.speech.progress import Progress


class Agent(Protocol):
    """Whatever can answer a call: an LLM agent, a remote peer, a stub."""

    @property
    def card(self) -> AgentCard: ...

    @property
    def time_budget(self) -> float | None:
        """Seconds one invocation may take; None for no limit of its own."""
        ...

    async def run(self, call: AgentCall, ctx: "RunContext") -> Outcome: ...


Slot = Callable[[str], Hear | None]
"""Where sub-agents speak to the user themselves, one at a time: what hears the words of the
invocation at a path; None when that has no voice of its own."""


@dataclass
class SessionMemory:
    """What a turn may read of its session, here as it is given; a reader is an agent id, or "" for the orchestrator."""

    lines: Callable[[str], Sequence[Message]] = lambda _: ()

    def history(self, reader: str) -> Sequence[Message]:
        """Narration as one reader may see it, oldest first."""
        return self.lines(reader)

    def said_last(self, reader: str = "") -> str:
        """The assistant's last words to the user, or those of one agent in its own part."""
        for message in reversed(self.history(reader)):
            if message.role == "assistant":
                return message.text
        return ""

    def suffix(self, reader: str) -> str:
        """What else of earlier turns a reader's prompt ends with: a summary, references to what was shown."""
        return ""

    def waits(self, call: AgentCall, ctx: "RunContext") -> bool:
        """Whether a call waits for something of earlier turns."""
        return False

    async def carry(self, calls: Sequence[AgentCall], ctx: "RunContext") -> list[AgentCall]:
        """The same calls with what they need of earlier turns: prior_context on a switch, fields
        where a card has them filled."""
        return list(calls)

    def waiting_question(self) -> str | None:
        """What a turn before this one still asks its user, where nobody was asked anything since; else None."""
        return None

    def asked_again(self) -> TurnRecord | None:
        """The earlier turn that the message asks for once more (`asked_once_more`)."""
        return None

    def acts_cut_off(self) -> Mapping[str, LedgerEntry]:
        """What such a turn had begun when its process died, by key."""
        return {}

    def earlier_act(self, key: str, former_key: str) -> LedgerEntry | None:
        """What an earlier turn of the session still asks, did or may have done, under a key of an act."""
        return None


async def _keep_nothing() -> None:
    """For a turn without a store."""


@dataclass(slots=True)
class TurnState(CallLedger):
    """What one turn shares among all its dispatches: the ledger of its calls, and what they reach.
    Nothing else below `run_turn` is mutable."""

    log: TurnLog
    agents: Mapping[str, Agent]
    dynamic: DynamicContext
    pattern: str
    settings: DeckSettings
    memory: SessionMemory
    progress: Progress
    jobs: Mapping[str, BoundModel] = field(default_factory=new_dict)
    """Models bound to one structured job each."""
    voice: Voice | None = None
    """Who speaks for the orchestrator: its model, or since that failed its fallback."""
    player: Player | None = None
    """Answers calls of models and tools in their place."""
    locale: Locale = ENGLISH
    """The language of the fixed sentences."""
    pictures: tuple[Picture, ...] = ()
    """What came with the message; `RunContext.pictures` says who gets them."""
    model_calls: dict[str, int] = field(default_factory=new_dict)
    """Path -> model and tool calls made from there so far."""
    threads: dict[str, Sequence[BaseMessage]] = field(
        default_factory=partial(defaultdict[str, Sequence[BaseMessage]], tuple)
    )
    """Path -> what the last model call from there was sent, and its reply: the trace holds what the next one adds."""
    own_guards: Mapping[str, Callable[..., Any]] = field(default_factory=new_dict)
    """The deck's own guards, applied after the kit's."""
    suffix: str = ""
    """What followed the prompt in the turn's first model call; the trace holds it once."""
    alarm: Callable[[Event], None] = lambda _: None
    """Hears at once of an envelope that is not about the principal of the turn."""
    barred: set[str] = field(default_factory=new_set)
    """Lookups that met a foreign principal: none is made again (decisions 30)."""
    acts: ActLedger = field(default_factory=ActLedger)
    keep: Callable[[], Awaitable[None]] = _keep_nothing
    """Stores the log as it stands, before an act begins. Raises StoreError where it cannot: the act then does not."""
    key: SecretStr | None = field(default=None, repr=False)
    """What opens the skill service for this request; the turn takes it nowhere else."""
    was_cut_off: bool = False
    """Whether the newest reply of the orchestrator ended in mid-sentence, without a call."""
    was_stopped: bool = False
    """Whether the user has stopped the turn; one that ends with its process was not."""
    private: list[str] = field(default_factory=new_list)
    """Personal values that crossed a hand-off: no event shows them from then on."""

    @property
    def out_of_time(self) -> bool:
        """Whether its time is over; a timer may go off a hair early by the log's clock."""
        return self.log.now() >= self.settings.turn_budget_ms / 1000 - 1e-3

    def label_of(self, agent: str) -> str:
        """Returns what people read in place of an agent's id; of one that a model made up, the words of that id."""
        known = self.agents.get(agent)
        return words_of_id(agent) if known is None else known.card.label

    def place(self, path: str) -> str:
        """Names the next model or tool call made from `path`, the same on every run: never by arrival order."""
        place = self.next_place(path)
        self.model_calls[path] = self.model_calls.get(path, 0) + 1
        return place

    def next_place(self, path: str) -> str:
        """Returns the name that `place` gives next."""
        return f"{path}:{self.model_calls.get(path, 0) + 1}"


class RunContext(NamedTuple):
    """One agent's view of the turn: its span, who it runs for, whom it may call.

    A tuple, for nine are made in a turn of two sub-agents, in a third of a frozen dataclass' time.
    """

    turn: TurnState
    inherited: InheritedContext
    ledger: Ledger
    """What this agent may spend and has spent, the agents it dispatched included."""
    span_id: str
    parent_span_id: str | None = None
    callees: frozenset[str] = frozenset()
    """Ids this caller's card names in `sub_agents`; anything else is refused."""
    path: str = ""
    """Where in the turn this runs (`orchestrator/1.2.rewards`: round, position, agent): names model
    calls in a cassette."""
    slot: Slot | None = None
    """Set by patterns whose sub-agents speak to the user, for what they dispatch."""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The message's pictures, for the orchestrator and for whom it calls itself; nobody below those gets them."""
        # The account of the turn has no parent, and those it calls itself have that one.
        above = self.ledger.parent
        if above is None or above.parent is None:
            return self.turn.pictures
        return ()

    def emit(self, body: Body) -> Event:
        """Adds an event to the turn's log, in this span."""
        return self.turn.log.emit(body, self.span_id, self.parent_span_id)

    def report(self, body: Body) -> None:
        """Adds what a tool says while it works: a status is kept as it is, and read as the deck's policy has it."""
        event = self.emit(body)
        if isinstance(body, Status):
            self.turn.progress.tell(body, self)
        elif isinstance(body, Envelope) and not body.principal_verified:
            self.turn.alarm(event)

    def guarded(
        self, guard: str, action: GuardAction, reason: str, call: AgentCall | None = None
    ) -> None:
        """Says that a guard acted: on one call, or on all that this agent has decided."""
        agent = self.path
        call_id = ""
        if call is not None:
            agent = call.agent
            call_id = call.call_id
        self.emit(
            GuardActed(guard=guard, action=action, agent=agent, call_id=call_id, reason=reason)
        )

    def replace_lead(self, text: str) -> None:
        """Replaces what the user read before any sub-agent was called; does nothing where that was nothing."""
        first = next((event.seq for event in self.turn.log.events if event.kind == "text"), None)
        if first is not None:
            self.emit(TextReplaced(channel="lead", from_seq=first, text=text))

    def open_span(self, body: Body) -> "RunContext":
        """A context for a new span under this one, with `body` as its first event."""
        turn = self.turn
        child = RunContext(
            turn,
            self.inherited,
            self.ledger,
            turn.log.new_span(),
            self.span_id,
            self.callees,
            self.path,
            self.slot,
        )
        child.emit(body)
        return child
