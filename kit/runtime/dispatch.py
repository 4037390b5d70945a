"""The one way work reaches an agent. Errors become values here, siblings never feel each other, the cap holds."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from kit.core.bodies.call import AgentEnded, AgentError, AgentStarted
from kit.core.bodies.guard import AccessDenied, CallDropped
from kit.core.bodies.speech import Component, ResponseId
from kit.core.errors import FOREIGN, CodeError, KitError, describe_error
from kit.core.language.controls import CONTROL, without_controls
from kit.core.outcome import PARTLY, AgentCall, Answer, Failure, FanOut, Outcome, Reason, Timing
from kit.core.value import builder
from kit.models.diagnosis import status_of
from kit.runtime.act_ledger import UNCERTAIN, Paused
from kit.runtime.budget import Deadline, Ledger, OverBudget
from kit.runtime.context import Agent, RunContext, TurnState
from kit.runtime.handoff import HandoffResult, apply_handoff, hide, hide_outcome
from kit.runtime.speech.narration import MARK, narration

log = logging.getLogger("kit.turn")
_KIT = str(Path(__file__).parents[1])
"""Where the code of the kit lies."""
_LIBRARIES = ("site-packages", str(Path(asyncio.__file__).parents[1]), "<")
"""Where the code of libraries and of Python itself lies, or what has no file."""
_OUTCOMES = (Answer, Failure)
_agent_started = builder(AgentStarted)
_agent_ended = builder(AgentEnded)
_new_timing = builder(Timing)
_fan_out = builder(FanOut)
T = TypeVar("T")
Work = Callable[[AgentCall, RunContext], Awaitable[object]]
"""A pattern or an agent's run: a call in, an outcome out. It may be somebody else's code, which may return anything."""
Carrier = Callable[[AgentCall, RunContext, str, dict[str, Outcome]], Awaitable[Outcome]]
"""Carries out the call at a position and notes there how it ended; `dispatch` is the plainest."""


async def dispatch(
    call: AgentCall,
    ctx: RunContext,
    position: str = "1.1",
    endings: dict[str, Outcome] | None = None,
) -> Outcome:
    """Runs one agent and returns its outcome, whatever happens to it.

    `position` is the call's round and number in it, for its path. Only a cancellation from outside passes
    through, and even then `endings[position]` is the outcome: a stopped agent has one too.
    """
    turn = ctx.turn
    agent = turn.agents.get(call.agent)
    handoff = apply_handoff(call, agent.card if agent is not None else None, ctx.inherited)
    turn.private += handoff.private
    span = ctx.open_span(_start_event(handoff, agent, ctx, position))
    # When the event that opens the span was stamped.
    began = turn.log.events[-1].at
    call = handoff.call
    ledger = Ledger(call.agent, ctx.ledger)
    path = f"{ctx.path}/{position}.{call.agent}"
    turn.progress.begin(span, call.agent, path, began)
    try:
        outcome = _refusal(handoff, agent, span, ledger)
        if outcome is None and agent is not None:
            outcome = await _run(call, agent, span, path, ledger)
    except (asyncio.CancelledError, Paused) as stop:
        timing = Timing(started=began, ended=turn.log.now())
        if isinstance(stop, Paused):
            failure = call.failed("paused", "it waits for the user's answer")
        else:
            failure = _with_its_acts(_interruption(call, turn), path, turn)
        _close(failure.replace(usage=ledger.settle(), timing=timing), span, position, endings)
        raise
    finally:
        turn.progress.end(call.agent, path)
        # once, and whatever happened: a stopped agent's calls were paid for
        usage = ledger.settle()
        for put_away in ledger.at_end:
            put_away()
    assert outcome is not None
    if isinstance(outcome, Answer):
        outcome = _cleaned(outcome, call.agent, span)
    else:
        outcome = _with_its_acts(outcome, path, turn)
    outcome = outcome.replace(usage=usage, timing=_new_timing(started=began, ended=turn.log.now()))
    _close(outcome, span, position, endings)
    return outcome


def _with_its_acts(failure: Failure, path: str, turn: TurnState) -> Outcome:
    """An agent that has done something, or may have, and then failed: its user is told of each act all the same."""
    texts: list[str] = []
    caveat = PARTLY
    for entry in turn.acts.acts_at(path):
        if entry.act is not None and entry.act.text is not None:
            texts.append(entry.act.text)
            continue
        texts.append(entry.sentence(turn.locale))
        caveat = UNCERTAIN
    if not texts:
        return failure
    return Answer(
        call_id=failure.call_id,
        agent=failure.agent,
        text=" ".join(texts),
        caveat=caveat,
        data_faults=(failure.reason,),
    )


def _cleaned(answer: Answer, agent: str, span: RunContext) -> Answer:
    """Returns an answer without control characters and components in its text.

    The words of a peer or a service come by no model call, where a model's are cleaned (`call_model`).
    """
    turn = span.turn
    if CONTROL.search(answer.text):
        answer = answer.replace(text=without_controls(answer.text))
    if MARK in answer.text:
        text, components = narration(answer.text)
        answer = answer.replace(text=text, components=(*answer.components, *components))
        for component in components:
            span.emit(Component(agent=agent, type=component.type, payload=component.payload))
    if agent == turn.settings.support_agent:
        response_id = f"ft_{turn.log.turn_id}_{span.span_id}"
        span.emit(ResponseId(agent=agent, response_id=response_id))
    return answer


async def fan_out(
    calls: Sequence[AgentCall],
    ctx: RunContext,
    through: Carrier = dispatch,
    *,
    tell_earlier: bool = True,
) -> FanOut:
    """Runs calls at the same time, the first `cap` of the turn only; the rest are recorded and
    never run.

    Takes as long as the slowest. When it is cancelled, every child has ended before it returns, and
    the turn has an outcome for each call: finished agents their own, the others a Failure that says
    whether time ran out or the turn was stopped. `through` stands around the dispatch of each call.
    With `tell_earlier` an agent that has not seen what came before is told of it.
    """
    turn = ctx.turn
    admitted, over_cap = turn.open_round(calls)
    for call in over_cap:
        ctx.emit(CallDropped(agent=call.agent, call_id=call.call_id, reason="over_cap"))
    endings: dict[str, Outcome] = {}
    calls_by_position: dict[str, AgentCall] = {}
    for number, call in enumerate(admitted, 1):
        calls_by_position[f"{turn.rounds}.{number}"] = call
    try:
        waiting: dict[str, AgentCall] = {}
        work: list[Awaitable[Outcome | None]] = []
        for position, call in calls_by_position.items():
            if tell_earlier and turn.memory.waits(call, ctx):
                waiting[position] = call
            else:
                work.append(through(call, ctx, position, endings))
        # the others do not wait for what these are told
        if waiting:
            work.append(_inform(waiting, ctx, through, endings))
        await together(work)
    finally:
        outcomes: list[Outcome] = []
        for position, call in calls_by_position.items():
            outcomes.append(endings.get(position) or _interruption(call, turn))
        turn.record(outcomes)
    return _fan_out(outcomes=tuple(outcomes), dropped=tuple(over_cap), cap=turn.cap)


async def _inform(
    waiting: Mapping[str, AgentCall],
    ctx: RunContext,
    through: Carrier,
    endings: dict[str, Outcome],
) -> None:
    """Tells agents what came before and runs their calls."""
    calls = await ctx.turn.memory.carry(list(waiting.values()), ctx)
    work: list[Awaitable[Outcome]] = []
    for position, call in zip(waiting, calls, strict=True):
        work.append(through(call, ctx, position, endings))
    await together(work)


async def together(work: Sequence[Awaitable[T]]) -> list[T]:
    """Awaits several things at the same time and returns their results, in order.

    Once all have ended, the first exception by that order is raised. Whoever is cancelled here cancels them
    all, and goes on when they have ended.
    """
    if len(work) == 1:
        return [await work[0]]
    results = await asyncio.gather(*work, return_exceptions=True)
    values: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        values.append(result)
    return values


def _comes_from_outside(error: BaseException) -> bool:
    """Whether code of a deck or a caller raised an error, itself or in a library that it called."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(_KIT):
            return False
        if not any(place in frame.filename for place in _LIBRARIES):
            return True
    return False


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
            outcome = await work(call, ctx)
        if not isinstance(outcome, _OUTCOMES):
            raise CodeError(
                f"agent {call.agent!r} in pattern {ctx.turn.pattern!r} returned a value of type "
                f"{type(outcome).__name__}; return an Answer or a Failure"
            )
        return outcome
    except TimeoutError as error:
        # A tool or a client may raise TimeoutError of its own, long before the deadline.
        detail = str(error) if deadline.expired else describe_error(error)
        return call.failed("timeout", detail)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # A library cancelled itself: nobody asked this turn to stop, so it has failed.
        return call.failed("exception", describe_error(error))
    except OverBudget as error:
        return call.failed("budget", str(error))
    # the one place an agent's exception becomes a value
    except FOREIGN as error:
        if isinstance(error, KitError) or _comes_from_outside(error):
            # Of a model or a tool that failed its developer has read by now; of a guard or a pattern nobody has.
            log.error("turn %s: %s", ctx.turn.log.turn_id, describe_error(error))
        reason: Reason = "rate_limited" if status_of(error) == 429 else "exception"
        return call.failed(reason, describe_error(error))


