"""The one way work reaches an agent. Errors become values here, siblings never feel each other, the cap holds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from kit.core.bodies.call import AgentEnded, AgentError, AgentStarted
from kit.core.bodies.guard import AccessDenied, CallDropped
from kit.core.bodies.speech import Component, ResponseId
from kit.core.errors import describe_error
from kit.core.language.controls import CONTROL, without_controls
from kit.core.outcome import AgentCall, Answer, Failure, FanOut, Outcome, Reason, Timing
from kit.core.value import builder
from kit.models.diagnosis import status_of
from kit.runtime.acts.pause import Paused
from kit.runtime.agents.handoff import HandoffResult, apply_handoff, hide, hide_outcome
from kit.runtime.agents.together import together
from kit.runtime.budget import Deadline, Ledger, OverBudget
from kit.runtime.context import Agent, RunContext, TurnState
from kit.runtime.speech.narration import MARK, narration

_agent_started = builder(AgentStarted)
_agent_ended = builder(AgentEnded)
_new_timing = builder(Timing)
_fan_out = builder(FanOut)
Work = Callable[[AgentCall, RunContext], Awaitable[Outcome]]
"""A pattern or an agent's run: a call in, an outcome out."""
Carrier = Callable[[AgentCall, RunContext, str, dict[str, Outcome]], Awaitable[Outcome]]
"""Carries out one call from its place and notes there how it ended; `dispatch` is the plainest."""


async def dispatch(
    call: AgentCall, ctx: RunContext, place: str = "1.1", endings: dict[str, Outcome] | None = None
) -> Outcome:
    """Runs one agent and returns its outcome, whatever happens to it.

    `place` is the call's round and position, for its path. Only a cancellation from outside passes
    through, and even then `ended[place]` is the outcome: a stopped agent has one too.
    """
    turn = ctx.turn
    agent = turn.agents.get(call.agent)
    handoff = apply_handoff(call, agent.card if agent is not None else None, ctx.inherited)
    turn.private += handoff.private
    span = ctx.open_span(_start_event(handoff, agent, ctx, place))
    began = turn.log.now()
    call, ledger = handoff.call, Ledger(call.agent, ctx.ledger)
    path = f"{ctx.path}/{place}.{call.agent}"
    turn.progress.begin(span, call.agent, path, began)
    try:
        outcome = _refusal(handoff, agent, span, ledger)
        if outcome is None and agent is not None:
            outcome = await _run(call, agent, span, path, ledger)
    except (asyncio.CancelledError, Paused) as stop:
        timing = Timing(started=began, ended=turn.log.now())
        if isinstance(stop, Paused):
            failure = _paused(call)
        else:
            failure = _interruption(call, turn)
        failure = failure.replace(usage=ledger.settle(), timing=timing)
        _close(failure, span, place, endings)
        raise
    finally:
        turn.progress.end(call.agent, path)
        usage = (
            ledger.settle()
        )  # once, and whatever happened: a stopped agent's calls were paid for
        for put_away in ledger.at_end:
            put_away()
    assert outcome is not None
    if isinstance(outcome, Answer) and CONTROL.search(outcome.text):
        # A peer's or a service's words come by no model call, where a model's are scrubbed.
        outcome = outcome.replace(text=without_controls(outcome.text))
    if (
        isinstance(outcome, Answer) and MARK in outcome.text
    ):  # a remote peer's words; a model's are parted in call_model
        text, parts = narration(outcome.text)
        outcome = outcome.model_copy(
            update={"text": text, "components": (*outcome.components, *parts)}
        )
        for part in parts:
            span.emit(Component(agent=call.agent, type=part.type, payload=part.payload))
    if call.agent == turn.settings.support_agent and isinstance(outcome, Answer):
        span.emit(ResponseId(agent=call.agent, response_id=f"ft_{turn.log.turn_id}_{span.span_id}"))
    outcome = outcome.replace(usage=usage, timing=_new_timing(started=began, ended=turn.log.now()))
    _close(outcome, span, place, endings)
    return outcome


