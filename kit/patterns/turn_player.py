"""Plays a stored turn inside another as far as it went, and lets the calls after that be made."""

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from langchain_core.messages.tool import ToolCall

from kit.core.bodies.call import (
    PREFIX,
    AgentError,
    AgentStarted,
    AnswerChosen,
    CallFailure,
    ModelStarted,
    ToolEnded,
    ToolStarted,
)
from kit.core.bodies.speech import ResponseId
from kit.core.bodies.turn import Fork, Replay, Resumed
from kit.core.card import AgentCard
from kit.core.event import Event
from kit.core.model import OFFLINE, ModelSpec
from kit.core.outcome import AgentCall, Outcome
from kit.runtime.bound_model import BoundModel
from kit.runtime.call_tool import lookup_key
from kit.runtime.context import Agent, RunContext
from kit.runtime.log import TurnLog
from kit.runtime.pattern import Pattern
from kit.runtime.recording.player import Player
from kit.runtime.recording.recorded_call import RecordedCall, Request, digest
from kit.runtime.recording.stored_turn import ANYWHERE, StoredTurn, agent_request, traced_request
from kit.runtime.team import Team

HOPS = 40
"""Times that the loop goes round before the clock jumps: whoever is ready goes first."""


class ReplayClock:
    """Seconds since the turn began. `until()` waits for a moment of the recording; `run()` ends the
    jumping, for good."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = 0.0
        self._offset = 0.0
        self._runs = False
        self._jumps = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def __call__(self) -> float:
        if self._runs:
            return self._loop.time() - self._offset
        return self._now

    async def until(self, moment: float) -> None:
        """Waits until that second of the turn. Waits of one moment end in the order in which they began."""
        future: asyncio.Future[None] = self._loop.create_future()
        heapq.heappush(self._waiting, (moment, next(self._order), future))
        if self._runs:
            self._ring_later()
        elif not self._jumps:
            self._jumps = True
            self._loop.call_soon(self._jump, HOPS)
        await future

    def run(self) -> None:
        """From now on time passes by itself."""
        if not self._runs:
            self._runs = True
            self._offset = self._loop.time() - self._now
            self._ring_later()

    def _jump(self, hops: int) -> None:
        if self._runs or not self._waiting:
            self._jumps = False
        elif hops:
            # What one moment wakes needs some rounds of the loop to be through; a clock that jumped at
            # once would let the next recorded event overtake it.
            self._loop.call_soon(self._jump, hops - 1)
        else:
            self._now = max(self._now, self._waiting[0][0])
            self._ring()
            self._loop.call_soon(self._jump, HOPS)

    def _ring_later(self) -> None:
        for moment, _, _ in self._waiting:
            self._loop.call_later(max(0.0, moment - self()), self._ring, moment)

    def _ring(self, moment: float = 0.0) -> None:
        while self._waiting and self._waiting[0][0] <= max(moment, self()):
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)


ADVICE = "ask the turn again instead"


class TurnPlayer(Player):
    """Plays each call of a stored turn while that has one for it; the first call that it has none
    for is made, and time runs from then on."""

    log: TurnLog
    clock: ReplayClock

    def __init__(
        self, origin: Fork | Resumed, stored_turn: StoredTurn, models: Mapping[str, ModelSpec]
    ):
        """`origin` is what the trace says of the stored turn; `models`, by key, say what a call cost."""
        super().__init__("live", f"turn {origin.turn_id}", ADVICE, stored_turn.calls)
        self.origin = origin
        self._models = {OFFLINE.key: OFFLINE, **models}

    def pattern(self, pattern: Pattern) -> Pattern:
        """Returns the pattern, with this player in its turns."""

        async def run(call: AgentCall, ctx: RunContext) -> Outcome:
            self.log = ctx.turn.log
            self.clock = ReplayClock()
            # By a real clock what is played would take no time, and the trace would say so.
            self.log.run_on(self.clock)
            ctx.turn.player = self
            ctx.emit(self.origin)
            outcome = await pattern.run(call, ctx)
            # Of a sub-agent that failed because the record does not fit, the answer would only
            # say that it failed.
            self._raise_mismatch()
            return outcome

        return replace(pattern, run=run)

    def team(self, team: Team) -> Team:
        """Returns the team, its sub-agents played where the turn has them."""
        agents: dict[str, Agent] = {}
        for agent_id, agent in team.agents.items():
            if agent_id != team.root:
                agents[agent_id] = RecordedAgent(agent, self)
        return team.with_agents(agents)

    def model(self, call_site: str, model: BoundModel) -> BoundModel:
        """Returns the model of a call, for a call that is played under the name of its model."""
        for call in self.recorded_at(call_site):
            if call.model and call.model != model.spec.key:
                unknown = {"key": call.model, "price_in": None, "price_out": None}
                spec = self._models.get(call.model) or model.spec.model_copy(update=unknown)
                return replace(model, spec=spec)
        return model

    def find(self, call_site: str, request: Request) -> RecordedCall | None:
        """Returns the call that is played; None when the call is to be made, and time runs from then on.

        Its start is the last event of the log.
        """
        event = self.log.events[-1]
        if not isinstance(event.body, ToolStarted):
            request = traced_request(self.log.events, event.span_id)
        call = self._find(call_site, request)
        if call is not None:
            self.log.emit(Replay(), event.span_id, event.parent_span_id)
        return call

    def find_agent(self, path: str, start: AgentStarted) -> RecordedCall | None:
        """Returns the call of an agent that is played as a whole; None when the agent is to be asked."""
        request = agent_request(start)
        anywhere = self.calls.get(("", ANYWHERE, digest(request), 1))
        # What was asked from this very path comes first: there it must be the same question.
        if anywhere is not None and not self.recorded_at(path):
            return anywhere
        return self._find(path, request)

    def _find(self, call_site: str, request: Request) -> RecordedCall | None:
        self._raise_mismatch()
        call = self.serve(call_site, request)
        if call is None:
            self.clock.run()
        return call

    def _raise_mismatch(self) -> None:
        """Raises the CassetteError of the first request that did not fit: from then on nothing is called."""
        if self.errors:
            raise self.errors[0]

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took."""
        await self.clock.until(self.clock() + seconds)


