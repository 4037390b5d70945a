"""The one way work reaches an agent. Errors become values here, siblings never feel each other, the cap holds."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kit.core.event import AgentEnded, AgentError, AgentStarted, CallDropped
from kit.core.outcome import AgentCall, Failure, FanOut, Outcome, Reason, Timing, Usage, total
from kit.runtime.context import RunContext

Work = Callable[[AgentCall, RunContext], Awaitable[Outcome]]
"""A pattern or an agent's run: a call in, an outcome out."""


async def dispatch(call: AgentCall, ctx: RunContext, place: str = "1.1") -> Outcome:
    """Runs one agent and returns its outcome, whatever happens to it (PC2-FR-3, SO-4).

    `place` is the call's round and position, for its path. Only a cancellation from outside passes through.
    """
    span = ctx.opened(
        AgentStarted(
            agent=call.agent, call_id=call.call_id, query=call.query, prior_context=call.prior_context, fields=call.fields
        )
    )
    began = span.turn.log.now()
    spent: list[Usage] = []
    try:
        outcome = await _invoke(call, span, f"{ctx.path}/{place}.{call.agent}", spent)
    except asyncio.CancelledError:
        span.emit(AgentEnded(agent=call.agent, outcome=_failure(call, "cancelled", "the turn was stopped")))
        raise
    finally:
        ctx.spent.extend(spent)  # once, and whatever happened: a stopped agent's calls were paid for
    usage = total([outcome.usage, *spent])
    outcome = outcome.model_copy(update={"usage": usage, "timing": Timing(started=began, ended=span.turn.log.now())})
    span.emit(AgentEnded(agent=call.agent, outcome=outcome))
    if isinstance(outcome, Failure):
        span.emit(AgentError(agent=call.agent, axis=outcome.axis, is_final=True))
    return outcome


async def fan_out(calls: Sequence[AgentCall], ctx: RunContext) -> FanOut:
    """Runs calls at the same time, the first `cap` of the turn only; the rest are recorded and never run (PC2-FR-6, FR-7).

    Takes as long as the slowest. When it is cancelled, every child has ended before it returns.
    """
    turn = ctx.turn
    turn.rounds += 1
    turn.emitted += calls
    run, dropped = turn.admit(calls)
    for call in dropped:
        ctx.emit(CallDropped(agent=call.agent, call_id=call.call_id, reason="over_cap"))
    work = (dispatch(call, ctx, f"{turn.rounds}.{position}") for position, call in enumerate(run, 1))
    results = await asyncio.gather(*work, return_exceptions=True)
    outcomes: list[Outcome] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        outcomes.append(result)
    turn.outcomes += outcomes
    return FanOut(outcomes=tuple(outcomes), dropped=tuple(dropped), cap=turn.cap)


async def guarded(work: Work, call: AgentCall, ctx: RunContext, seconds: float | None) -> Outcome:
    """Runs work under a deadline and turns every way it can end into an outcome (PC2-S5.8 axis 1)."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await work(call, ctx)
    except TimeoutError as error:
        detail = f"no answer within {seconds:g} s" if deadline.expired() and seconds is not None else _said(error)
        return _failure(call, "timeout", detail)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _failure(call, "cancelled", _said(error))  # a library cancelled itself: nobody asked this turn to stop
    except Exception as error:  # the one place an agent's exception becomes a value
        return _failure(call, "exception", _said(error))


async def _invoke(call: AgentCall, ctx: RunContext, path: str, spent: list[Usage]) -> Outcome:
    agent = ctx.turn.agents.get(call.agent)
    if agent is None:
        return _failure(call, "unknown_agent", f"{call.agent!r} is not bound")
    if call.agent not in ctx.callees:
        return _failure(call, "not_allowed", f"{call.agent!r} is not among the caller's sub_agents")
    inner = RunContext(
        ctx.turn,
        ctx.inherited.model_copy(update={"prior_context": call.prior_context}) if call.prior_context else ctx.inherited,
        ctx.span_id,
        ctx.parent_span_id,
        frozenset(agent.card.sub_agents),
        path,
        spent,
    )
    return await guarded(agent.run, call, inner, agent.time_budget)


def _failure(call: AgentCall, reason: Reason, detail: str) -> Failure:
    return Failure(call_id=call.call_id, agent=call.agent, axis="invocation", reason=reason, detail=detail)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