async def fan_out(
    calls: Sequence[AgentCall], ctx: RunContext, through: Carrier = dispatch
) -> FanOut:
    """Runs calls at the same time, the first `cap` of the turn only; the rest are recorded and
    never run.

    Takes as long as the slowest. When it is cancelled, every child has ended before it returns, and
    the turn has an outcome for each call: finished agents their own, the others a Failure that says
    whether time ran out or the turn was stopped. `through` stands around the dispatch of each call.
    """
    turn = ctx.turn
    run, over_cap = turn.open_round(calls)
    for call in over_cap:
        ctx.emit(CallDropped(agent=call.agent, call_id=call.call_id, reason="over_cap"))
    places: dict[str, AgentCall] = {}
    for position, call in enumerate(run, 1):
        places[f"{turn.rounds}.{position}"] = call
    endings: dict[str, Outcome] = {}
    try:
        waiting: dict[str, AgentCall] = {}
        for place, call in places.items():
            if turn.memory.waits(call, ctx):
                waiting[place] = call
        work: list[Awaitable[Outcome | None]]
        work: list[Awaitable[Answer | Failure | None]] = []
        for place, call in places.items():
            if place not in waiting:
                work.append(through(call, ctx, place, endings))
        if waiting:  # the others do not wait for what these are told
            work.append(_inform(waiting, ctx, through, endings))
        await together(work)
    finally:
        outcomes: list[Answer | Failure] = []
        for place, call in places.items():
            outcomes.append(endings.get(place) or _interruption(call, turn))
        turn.record(outcomes)
    return _fan_out(outcomes=tuple(outcomes), dropped=tuple(over_cap), cap=turn.cap)


async def _inform(
    places: Mapping[str, AgentCall], ctx: RunContext, through: Carrier, endings: dict[str, Outcome]
) -> None:
    """Tells agents what came before and runs their calls."""
    calls = await ctx.turn.memory.carry(list(places.values()), ctx)
    await together(
        [through(call, ctx, place, endings) for place, call in zip(places, calls, strict=True)]
    )


async def run_to_outcome(
    work: Work,
    call: AgentCall,
    ctx: RunContext,
    seconds: float | None,
    leave: Callable[[], None] | None = None,
) -> Outcome:
    """Runs work under a deadline and turns every way it can end into an outcome; `leave` is the Deadline's."""
    deadline = Deadline(seconds, leave)
    try:
        with deadline:
            return await work(call, ctx)
    except TimeoutError as error:
        if deadline.expired and seconds is not None:
            detail = f"no answer within {seconds:g} s"
        else:
            detail = describe_error(error)
        return _failure(call, "timeout", detail)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _failure(
            call, "cancelled", describe_error(error)
        )  # a library cancelled itself: nobody asked this turn to stop
    except OverBudget as error:
        return _failure(call, "budget", str(error))
    except Exception as error:  # the one place an agent's exception becomes a value
        reason: Reason = "rate_limited" if status_of(error) == 429 else "exception"
        return _failure(call, reason, describe_error(error))


def _start_event(
    handoff: HandoffResult, agent: Agent | None, ctx: RunContext, place: str
) -> AgentStarted:
    """Returns the first event of a call; pictures cross to all whom the orchestrator calls, but
    into no closed hand-off."""
    call = handoff.call
    limited = handoff.limited
    pictures = tuple[str, ...]()
    if private := ctx.turn.private:
        call = call.model_copy(
            update={
                "query": hide(call.query, private),
                "prior_context": hide(call.prior_context, private),
            }
        )
    if ctx.turn.pictures and ctx.ledger.parent is None:
        if agent is not None and agent.card.handoff.closed:
            limited = (*limited, "pictures do not cross a closed hand-off: left out")
        else:
            pictures = tuple(picture.ref.sha256 for picture in ctx.turn.pictures)
    return _agent_started(
        agent=call.agent,
        call_id=call.call_id,
        query=call.query,
        prior_context=call.prior_context,
        fields=dict(handoff.trace_fields),
        limited=limited,
        principal=ctx.inherited.principal,
        cohort=prompt.cohort if (prompt := getattr(agent, "prompt", None)) else "",
        pictures=pictures,
        place=place,
    )