def _start_event(
    handoff: HandoffResult, agent: Agent | None, ctx: RunContext, position: str
) -> AgentStarted:
    """Returns the first event of a call; pictures cross to all whom the orchestrator calls, but
    into no closed hand-off."""
    call = handoff.call
    query = call.query
    prior_context = call.prior_context
    private = ctx.turn.private
    if private:
        query = hide(query, private)
        prior_context = hide(prior_context, private)
    limited = handoff.limited
    pictures: tuple[str, ...] = ()
    if ctx.turn.pictures and ctx.ledger.parent is None:
        if agent is not None and agent.card.handoff.closed:
            limited = (*limited, "pictures do not cross a closed hand-off: left out")
        else:
            pictures = tuple(picture.ref.sha256 for picture in ctx.turn.pictures)
    prompt = getattr(agent, "prompt", None)
    return _agent_started(
        agent=call.agent,
        call_id=call.call_id,
        query=query,
        prior_context=prior_context,
        fields=dict(handoff.trace_fields),
        limited=limited,
        principal=ctx.inherited.principal,
        cohort=prompt.cohort if prompt else "",
        pictures=pictures,
        place=position,
    )


def _refusal(
    handoff: HandoffResult, agent: Agent | None, ctx: RunContext, ledger: Ledger
) -> Failure | None:
    """Returns why a call may not run; None when it may, and then its budget is reserved."""
    call = handoff.call
    caller = ctx.ledger
    if agent is None:
        return call.failed("unknown_agent", f"{call.agent!r} is not bound")
    if caller.within(call.agent):
        _deny(call, "recursion", ctx)
        detail = f"{call.agent!r} is at work above: an agent may not call itself or its callers"
        return call.failed("not_allowed", detail)
    if call.agent not in ctx.callees:
        _deny(call, "not_on_card", ctx)
        return call.failed("not_allowed", f"{call.agent!r} is not among the caller's sub_agents")
    if caller.depth == 0:
        _deny(call, "depth", ctx)
        return call.failed("budget", f"depth: {caller.agent!r} may have no agent below it")
    if handoff.breach:
        return call.failed("contract_violation", handoff.breach)
    try:
        ledger.reserve(getattr(agent, "policy", agent.card.policy))
    except OverBudget as error:
        return call.failed("budget", str(error))
    return None


