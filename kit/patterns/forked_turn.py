"""A turn that plays a stored one as far as that went: it answers the calls it has, and lets the others be made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from kit.core.errors import CassetteError
from kit.core.event import Event
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Outcome
from kit.runtime.acts.act import lookup_key
from kit.runtime.bound_model import BoundModel
from kit.runtime.context import Agent, RunContext
from kit.runtime.log import TurnLog
from kit.runtime.pattern import Pattern
from kit.runtime.recording.mismatch import misfit
from kit.runtime.recording.recorded_call import Mode, Request, Take
from kit.runtime.recording.replay_clock import ReplayClock
from kit.runtime.recording.turn_recording import PlayedAgent, TurnRecording, question
from kit.runtime.team import Team
from kit.stores.model_request import whole_system

ADVICE = "ask the turn again instead"
_UNPRICED = {"price_in": None, "price_out": None}


@dataclass
class ForkedTurn:
    """A recording that plays one turn inside another: each call is played while it has one for it,
    and made after that."""

    origin: Fork | Resumed
    """What the trace says of it."""
    recording: TurnRecording
    specs: Mapping[str, ModelSpec]
    """By key: what a call that is played cost."""
    mode: Mode = "refresh"
    pace: float = 1.0
    error: CassetteError | None = None
    """Why it does not fit; from then on nothing is called."""
    log: TurnLog = field(init=False)
    clock: ReplayClock = field(init=False)

    def pattern(self, pattern: Pattern) -> Pattern:
        """Returns the pattern, with this recording in its turns."""

        async def run(call: AgentCall, ctx: RunContext) -> Outcome:
            self.log = ctx.turn.log
            self.clock = ReplayClock()
            self.log.run_on(self.clock)
            ctx.turn.cassette = self
            ctx.emit(self.origin)
            outcome = await pattern.run(call, ctx)
            if self.error is not None:  # a sub-agent that failed for it would only be owned up to
                raise self.error
            return outcome

        return replace(pattern, run=run)

    def team(self, team: Team) -> Team:
        """Returns the team, its sub-agents played where the recording has them."""
        return team.with_agents(
            {
                key: ForkedAgent(agent, self)
                for key, agent in team.agents.items()
                if key != team.root
            }
        )

    def model(self, path: str, model: BoundModel) -> BoundModel:
        """Returns the model of the next call from a path, for a call that is played under its own name."""
        calls = self.recording.models.get(path)
        if calls:
            started = calls[0].started
        else:
            started = None
        if not isinstance(started, ModelStarted) or started.model == model.spec.key:
            return model
        key = started.model
        return replace(
            model,
            spec=self.specs.get(key) or model.spec.model_copy(update={"key": key, **_UNPRICED}),
        )

    def find(self, place: str, request: Request) -> Take | None:
        """Returns the take of a call that is played; None when the call is to be made, and time runs from then on."""
        if self.error is not None:
            raise self.error
        path = place.rpartition(":")[0]
        event = self.log.events[-1]
        calls = (
            self.recording.tools if isinstance(event.body, ToolStarted) else self.recording.models
        ).get(path)
        if not calls:
            self.clock.run()
            return None
        call = calls.popleft()
        self.check(path, _parts(call.started), _parts(whole_system(event.body, self.log.events)))
        self.log.emit(Replay(), event.span_id, event.parent_span_id)
        return call.take

    def check(self, path: str, before: Request, now: Request) -> None:
        """Raises CassetteError where what is asked from a path is not what was recorded there."""
        if before != now:
            text = misfit(
                f"turn {self.origin.turn_id}",
                "",
                path,
                now,
                [Take(place=path, request=before)],
                ADVICE,
            )
            self.error = CassetteError(text)
            raise self.error

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took."""
        await self.clock.until(self.clock() + seconds)

    def keep(self, place: str, request: Request, **outcome: Any) -> None:
        """Does nothing: the trace has what is called."""

    def keep_fault(
        self, place: str, request: Request, error: BaseException, **outcome: Any
    ) -> None:
        """Does nothing: the trace has what failed."""


