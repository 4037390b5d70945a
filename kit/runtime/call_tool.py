"""Runs one tool call of a sub-agent: whitelist, context, span; what goes wrong becomes a value here."""

import asyncio
import datetime
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from kit.core.bodies.call import CallFailure, ToolEnded, ToolRetry, ToolStarted
from kit.core.bodies.guard import AccessDenied
from kit.core.bodies.speech import Component
from kit.core.errors import describe_error
from kit.core.event import Body
from kit.core.language.controls import CONTROL, without_controls
from kit.core.limits import excerpt
from kit.core.outcome import NO_TEXT, ComponentPayload, Reason, Usage
from kit.core.value import builder
from kit.models.deadline import seconds_left
from kit.models.message import tool_text
from kit.runtime.acts.act import act, idempotency_key, lookup_key
from kit.runtime.acts.pause import Paused
from kit.runtime.agents.handoff import hide
from kit.runtime.agents.tool_grants import watched_since
from kit.runtime.context import RunContext
from kit.runtime.recording.recorded_call import failure_of, tool_request
from kit.runtime.recording.replay import replay_tool
from kit.runtime.tool_call_ids import UNREAD
from kit.tools.bounds import ToolBounds
from kit.tools.direct_call import result_of
from kit.tools.tool import EXEC_PYTHON, UNAVAILABLE, ToolContext, ToolResult, within

NO_SUCH_TOOL = "You have no such tool. Call one that you were given, or answer without, and do not speak of this."
UNREADABLE = (
    "This call was not made: its arguments could not be read. Make it again as its "
    "description says, and do not speak of this."
)
_ONE_CALL = Usage(tool_calls=1)
_tool_ended = builder(ToolEnded)
_NONE: Mapping[str, datetime.date] = MappingProxyType({})
_UNBOUND: Mapping[str, ToolBounds] = MappingProxyType({})
PAUSE = 0.2
"""Seconds before the second attempt of a tool; before each further one twice as many."""
PASSING: tuple[Reason, ...] = ("timeout", "exception", "unavailable")
"""Faults that may be gone a moment later."""


async def call_tool(
    call: ToolCall,
    tools: Mapping[str, BaseTool],
    agent: str,
    ctx: RunContext,
    new_tools: Mapping[str, datetime.date] = _NONE,
    bounds: Mapping[str, ToolBounds] = _UNBOUND,
) -> tuple[ToolMessage, ToolResult]:
    """Runs a tool call on behalf of the turn's principal and returns its message with its typed
    result.

    A tool outside the whitelist is refused, a tool that raises is a fault: both are results,
    neither raises (decisions 9). So is a call that nobody can read, and a lookup that met a foreign
    principal in this turn is not made again, whoever asks (decisions 30, 31). Raw reasons go to the
    trace only. `new_tools`: those put on the card later, with the day. `bounds`: of the tools that
    have limits.
    """
    call_id = call["id"] or ctx.turn.log.new_span()
    private = ctx.turn.private
    if private:
        args = hide(call["args"], private)
    else:
        args = call["args"]
    if new_tools:
        since = watched_since(new_tools.get(call["name"]), ctx.turn.dynamic.date)
    else:
        since = None
    span = ctx.open_span(
        ToolStarted(agent=agent, tool=call["name"], call_id=call_id, args=args, watched_since=since)
    )
    # now: one that is cut off was made as well
    ctx.ledger.charge(_ONE_CALL)
    tool = tools.get(call["name"])
    was_called = tool is not None and UNREAD not in call["args"] and not _is_barred(call, ctx)
    if UNREAD in call["args"]:
        result = ToolResult(
            text=UNREADABLE, fault="bad_arguments", detail="its arguments are no JSON object"
        )
    elif tool is None:
        result = ToolResult(
            text=NO_SUCH_TOOL, fault="not_allowed", detail=f"{call['name']!r} is not on the card"
        )
    else:
        try:
            result = await _look_up(
                tool, call, agent, span, bounds.get(call["name"]) if bounds else None
            )
        except BaseException as error:
            span.emit(
                ToolEnded(
                    agent=agent,
                    tool=call["name"],
                    call_id=call_id,
                    error=describe_error(error),
                    failure=failure_of(error, private),
                )
            )
            raise
    result = _printable(result)
    if (
        len(result.text) > ctx.turn.settings.large_result
        and result.fault is None
        and EXEC_PYTHON in tools
    ):
        result = await _put_away(result, agent, ctx)
    if result.fault == "not_allowed":
        span.emit(AccessDenied(agent=agent, what="tool", name=call["name"], because="not_on_card"))
    elif result.fault == "bad_arguments":
        span.emit(
            AccessDenied(agent=agent, what="tool", name=call["name"], because="bad_arguments")
        )
    for component in result.components:
        span.emit(Component(agent=agent, type=component.type, payload=component.payload))
    detail = result.detail
    text = excerpt(result.text)
    caveat = result.caveat
    if private:
        detail = hide(detail, private)
        text = hide(text, private)
        caveat = hide(caveat, private)
    error = None
    failure = None
    if result.fault:
        error = f"{result.fault}: {detail}"
        failure = CallFailure(kind=result.fault, text=detail)
    span.emit(
        _tool_ended(
            agent=agent,
            tool=call["name"],
            call_id=call_id,
            result=text,
            error=error,
            failure=failure,
            was_called=was_called,
            caveat=caveat,
        )
    )
    return tool_text(
        result.text or NO_TEXT, call_id, failed=bool(result.fault), name=call["name"]
    ), result