def _refusal(
    handoff: HandoffResult, agent: Agent | None, ctx: RunContext, ledger: Ledger
) -> Failure | None:
    """Returns why a call may not run; None when it may, and then its budget is reserved."""
    call = handoff.call
    caller = ctx.ledger
    if agent is None:
        return _failure(call, "unknown_agent", f"{call.agent!r} is not bound")
    if caller.within(call.agent):
        ctx.emit(
            AccessDenied(agent=caller.agent, what="agent", name=call.agent, because="recursion")
        )
        return _failure(
            call,
            "not_allowed",
            f"{call.agent!r} is at work above: an agent may not call itself or its callers",
        )
    if call.agent not in ctx.callees:
        ctx.emit(
            AccessDenied(agent=caller.agent, what="agent", name=call.agent, because="not_on_card")
        )
        return _failure(call, "not_allowed", f"{call.agent!r} is not among the caller's sub_agents")
    if caller.depth == 0:
        ctx.emit(AccessDenied(agent=caller.agent, what="agent", name=call.agent, because="depth"))
        return _failure(call, "budget", f"depth: {caller.agent!r} may have no agent below it")
    if handoff.breach:
        return _failure(call, "contract_violation", handoff.breach)
    try:
        ledger.reserve(getattr(agent, "policy", agent.card.policy))
    except OverBudget as error:
        return _failure(call, "budget", str(error))
    return None


async def _run(
    call: AgentCall, agent: Agent, ctx: RunContext, path: str, ledger: Ledger
) -> Outcome:
    inherited = ctx.inherited
    handoff = agent.card.handoff
    if call.prior_context:
        inherited = inherited.model_copy(update={"prior_context": call.prior_context})
    elif handoff.closed and not any(
        field.source == "location" for field in handoff.fields.values()
    ):
        inherited = inherited.model_copy(update={"location": None})
    callees = frozenset(agent.card.sub_agents)
    inner = RunContext(
        ctx.turn, inherited, ledger, ctx.span_id, ctx.parent_span_id, callees, path, ctx.slot
    )
    outcome = await run_to_outcome(agent.run, call, inner, agent.time_budget)
    if not ledger.touched:  # an agent elsewhere says itself what it spent
        ledger.charge(outcome.usage)
        if isinstance(outcome, Answer) and ledger.touched:
            try:
                ledger.after_model()
                ledger.before_tools(0)
            except OverBudget as error:
                return _failure(call, "budget", str(error))
    return outcome


def _close(
    outcome: Outcome, span: RunContext, place: str, endings: dict[str, Outcome] | None
) -> None:
    private = span.turn.private
    span.emit(
        _agent_ended(
            agent=outcome.agent, outcome=hide_outcome(outcome, private) if private else outcome
        )
    )
    if isinstance(outcome, Failure):
        span.emit(
            AgentError(agent=outcome.agent, axis=outcome.axis, is_final=span.ledger.parent is None)
        )
    elif outcome.data_faults:
        span.emit(AgentError(agent=outcome.agent, axis="data", is_final=False))
    if endings is not None:
        endings[place] = outcome


def _interruption(call: AgentCall, turn: TurnState) -> Failure:
    """Returns the failure of a call that the end of its turn interrupts, or never lets begin."""
    if turn.out_of_time:
        return _failure(call, "timeout", "the time of the turn was over")
    return _failure(call, "cancelled", "the turn was stopped")


def _paused(call: AgentCall) -> Failure:
    return _failure(call, "paused", "it waits for the user's answer")


def unrecorded(turn: TurnState) -> list[Outcome]:
    """Returns how the calls of a round that is still open end now: by what the log has of them, else interrupted."""
    bodies = (event.body for event in turn.log.events)
    endings: dict[str, Answer | Failure] = {}
    for body in bodies:
        if isinstance(body, AgentEnded):
            endings[body.outcome.call_id] = body.outcome
    known = {one.call_id for one in (*turn.outcomes, *turn.over_cap)}
    outcomes: list[Outcome] = []
    for call in turn.calls:
        if call.call_id not in known:
            outcomes.append(endings.get(call.call_id) or _interruption(call, turn))
    return outcomes


def _failure(call: AgentCall, reason: Reason, detail: str) -> Failure:
    return Failure(
        call_id=call.call_id, agent=call.agent, axis="invocation", reason=reason, detail=detail
    )
