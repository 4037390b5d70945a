"""run_turn(): a message in, events out, a reply at the end. One turn is one task; it ends in order however it ends."""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from kit.core.context import DynamicContext, InheritedContext, Session
from kit.core.errors import SessionError, StoreError
from kit.core.event import Completed, Event, Routing, Spent, Text, TextReplaced, Thinking, TurnStarted
from kit.core.outcome import AgentCall, Answer, Outcome, RoutingDecision, Usage, total
from kit.core.record import Message, TurnRecord
from kit.core.trace import Trace, trace_of
from kit.core.transcript import transcript
from kit.runtime.acknowledge import rescue
from kit.runtime.cassette import Cassette
from kit.runtime.context import RunContext, TurnState
from kit.runtime.dispatch import guarded
from kit.runtime.log import TurnLog
from kit.runtime.message import clean, decline
from kit.runtime.recorder import Recorder
from kit.runtime.rollup import dialogue, record_of, routing_of
from kit.runtime.team import Team
from kit.stores.protocol import Store

log = logging.getLogger("kit.turn")
Pattern = Callable[[AgentCall, RunContext], Awaitable[Outcome]]
Status = Literal["ok", "failed", "cancelled", "deadline"]


class Host(Protocol):
    """What a turn needs of the kit that runs it."""

    @property
    def team(self) -> Team: ...
    @property
    def store(self) -> Store: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def cassette(self) -> Cassette | None: ...
    @property
    def pattern(self) -> Pattern: ...
    @property
    def today(self) -> str:
        """The date prompts carry."""
        ...


@dataclass(frozen=True)
class Reply:
    """How a turn ended."""

    turn_id: str
    status: Status
    text: str
    """The answer as the user has it."""
    preamble: str
    """What was said before sub-agents were called; empty when none was."""
    outcomes: tuple[Outcome, ...]
    routing: RoutingDecision
    usage: Usage
    events: tuple[Event, ...]

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.events)


class Turn:
    """A running turn: `async for event in turn` follows it, `await turn` gets its reply, `cancel()` stops it.

    Any number may follow or await; cancelling one of them does not stop the turn.
    """

    def __init__(self, runner: "_Runner"):
        self._runner, self._log = runner, runner.log
        self._task = asyncio.get_running_loop().create_task(runner.run(), name=f"turn {runner.log.turn_id}")

    @property
    def id(self) -> str:
        return self._log.turn_id

    @property
    def events(self) -> Sequence[Event]:
        """What happened so far."""
        return self._log.events

    @property
    def done(self) -> bool:
        return self._task.done()

    def follow(self, from_seq: int = 0) -> AsyncIterator[Event]:
        """Events from `from_seq` on, past ones first, then live, until the turn ends."""
        return self._log.follow(from_seq)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.follow()

    def __await__(self) -> Generator[Any, None, Reply]:
        return asyncio.shield(self._task).__await__()

    def cancel(self) -> None:
        """Stops the turn: its agents, streams and tools end first, then it completes as `cancelled`."""
        if self._runner.begun:
            self._task.cancel()
        else:
            self._runner.stopped = True


def run_turn(
    message: str,
    session: Session,
    kit: Host,
    pattern: Pattern | None = None,
    *,
    cap: int | None = None,
    history: Sequence[Message] | None = None,
    in_play: Sequence[str] | None = None,
    turn_id: str | None = None,
) -> Turn:
    """Starts a turn on the running loop and returns its handle at once.

    `pattern` defaults to the kit's; `cap` to the deck's. `history` and `in_play` stand in for what the store
    remembers of the session, for callers that bring a conversation of their own.
    Raises SessionError when the session is another principal's: nobody reads a stranger's history (PC2-FR-11).
    """
    known = kit.store.session(session.id)
    if known is not None and known.principal != session.principal:
        raise SessionError(f"session {session.id!r} belongs to someone else; start a new one under another id")
    turn_log = TurnLog(turn_id or uuid.uuid4().hex, asyncio.get_running_loop().time)
    return Turn(_Runner(message, session, kit, pattern or kit.pattern, turn_log, cap, history, in_play))


