"""The handle of a running turn, the reply it comes to, and what it needs of whoever runs it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kit.core.bodies.call import AgentEnded, AgentStarted
from kit.core.bodies.turn import AgentBroken, PlanEnded
from kit.core.display.html import folded, notebook_html, table, text
from kit.core.display.turn_parts import TurnParts, ending_words, turn_parts
from kit.core.errors import ClosedError, FaultError, StoreError
from kit.core.event import Event
from kit.core.fault import Fault
from kit.core.fault_injection import Injection
from kit.core.outcome import Outcome, RoutingDecision, Usage
from kit.core.record import Measures, TurnRecord
from kit.core.trace import Trace, trace_of, waterfall
from kit.metrics.alert import log_mismatch
from kit.models.message import CUT_OFF
from kit.runtime.budget import GRACE
from kit.runtime.log import TurnLog
from kit.runtime.pattern import Pattern
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import Team
from kit.sinks.recorder import Recorder

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

Status = Literal["ok", "failed", "cancelled", "deadline", "paused", "interrupted"]


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
    saved: bool = True
    """Whether the store has the turn; one that it has not is in no history."""

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.events)

    @cached_property
    def parts(self) -> TurnParts:
        """What became of the parts of the message: asked, answered, failed, left out."""
        return turn_parts(self.routing)

    @property
    def plan(self) -> PlanEnded | None:
        """How the turn's plan ended; None for a turn that is none, or whose plan was stopped."""
        for event in reversed(self.events):
            if isinstance(event.body, PlanEnded):
                return event.body
        return None

    def _repr_html_(self) -> str:
        """Shows the answer in a notebook, how each sub-agent's part ended, and the trace on a click."""
        rows: list[tuple[str, str, str]] = []
        for outcome in self.outcomes:
            seconds = f"{outcome.timing.seconds:.2f} s" if outcome.timing else ""
            rows.append((outcome.agent, _ending(outcome), seconds))
        tokens = self.usage.input_tokens + self.usage.output_tokens
        ending = ending_words(self.status, self.parts)
        head = f"{ending} · {self.usage.model_calls} model calls · {tokens:,} tokens · turn {self.turn_id}"
        parts = [table(("sub-agent", "outcome", "time"), rows)] if rows else []
        return notebook_html(
            text(head), text(self.text), *parts, folded("trace", waterfall(self.trace))
        )

    @property
    def truncated(self) -> bool:
        """Whether a part of the answer was cut off before its end; the text says so."""
        return (
            any(outcome.kind == "answer" and outcome.truncated for outcome in self.outcomes)
            or self._ends_cut_off
        )

    @property
    def _ends_cut_off(self) -> bool:
        """Whether the orchestrator's own last words were cut off, and are in the answer."""
        cut_off = False
        last_words = ""
        own_spans: set[str] = set()
        for event in self.events:
            body = event.body
            if body.kind == "model_started" and body.purpose in ("decide", "compose"):
                own_spans.add(event.span_id)
                last_words = ""
            elif body.kind == "model_ended" and event.span_id in own_spans:
                cut_off = body.finish_reason in CUT_OFF
                last_words = body.text.strip()
        return cut_off and bool(last_words) and last_words in self.text


def _ending(outcome: Outcome) -> str:
    if outcome.kind == "answer":
        return outcome.text
    return f"failed: {outcome.reason}"


class Runner(Protocol):
    """What a handle needs of a turn's work."""

    log: TurnLog
    reply: asyncio.Future[Reply]
    begun: bool
    stop_requested: bool
    injection: Injection | None
    """What its agents are made to fail by; None where they cannot be."""

    async def run(self) -> None: ...

    def stop(self) -> bool:
        """Takes the stop of the turn's user; False where the work does not end by being cancelled here."""
        ...

    def leave(self, status: Status) -> None:
        """Ends the turn without what does not stop; does nothing where all stopped."""
        ...