@dataclass(frozen=True)
class RecordedAgent:
    """A sub-agent that is played where the stored turn has it, and asked where it has not."""

    agent: Agent
    player: TurnPlayer

    @property
    def card(self) -> AgentCard:
        return self.agent.card

    @property
    def time_budget(self) -> float | None:
        return self.agent.time_budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)  # its policy and its prompt, where it has them

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Plays the agent, or asks it. Raises CassetteError where it is asked for something else."""
        recorded = self.player.find_agent(ctx.path, _start_of(ctx))
        if recorded is None or recorded.outcome is None:
            return await self.agent.run(call, ctx)
        await _play(recorded, ctx, self.player.clock)
        return recorded.outcome.replace(call_id=call.call_id)


def _start_of(ctx: RunContext) -> AgentStarted:
    """Returns the event that opened the span of an agent."""
    for event in reversed(ctx.turn.log.events):
        if event.span_id == ctx.span_id and isinstance(event.body, AgentStarted):
            return event.body
    raise LookupError(f"no agent began in span {ctx.span_id}")


async def _play(call: RecordedCall, ctx: RunContext, clock: ReplayClock) -> None:
    """Emits what happened in a sub-agent, at its time, under the span of this turn that stands for it."""
    log = ctx.turn.log
    spans = dict[str, tuple[str, str | None]]()
    # Its silence is that of the stored turn; nobody need be told to wait.
    ctx.turn.progress.excuse(ctx.path)
    ctx.emit(Replay())
    for event in call.events:
        await clock.until(event.at)
        is_start = event.kind.endswith("_started")
        if event.span_id not in spans:
            if event.parent_span_id in spans:
                spans[event.span_id] = (log.new_span(), spans[event.parent_span_id][0])
            elif is_start:
                spans[event.span_id] = (log.new_span(), ctx.span_id)
            else:
                spans[event.span_id] = (ctx.span_id, ctx.parent_span_id)
        span_id, parent_id = spans[event.span_id]
        if span_id == ctx.span_id and isinstance(event.body, AgentError | ResponseId):
            continue  # the dispatch says it again
        log.emit(event.body, span_id, parent_id)
        if is_start:
            log.emit(Replay(), span_id, parent_id)
        if isinstance(event.body, ModelStarted) and event.body.system.startswith(PREFIX):
            ctx.turn.suffix = ctx.turn.suffix or event.body.system
        _remember(event, call.events, ctx)
    await clock.until(call.seconds)


def _remember(event: Event, events: Sequence[Event], ctx: RunContext) -> None:
    """Keeps in the turn what its later calls are held to: what was counted against the cap, which
    lookups are barred."""
    match event.body:
        case AnswerChosen(members=members):
            ctx.turn.take(len(members) - 1)
        case ToolEnded(failure=CallFailure(kind="principal_mismatch")):
            for start in events:
                if start.span_id == event.span_id and isinstance(start.body, ToolStarted):
                    call = ToolCall(name=start.body.tool, args=dict(start.body.args), id=None)
                    ctx.turn.barred.add(lookup_key(call))
        case _:
            pass