def _printable(result: ToolResult) -> ToolResult:
    """Returns a result whose words a terminal may print: a server may send whatever it likes."""
    texts = (result.text, result.caveat or "", result.detail)
    if not any(CONTROL.search(text) for text in texts):
        return result
    return result.replace(
        text=without_controls(result.text),
        caveat=without_controls(result.caveat) if result.caveat else None,
        detail=without_controls(result.detail),
    )


def _is_barred(call: ToolCall, ctx: RunContext) -> bool:
    """Whether the same lookup met a foreign principal in this turn."""
    barred = ctx.turn.barred
    return bool(barred) and lookup_key(call) in barred


async def _look_up(
    tool: BaseTool, call: ToolCall, agent: str, ctx: RunContext, bounds: ToolBounds | None
) -> ToolResult:
    """Runs the tool, unless the same lookup met a foreign principal in this turn."""
    turn = ctx.turn
    if _is_barred(call, ctx):
        return ToolResult(
            text=UNAVAILABLE, fault="principal_mismatch", detail="not asked again in this turn"
        )
    result = await (_run if turn.player is None else _recorded)(tool, call, agent, ctx, bounds)
    if result.fault == "principal_mismatch":
        turn.barred.add(lookup_key(call))
    return result


async def _put_away(result: ToolResult, agent: str, ctx: RunContext) -> ToolResult:
    """Puts a result into a file of the agent's task; the imports are for agents that run scripts."""
    from kit.tools.large_result import put_away
    from kit.tools.task_memory import task_of
    from kit.tools.temp_files import open_temp_files

    files = open_temp_files()
    task = task_of(ctx.inherited, ctx.turn.log.turn_id, agent, ctx.path)
    ctx.ledger.at_end.append(lambda: files.wipe(task))
    return await put_away(result, task, files)