class Turn:
    """A running turn: `async for event in turn` follows it, `await turn` gets its reply, `cancel()` stops it.

    Any number may follow or await; cancelling one of them does not stop the turn.
    """

    def __init__(self, runner: Runner):
        self._runner = runner
        self._log = runner.log
        self._task = asyncio.get_running_loop().create_task(
            runner.run(), name=f"turn {runner.log.turn_id}"
        )

    @property
    def id(self) -> str:
        return self._log.turn_id

    @property
    def events(self) -> Sequence[Event]:
        """What happened so far."""
        return self._log.events

    @property
    def done(self) -> bool:
        return self._runner.reply.done()

    @property
    def reply(self) -> asyncio.Future[Reply]:
        """What the turn comes to, for those who wait for several; it is not to be cancelled."""
        return self._runner.reply

    def follow(self, from_seq: int = 0) -> AsyncIterator[Event]:
        """Events from `from_seq` on, past ones first, then live, until the turn ends."""
        return self._log.follow(from_seq)

    async def wait_for(self, seq: int) -> bool:
        """Waits for the event of that number, and returns whether the turn has one."""
        await self._log.wait_for(seq)
        return seq < len(self._log.events)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.follow()

    def __await__(self) -> Generator[Any, None, Reply]:
        # Who stops waiting does not stop the turn. `asyncio.shield` does the same with a second
        # future and a step of the loop more, which takes 1.5 % of the CPU of a turn.
        if not self._runner.reply.done():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._log.at_close.append(waiter)
            yield from waiter
        return self._runner.reply.result()

    def cancel(self) -> None:
        """Stops the turn for its user: its agents, streams and tools end first, then it completes as
        `cancelled`. A plan that it works on goes on only when its user says so."""
        if self._runner.stop():
            self.interrupt()

    def interrupt(self) -> None:
        """Stops the turn because its kit closes; a plan that it works on may be taken up by another process."""
        if self._runner.begun:
            self._task.cancel()
            # Work that takes no notice of the stop is left behind after a grace.
            timer = self._task.get_loop().call_later(GRACE, self._runner.leave, "cancelled")
            self._task.add_done_callback(lambda _: timer.cancel())
        else:
            self._runner.stop_requested = True

    def break_agent(self, fault: Fault) -> None:
        """Makes an agent fail from now on, in the middle of what it does, and says so in the turn's log.

        A fault that comes after the agent has answered is in the log too, and changes nothing.
        Raises FaultError for a turn whose agents cannot be made to fail, or that is over.
        """
        injection = self._runner.injection
        if injection is None or self.done:
            raise FaultError(
                "nothing of this turn can be made to fail: it is over, it runs in another process, or "
                "its kit was opened without faults: open_kit(faults=True)"
            )
        # Said first: what it breaks off ends after it.
        span_id, parent_id = self._span_of(fault.where)
        self._log.emit(AgentBroken(agent=fault.where, fault=fault.kind), span_id, parent_id)
        injection.add(fault)

    def _span_of(self, agent: str) -> tuple[str, str | None]:
        """Returns the newest open span of an agent and the span above it; the turn's own where there is none."""
        ended: set[str] = set()
        for event in reversed(self._log.events):
            if isinstance(event.body, AgentEnded):
                ended.add(event.span_id)
            is_start = isinstance(event.body, AgentStarted) and event.body.agent == agent
            if is_start and event.span_id not in ended:
                return event.span_id, event.parent_span_id
        return self._log.events[0].span_id, None

    def on_end(self, callback: Callable[[], object]) -> None:
        """Calls back once the turn has ended and is stored, at once where it has."""
        self._runner.reply.add_done_callback(lambda _: callback())


class Turns:
    """The turns of a kit that run now: none is lost when the kit closes."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Future[Reply], Turn] = {}
        self._closed = False
        self.on_begin: Callable[[Turn], object] | None = None
        """Is told of each turn that begins."""

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, start: Callable[[], Turn]) -> Turn:
        """Starts a turn, holds it until it ends, and returns it. Raises ClosedError once the kit is closing."""
        if self._closed:
            raise ClosedError("this kit is closing: open another one with open_kit()")
        turn = start()
        self._running[turn.reply] = turn
        turn.reply.add_done_callback(self._running.pop)
        if self.on_begin is not None:
            self.on_begin(turn)
        return turn

    def running(self, turn_id: str) -> Turn | None:
        """Returns the turn of that id; None where it does not run here."""
        for turn in self._running.values():
            if turn.id == turn_id:
                return turn
        return None

    async def drain(self, seconds: float = 0.0) -> None:
        """Begins no more turns, waits so long for those that run, then stops the rest.

        On return all have ended and are stored: finished, or `cancelled` with the answers that were there.
        """
        self._closed = True
        replies = list(self._running)
        if replies and seconds:
            await asyncio.wait(replies, timeout=seconds)
        for turn in list(self._running.values()):
            turn.interrupt()
        if replies:
            await asyncio.wait(replies)


class Host(Protocol):
    """What a turn needs of the kit that runs it."""

    @property
    def team(self) -> Team: ...
    @property
    def store(self) -> "TurnStore": ...
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


@dataclass(slots=True)
class Alarm:
    """Tells log, store and sinks of a reply for another principal: a process that dies then leaves it behind.

    It holds nothing of the running turn, which would then live until the garbage collector came.
    """

    record: TurnRecord
    kit: Host

    def __call__(self, event: Event) -> None:
        mismatches = (*self.record.measures.mismatches, event.at)
        self.record = self.record.replace(measures=Measures(mismatches=mismatches))
        log_mismatch(self.record)
        # a busy store gets it with the end of the turn
        with suppress(StoreError):
            self.kit.store.begin_turn(self.record, wait=False)
        self.kit.recorder.principal_mismatch(self.record)