class _Runner:
    def __init__(
        self,
        message: str,
        session: Session,
        kit: Host,
        pattern: Pattern,
        turn_log: TurnLog,
        cap: int | None,
        history: Sequence[Message] | None,
        in_play: Sequence[str] | None,
    ):
        self.begun = self.stopped = False
        self.unsaved: str | None = None
        self.message = clean(message)
        self.session, self.kit, self.pattern, self.log = session, kit, pattern, turn_log
        self.root = kit.team.orchestrator
        self.settings = kit.team.deck.settings
        remembered = tuple(kit.store.turns(session_id=session.id, limit=1)) if in_play is None else ()
        last = in_play if in_play is not None else (remembered[0].invoked if remembered else ())
        dynamic = DynamicContext(
            date=kit.today,
            user_id=session.principal.user_id,
            locale=session.locale,
            location=session.location,
            in_play=tuple(last),
        )
        self.state = TurnState(
            log=turn_log,
            agents=kit.team.agents,
            dynamic=dynamic,
            cap=self.settings.cap if cap is None else cap,
            pattern=getattr(pattern, "__name__", "pattern"),
            history=_reader(kit.store, session.id, history),
            phrases=self.settings.status_phrases,
            default_sub_agent=self.settings.default_sub_agent,
            cassette=kit.cassette,
        )
        inherited = InheritedContext(
            principal=session.principal, episode_id=session.id, locale=session.locale, location=session.location
        )
        callees = frozenset(card.id for card in self.root.sub_cards.values())
        self.ctx = RunContext(self.state, inherited, turn_log.new_span(), callees=callees, path=self.root.card.id)

    async def run(self) -> Reply:
        self.begun = True
        status: Status
        error: str | None = None
        try:
            record = self._begin()
            try:
                if self.stopped:
                    raise asyncio.CancelledError
                status, text, error = await self._answer()
            except asyncio.CancelledError:
                status, text = "cancelled", transcript(self.log.events).answer
            return self._finish(record, status, text, error)
        finally:
            self.log.close()

    def _begin(self) -> TurnRecord:
        started_at = time.time()
        self.ctx.emit(Thinking())
        self.ctx.emit(
            TurnStarted(
                message=self.message,
                session_id=self.session.id,
                principal=self.session.principal,
                pattern=self.state.pattern,
                started_at=started_at,
                deck=self.kit.team.deck.name,
                cohort=self.root.prompt.cohort,
                cap=self.state.cap,
                model=self.root.model.spec.key,
            )
        )
        record = TurnRecord(
            id=self.log.turn_id,
            session_id=self.session.id,
            tenant_id=self.session.principal.tenant_id,
            user_id=self.session.principal.user_id,
            message=self.message,
            pattern=self.state.pattern,
            model=self.root.model.spec.key,
            started_at=started_at,
            cap=self.state.cap,
        )
        self._keep(lambda: (self.kit.store.open_session(self.session), self.kit.store.begin_turn(record)))
        return record

    def _keep(self, write: Callable[[], object]) -> None:
        """A store that fails must not cost the user the answer: the loss is logged and stands on the trace's last event."""
        try:
            write()
        except StoreError as error:
            self.unsaved = str(error)
            log.error("turn %s is not saved: %s", self.log.turn_id, error)

    async def _answer(self) -> tuple[Status, str, str | None]:
        declined = decline(self.message)
        if declined is not None:
            return "ok", declined, None
        call = AgentCall(call_id="root", agent=self.root.card.id, query=self.message)
        outcome = await guarded(self.pattern, call, self.ctx, self.settings.turn_budget_ms / 1000)
        if isinstance(outcome, Answer):
            return "ok", outcome.text, None
        text = rescue(self.state.outcomes, self.state.dropped)
        return "deadline" if outcome.reason == "timeout" else "failed", text, f"{outcome.reason}: {outcome.detail}"

    def _finish(self, record: TurnRecord, status: Status, text: str, error: str | None) -> Reply:
        said = transcript(self.log.events)
        invoked = bool(self.state.emitted)
        self._reconcile(text, said.answer, said.answer_seq, already=not invoked and said.lead.strip() == text)
        routing = routing_of(self.state)
        usage = total(self.ctx.spent)
        self.ctx.emit(Routing(decision=routing))
        self.ctx.emit(Spent(usage=usage))
        self.ctx.emit(Completed(status=status, text=text, error=error or self.unsaved))
        self.log.close()
        done = record_of(record, self.log, routing, usage, status, text)
        self._keep(lambda: self.kit.store.end_turn(done, self.log.events, dialogue(done, self.state)))
        self.kit.recorder.turn_ended(done, self.log.events)
        return Reply(
            turn_id=self.log.turn_id,
            status=status,
            text=text,
            preamble=said.lead if invoked else "",
            outcomes=tuple(self.state.outcomes),
            routing=routing,
            usage=usage,
            events=tuple(self.log.events),
        )

    def _reconcile(self, text: str, shown: str, first: int | None, *, already: bool) -> None:
        """Makes the page's answer the final text, whatever was streamed before it was known."""
        if already or shown.strip() == text.strip():
            return
        if first is None:
            self.ctx.emit(Text(channel="answer", text=text))
        else:
            self.ctx.emit(TextReplaced(from_seq=first, text=text))


def _reader(store: Store, session_id: str, history: Sequence[Message] | None) -> Callable[[str], Sequence[Message]]:
    if history is not None:
        return lambda agent: [message for message in history if message.agent == agent]
    return lambda agent: store.history(session_id, agent)