@dataclass(frozen=True)
class ForkedAgent:
    """A sub-agent that is played where the recording has it, and asked where it has not."""

    agent: Agent
    turn: ForkedTurn

    @property
    def card(self) -> AgentCard:
        return self.agent.card

    @property
    def time_budget(self) -> float | None:
        return self.agent.time_budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)  # its policy and its prompt, where it has them

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        """Plays the agent, or asks it: then time runs. Raises CassetteError where it is asked for something else."""
        if self.turn.error is not None:
            raise self.turn.error
        started = next(
            e.body
            for e in reversed(ctx.turn.log.events)
            if e.span_id == ctx.span_id and isinstance(e.body, AgentStarted)
        )
        recording = self.turn.recording
        played = recording.agents.pop(ctx.path, None) or recording.answers.pop(
            question(started), None
        )
        if played is None:
            self.turn.clock.run()
            return await self.agent.run(call, ctx)
        self.turn.check(ctx.path, _parts(played.started), _parts(started))
        await _play(played, ctx, self.turn.clock)
        return played.outcome.model_copy(update={"call_id": call.call_id})


async def _play(played: PlayedAgent, ctx: RunContext, clock: ReplayClock) -> None:
    """Emits what happened in a sub-agent, at its time, under the span of this turn that stands for it."""
    log = ctx.turn.log
    spans = dict[str, tuple[str, str | None]]()
    ctx.turn.progress.excuse(ctx.path)
    ctx.emit(Replay())
    for event in played.events:
        await clock.until(event.at)
        if event.parent_span_id in spans and event.span_id not in spans:
            spans[event.span_id] = log.new_span(), spans[event.parent_span_id][0]
        elif event.span_id not in spans:
            top = event.kind.endswith("_started")
            spans[event.span_id] = (
                (log.new_span(), ctx.span_id) if top else (ctx.span_id, ctx.parent_span_id)
            )
        span_id, parent_id = spans[event.span_id]
        if span_id == ctx.span_id and isinstance(event.body, AgentError | ResponseId):
            continue  # the dispatch says it again
        log.emit(event.body, span_id, parent_id)
        if event.kind.endswith("_started"):
            log.emit(Replay(), span_id, parent_id)
        if isinstance(event.body, ModelStarted) and event.body.system.startswith(PREFIX):
            ctx.turn.suffix = ctx.turn.suffix or event.body.system
        _remember(event, played.events, ctx)
    await clock.until(played.ended)


def _remember(event: Event, events: Sequence[Event], ctx: RunContext) -> None:
    """Keeps in the turn what its later calls are held to: what was counted against the cap, which
    lookups are barred."""
    match event.body:
        case AnswerChosen(members=members):
            ctx.turn.take(len(members) - 1)
        case ToolEnded(failure=CallFailure(kind="principal_mismatch")):
            start = next(
                e.body
                for e in events
                if e.span_id == event.span_id and isinstance(e.body, ToolStarted)
            )
            ctx.turn.barred.add(
                lookup_key(ToolCall(name=start.tool, args=dict(start.args), id=None))
            )
        case _:
            pass


def _parts(body: object) -> Request:
    """Returns what was asked, in named parts: of a recorded call, or of one that is being made."""
    match body:
        case ModelStarted():
            lines = ((f"message {n}", str(m)) for n, m in enumerate(body.input, body.before + 1))
            return (
                ("what follows the prompt", body.system),
                ("the number of messages before", str(body.before)),
                *lines,
            )
        case ToolStarted():
            return (
                ("arguments", json.dumps(dict(body.args), sort_keys=True, indent=1, default=str)),
            )
        case AgentStarted():
            fields = json.dumps(body.fields, sort_keys=True, default=str)
            return (
                ("query", body.query),
                ("prior_context", body.prior_context or ""),
                ("fields", fields),
            )
        case _:
            raise TypeError(f"{type(body).__name__} asks nothing")