async def _recorded(
    tool: BaseTool, call: ToolCall, agent: str, ctx: RunContext, bounds: ToolBounds | None
) -> ToolResult:
    """Answers from the recording, or runs the tool and records its result with what it said meanwhile."""
    player = ctx.turn.player
    log = ctx.turn.log
    assert player is not None
    place = ctx.turn.place(f"{ctx.path}/{call['name']}")
    request = tool_request(call["name"], ctx.inherited.principal, call["args"])
    recorded = player.find(place, request)
    emit = ctx.report
    if recorded is not None:
        return await replay_tool(recorded, emit, player.sleep)
    began = log.now()
    bodies = list[tuple[float, Body]]()

    def hear(body: Body) -> None:
        bodies.append((log.now() - began, body))
        emit(body)

    try:
        result = await _run(tool, call, agent, ctx, bounds, hear)
    except Paused:
        raise
    except BaseException as error:
        player.keep_fault(place, request, error, told=bodies, seconds=log.now() - began)
        raise
    player.keep(place, request, result=result, told=bodies, seconds=log.now() - began)
    return result


async def _run(
    tool: BaseTool,
    call: ToolCall,
    agent: str,
    ctx: RunContext,
    bounds: ToolBounds | None,
    emit: Callable[[Body], None] | None = None,
) -> ToolResult:
    """Runs the tool within its limits; an act, once."""
    context = ToolContext(
        agent=agent,
        turn_id=ctx.turn.log.turn_id,
        inherited=ctx.inherited,
        emit=emit or ctx.report,
        idempotency_key=lambda: idempotency_key(ctx.turn.log.turn_id, call),
        found=lambda: _components(agent, ctx),
        path=ctx.path,
        at_end=ctx.ledger.at_end.append,
    )
    if bounds is None:
        return await _attempt(tool, call, context, bounds)
    attempts = partial(_attempts, tool, call, context, bounds, ctx)
    if not bounds.limits.is_act or _is_lookup(tool, call):
        return await attempts()
    return await act(tool, call, bounds.limits, agent, ctx, attempts)


def _is_lookup(tool: BaseTool, call: ToolCall) -> bool:
    """Whether a tool that calls others, some of which act, says that this call does nothing in the world."""
    is_lookup = getattr(tool, "is_lookup", None)
    return is_lookup is not None and is_lookup(call["args"])


async def _attempts(
    tool: BaseTool, call: ToolCall, context: ToolContext, bounds: ToolBounds, ctx: RunContext
) -> ToolResult:
    """Runs the tool, again after a fault that may pass where its limits allow that and the agent has time for it."""
    result = await _attempt(tool, call, context, bounds)
    for number in range(bounds.limits.retries):
        pause = PAUSE * 2**number
        if result.fault not in PASSING or pause >= seconds_left():
            break
        error = hide(f"{result.fault}: {result.detail}", ctx.turn.private)
        name = call["name"]
        call_id = call["id"] or ""
        ms = round(pause * 1000)
        context.emit(
            ToolRetry(
                agent=context.agent,
                tool=name,
                call_id=call_id,
                attempt=number + 1,
                error=error,
                pause_ms=ms,
            )
        )
        await asyncio.sleep(pause)
        result = await _attempt(tool, call, context, bounds)
    return result


async def _attempt(
    tool: BaseTool, call: ToolCall, context: ToolContext, bounds: ToolBounds | None
) -> ToolResult:
    # the second and last place that turns an exception into a value (decisions 9)
    try:
        with within(context):
            return await (result_of(tool, call) if bounds is None else bounds.result_of(tool, call))
    except Exception as error:
        fault: Reason = "timeout" if isinstance(error, TimeoutError) else "exception"
        own_schema = getattr(tool.args_schema, "__name__", None)
        if isinstance(error, ValidationError) and error.title == own_schema:
            return ToolResult(text=UNREADABLE, fault="bad_arguments", detail=describe_error(error))
        return ToolResult(text=UNAVAILABLE, fault=fault, detail=describe_error(error))


def _components(agent: str, ctx: RunContext) -> list[ComponentPayload]:
    """Returns the components that this agent's tools have put on the page so far."""
    bodies = (event.body for event in ctx.turn.log.events)
    components = (body for body in bodies if isinstance(body, Component) and body.agent == agent)
    payloads: list[ComponentPayload] = []
    for body in components:
        payloads.append(ComponentPayload(type=body.type, payload=body.payload))
    return payloads