def _deny(
    call: AgentCall, because: Literal["recursion", "not_on_card", "depth"], ctx: RunContext
) -> None:
    caller = ctx.ledger.agent
    ctx.emit(AccessDenied(agent=caller, what="agent", name=call.agent, because=because))


async def _run(
    call: AgentCall, agent: Agent, ctx: RunContext, path: str, ledger: Ledger
) -> Outcome:
    inherited = ctx.inherited
    handoff = agent.card.handoff
    if call.prior_context:
        inherited = inherited.replace(prior_context=call.prior_context)
    elif handoff.closed:
        # a closed hand-off lets through what its card declares, and a place only where it declares one
        sources = [field.source for field in handoff.fields.values()]
        if "location" not in sources:
            inherited = inherited.replace(location=None)
    callees = frozenset(agent.card.sub_agents)
    inner = RunContext(
        ctx.turn, inherited, ledger, ctx.span_id, ctx.parent_span_id, callees, path, ctx.slot
    )
    outcome = await run_to_outcome(agent.run, call, inner, agent.time_budget)
    # an agent elsewhere says itself what it spent
    if not ledger.touched:
        ledger.charge(outcome.usage)
        if isinstance(outcome, Answer) and ledger.touched:
            try:
                ledger.after_model()
                ledger.before_tools(0)
            except OverBudget as error:
                return call.failed("budget", str(error))
    return outcome


def _close(
    outcome: Outcome, span: RunContext, position: str, endings: dict[str, Outcome] | None
) -> None:
    private = span.turn.private
    agent = outcome.agent
    traced_outcome = hide_outcome(outcome, private) if private else outcome
    span.emit(_agent_ended(agent=agent, outcome=traced_outcome))
    if isinstance(outcome, Failure):
        is_final = span.ledger.parent is None
        span.emit(AgentError(agent=agent, axis=outcome.axis, is_final=is_final))
    elif outcome.data_faults:
        span.emit(AgentError(agent=agent, axis="data", is_final=False))
    if endings is not None:
        endings[position] = outcome


def _interruption(call: AgentCall, turn: TurnState) -> Failure:
    """Returns the failure of a call that the end of its turn interrupts, or never lets begin."""
    if turn.out_of_time:
        return call.failed("timeout", "the time of the turn was over")
    return call.failed("cancelled", "the turn was stopped")


def unrecorded(turn: TurnState) -> list[Outcome]:
    """Returns how the calls of a round that is still open end now: by what the log has of them, else interrupted."""
    endings: dict[str, Outcome] = {}
    for event in turn.log.events:
        if isinstance(event.body, AgentEnded):
            endings[event.body.outcome.call_id] = event.body.outcome
    recorded_ids = {outcome.call_id for outcome in turn.outcomes}
    recorded_ids |= {call.call_id for call in turn.over_cap}
    outcomes: list[Outcome] = []
    for call in turn.calls:
        if call.call_id not in recorded_ids:
            outcomes.append(endings.get(call.call_id) or _interruption(call, turn))
    return outcomes
