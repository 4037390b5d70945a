"""Runs one tool call of a sub-agent: whitelist, context, span; what goes wrong becomes a value here.

An act is a call that asks its user first, or must not be made twice: what is settled about one outlives
the process.
"""

import asyncio
import datetime
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from kit.compose.locale import Sentences
from kit.core.bodies.call import CallFailure, ToolEnded, ToolRetry, ToolStarted
from kit.core.bodies.guard import AccessDenied
from kit.core.bodies.speech import Component
from kit.core.bodies.turn import Act, ActStarted, ApprovalAsked
from kit.core.card import AgentCard
from kit.core.display.agent_name import words_of_id
from kit.core.errors import FOREIGN, StoreError, describe_error
from kit.core.event import Body
from kit.core.language.controls import CONTROL, without_controls
from kit.core.language.machine_error import is_machine_error
from kit.core.language.retry import retries
from kit.core.limits import excerpt
from kit.core.outcome import NO_TEXT, ComponentPayload, Reason, Usage
from kit.core.schema.json_value import is_list, is_object
from kit.core.secret import SECRET, holds_secret
from kit.core.value import builder
from kit.models.deadline import seconds_left
from kit.models.message import tool_text
from kit.runtime.act_ledger import (
    ASKED_BEFORE,
    DECLINED,
    DONE_BEFORE,
    UNCERTAIN,
    UNKNOWN,
    LedgerEntry,
    Paused,
)
from kit.runtime.context import RunContext
from kit.runtime.handoff import hide
from kit.runtime.message import UNREAD
from kit.runtime.recording.recorded_call import failure_of, tool_request
from kit.runtime.recording.replay import replay_tool
from kit.stores.recall import repeated_turn
from kit.tools.arguments import read_arguments
from kit.tools.bounds import FunctionTool, ToolBounds, result_of
from kit.tools.tool import (
    EXEC_PYTHON,
    LONGEST_RESULT,
    UNAVAILABLE,
    ToolContext,
    ToolLimits,
    ToolResult,
    within,
)

log = logging.getLogger("kit.tools")
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


ToolRun = tuple[ToolMessage, ToolResult]
"""What a call of a tool left: the message for the model, and the result that it was made of."""


async def call_tool(
    call: ToolCall,
    tools: Mapping[str, BaseTool],
    agent: str,
    ctx: RunContext,
    new_tools: Mapping[str, datetime.date] = _NONE,
    bounds: Mapping[str, ToolBounds] = _UNBOUND,
) -> ToolRun:
    """Runs a tool call on behalf of the turn's principal and returns its message with its typed
    result.

    A tool outside the whitelist is refused, a tool that raises is a fault: both are results,
    neither raises (decisions 9). So is a call that nobody can read, and a lookup that met a foreign
    principal in this turn is not made again, whoever asks (decisions 30, 31). Raw reasons go to the
    trace only. `new_tools`: those put on the card later, with the day. `bounds`: of the tools that
    have limits.
    """
    name = call["name"]
    call_id = call["id"] or ctx.turn.log.new_span()
    private = ctx.turn.private
    args = call["args"]
    if private:
        args = hide(args, private)
    since = None
    if new_tools:
        since = watched_since(new_tools.get(name), ctx.turn.dynamic.date)
    span = ctx.open_span(
        ToolStarted(agent=agent, tool=name, call_id=call_id, args=args, watched_since=since)
    )
    # now: one that is cut off was made as well
    ctx.ledger.charge(_ONE_CALL)
    tool = tools.get(name)
    barred = ctx.turn.barred
    was_called = False
    if UNREAD in call["args"]:
        detail = "its arguments are no JSON object"
        result = ToolResult(text=UNREADABLE, fault="bad_arguments", detail=detail)
    elif tool is None:
        detail = f"{name!r} is not on the card"
        result = ToolResult(text=NO_SUCH_TOOL, fault="not_allowed", detail=detail)
    elif barred and lookup_key(call) in barred:
        detail = "not asked again in this turn"
        result = ToolResult(text=UNAVAILABLE, fault="principal_mismatch", detail=detail)
    else:
        was_called = True
        run = _run if ctx.turn.player is None else _recorded
        try:
            result = await run(tool, call, agent, span, bounds.get(name))
        except BaseException as error:
            span.emit(
                ToolEnded(
                    agent=agent,
                    tool=name,
                    call_id=call_id,
                    error=describe_error(error),
                    failure=failure_of(error, private),
                )
            )
            raise
        if result.fault == "principal_mismatch":
            barred.add(lookup_key(call))
    # A server may send whatever it likes, and a terminal would obey it.
    if CONTROL.search(f"{result.text}{result.caveat}{result.detail}"):
        result = result.replace(
            text=without_controls(result.text),
            caveat=without_controls(result.caveat) if result.caveat else None,
            detail=without_controls(result.detail),
        )
    is_large = len(result.text) > ctx.turn.settings.large_result
    if is_large and result.fault is None and EXEC_PYTHON in tools:
        result = await _put_away(result, agent, ctx)
    # A server of MCP and a service have limits of their own.
    if len(result.text) > LONGEST_RESULT and isinstance(tool, FunctionTool):
        result = _cut_off(result)
    _close(span, agent, name, call_id, result, was_called)
    text = result.text or NO_TEXT
    # That nobody knows whether an act was done is what is to be told of it.
    is_failure = result.fault not in (None, "uncertain")
    return tool_text(text, call_id, failed=is_failure, name=name), result


def _cut_off(result: ToolResult) -> ToolResult:
    """The result with so much of its text as a model can read, and the words that it was cut off."""
    note = f"[cut off: these are the first {LONGEST_RESULT:,} of {len(result.text):,} characters; ask for less]"
    return result.replace(text=f"{result.text[:LONGEST_RESULT]}\n{note}")


def _close(
    span: RunContext, agent: str, tool: str, call_id: str, result: ToolResult, was_called: bool
) -> None:
    """Emits what the call showed and how it ended, personal values hidden."""
    if result.fault == "not_allowed":
        span.emit(AccessDenied(agent=agent, what="tool", name=tool, because="not_on_card"))
    elif result.fault == "bad_arguments":
        span.emit(AccessDenied(agent=agent, what="tool", name=tool, because="bad_arguments"))
    for component in result.components:
        span.emit(Component(agent=agent, type=component.type, payload=component.payload))
    detail = result.detail
    text = excerpt(result.text)
    caveat = result.caveat
    private = span.turn.private
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
            tool=tool,
            call_id=call_id,
            result=text,
            error=error,
            failure=failure,
            was_called=was_called,
            caveat=caveat,
        )
    )


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
    # A replay could not show them, and would then ask its model something else.
    result = result.without_pictures()
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
        idempotency_key=lambda: idempotency_key(ctx.turn.log.turn_id, lookup_key(call)),
        found=lambda: _components(agent, ctx),
        path=ctx.path,
        at_end=ctx.ledger.at_end.append,
    )
    what = None
    act_words = getattr(tool, "act_words", None)
    if act_words is not None:
        # It calls others, some of which act.
        what = act_words(call["args"])
    elif bounds is not None and bounds.is_act:
        what = words_of_id(call["name"].replace("__", "_"))
    if what is None:
        return await _attempts(tool, call, context, bounds, ctx)
    if bounds is None or not bounds.is_act:
        # Whoever is told how the turn ended has to know that it was made.
        entry = LedgerEntry(what=what, act=Act())
        ctx.turn.acts.repeatable[lookup_key(call)] = entry
        result = await _attempts(tool, call, context, bounds, ctx)
        entry.act = _act_of(result)
        return result
    return await _run_act(tool, call, what, bounds, context, ctx)


async def _run_act(
    tool: BaseTool,
    call: ToolCall,
    what: str,
    bounds: ToolBounds,
    context: ToolContext,
    ctx: RunContext,
) -> ToolResult:
    """Makes an act once, unless its tool would refuse it."""
    try:
        arguments = await read_arguments(tool, call)
    except FOREIGN as error:
        # Before anybody is asked: a yes to what cannot be done is lost.
        detail = describe_error(error)
        text = UNREADABLE
        if isinstance(tool.args_schema, dict):
            # These are few words, and of a skill its model has read no schema.
            text = f"{UNREADABLE}\n{detail}"
        return ToolResult(text=text, fault="bad_arguments", detail=detail)
    spelled = _filled_in(arguments)
    asks = bounds.limits.confirm and holds_secret(spelled, ctx.turn.log.secrets)
    if asks or SECRET in spelled:
        # Who says yes would say it to other words than are kept, and those would be acted on.
        return ToolResult(text=ctx.turn.locale.sentences.not_kept)
    if isinstance(tool.args_schema, dict):
        # LangChain hands them on as they are.
        call = {**call, "args": arguments}
    acts = ctx.turn.acts
    wish = _ActCall(
        agent=context.agent,
        tool=call["name"],
        words=f"“{what}”" if hasattr(tool, "act_words") else what,
        arguments=arguments,
        limits=bounds.limits,
        former_key=lookup_key(call),
    )
    key = acts.known_key(wish.key, wish.former_key)
    context = replace(context, idempotency_key=lambda: idempotency_key(context.turn_id, key))
    async with acts.order.setdefault(ctx.path, asyncio.Lock()):
        objection = await _objection(tool, arguments, context)
        if objection is not None:
            return ToolResult(text=objection)
        entry = acts.entry(key)
        entry.path = entry.path or ctx.path
        entry.what = what
        if isinstance(bounds.limits.confirm, str) and not hasattr(tool, "act_words"):
            # What its user has read says more than the name of a tool.
            question = question_of(bounds.limits, wish.words, arguments, ctx.turn.locale.sentences)
            entry.what = question.strip("¿?. ")
        async with entry.at_work:
            return await act(
                wish, key, ctx, run=partial(_attempts, tool, call, context, bounds, ctx)
            )


async def _objection(
    tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext
) -> str | None:
    """Returns why a tool says that a call cannot be done, so that nobody needs to say yes to it; else None."""
    if not isinstance(tool, FunctionTool) or tool.impossible is None:
        return None
    try:
        with within(context):
            return await tool.impossible(arguments)
    except FOREIGN as error:
        # A check that breaks says nothing of the call: its user is asked, as without one.
        log.warning("the check before %s failed: %s", tool.name, describe_error(error))
        return None


async def _attempts(
    tool: BaseTool,
    call: ToolCall,
    context: ToolContext,
    bounds: ToolBounds | None,
    ctx: RunContext,
) -> ToolResult:
    """Runs the tool, again after a fault that may pass where its limits allow that and the agent has time for it."""
    result = await _attempt(tool, call, context, bounds)
    if bounds is None or not bounds.limits.retries:
        return result
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
    except FOREIGN as error:
        fault: Reason = "timeout" if isinstance(error, TimeoutError) else "exception"
        own_schema = getattr(tool.args_schema, "__name__", None)
        if isinstance(error, ValidationError) and error.title == own_schema:
            return ToolResult(text=UNREADABLE, fault="bad_arguments", detail=describe_error(error))
        return ToolResult(text=UNAVAILABLE, fault=fault, detail=describe_error(error))


def _components(agent: str, ctx: RunContext) -> list[ComponentPayload]:
    """Returns the components that this agent's tools have put on the page so far."""
    payloads: list[ComponentPayload] = []
    for event in ctx.turn.log.events:
        body = event.body
        if isinstance(body, Component) and body.agent == agent:
            payloads.append(ComponentPayload(type=body.type, payload=body.payload))
    return payloads


WATCHED_DAYS = 30


def new_tools(card: AgentCard, tools: Mapping[str, BaseTool]) -> dict[str, datetime.date]:
    """Returns tool name -> the day the tool was put on the card, for tools granted later; `tools` by id, as bound."""
    mapping: dict[str, datetime.date] = {}
    for name, tool in tools.items():
        if name in card.tool_grants:
            mapping[tool.name] = card.tool_grants[name].since
    return mapping


def watched_since(since: datetime.date | None, today: str) -> str | None:
    """Returns the day of a grant while it is young, else None; without a readable date of today it stays young."""
    try:
        young = (
            since is not None and (datetime.date.fromisoformat(today) - since).days < WATCHED_DAYS
        )
    except ValueError:
        young = True
    if young:
        return str(since)
    return None


@dataclass(frozen=True, slots=True)
class _ActCall:
    """A call of a tool that acts."""

    agent: str
    tool: str
    words: str
    """What it does, as its user is asked."""
    arguments: Mapping[str, Any]
    """As the tool reads them, its defaults among them."""
    limits: ToolLimits
    former_key: str
    """By which earlier versions knew it: the arguments as the model spelled them."""

    @property
    def key(self) -> str:
        """Names what is done: the tool, and those of its arguments that hold something.

        No name that an earlier version gave looks so.
        """
        return f"{self.tool}({_filled_in(self.arguments)})"


async def act(
    call: _ActCall, key: str, ctx: RunContext, run: Callable[[], Awaitable[ToolResult]]
) -> ToolResult:
    """Makes a call once: with the user's yes where its tool asks for that, or where the turn is another one asked
    again, and with its beginning in the store. `key` is that of its entry in the ledger.

    Raises Paused where the user has not answered yet.
    """
    entry = ctx.turn.acts.entry(key)
    memory = ctx.turn.memory
    if entry.state == "new" and (retries(ctx.turn.message) or memory.asked_again()):
        # Whoever only says "go on" or "again", or sends what was cut off once more, asks for nothing twice that was
        # done, may have been, or is still asked.
        earlier = memory.earlier_act(call.key, call.former_key)
        if earlier is not None and earlier.state == "asked":
            return ToolResult(text=ASKED_BEFORE, caveat=ASKED_BEFORE)
        if earlier is not None:
            entry.act = earlier.act
            if earlier.act is not None and earlier.act.text is not None:
                return ToolResult(text=f"{earlier.act.text} {DONE_BEFORE}", caveat=DONE_BEFORE)
            # Of an idempotent tool too: it knows a call by the turn that made it.
            return _result_of(entry)
    if entry.state == "done" or (entry.state == "started" and not call.limits.idempotent):
        return _result_of(entry)
    # What asks an earlier turn again is tried out: nobody who compares or forks wants its act once more unasked.
    is_asked_again = bool(repeated_turn(ctx.inherited.episode_id))
    if call.limits.confirm or is_asked_again:
        if entry.answer is None:
            # A yes counts for what will be done, not for what the model wrote.
            question = question_of(
                call.limits, call.words, call.arguments, ctx.turn.locale.sentences
            )
            entry.question = ApprovalAsked(
                agent=call.agent, tool=call.tool, key=key, question=question
            )
            ctx.emit(entry.question)
            raise Paused
        if not entry.answer:
            return ToolResult(text=DECLINED, caveat=DECLINED)
    entry.act = Act()
    ctx.emit(ActStarted(agent=call.agent, tool=call.tool, key=key))
    try:
        await ctx.turn.keep()
    except StoreError as error:
        # Nobody would know of it after a crash.
        entry.act = None
        return ToolResult(text=UNAVAILABLE, fault="unavailable", detail=f"not begun: {error}")
    result = await run()
    entry.act = _act_of(result)
    if entry.act.text is None:
        return _result_of(entry, result)
    return result


def _act_of(result: ToolResult) -> Act:
    """Returns what became of an act; of one that may have been done all the same the end stays unknown."""
    # An error that a tool wrote into its result says as little of what was done as one that it raised.
    is_error = result.fault is None and is_machine_error(result.text)
    if is_error or result.fault in UNKNOWN or result.in_doubt:
        return Act()
    if result.fault is None:
        return Act(text=result.text)
    failure = CallFailure(kind=result.fault, text=result.detail)
    return Act(text=result.text, error=f"{result.fault}: {result.detail}", failure=failure)


def lookup_key(call: ToolCall) -> str:
    """Names a lookup: its tool, and the arguments that hold something, as its model spelled them."""
    return f"{call['name']} {_filled_in(call['args'])}"


def _filled_in(arguments: Mapping[str, Any]) -> str:
    values = {name: value for name, value in arguments.items() if value not in (None, "")}
    return json.dumps(values, sort_keys=True, default=str)


def idempotency_key(turn_id: str, key: str) -> str:
    """Returns 32 hexadecimal digits: the same for the same call in the same turn, however often that goes on."""
    return hashlib.sha256(f"{turn_id} {key}".encode()).hexdigest()[:32]


def question_of(
    limits: ToolLimits, words: str, args: Mapping[str, Any], sentences: Sentences
) -> str:
    """Words what the user is asked: the sentence of the tool with its arguments filled in, else one that names them."""
    args = {name: value for name, value in args.items() if value is not None}
    if isinstance(limits.confirm, str):
        try:
            return limits.confirm.format_map({name: str(value) for name, value in args.items()})
        except (KeyError, ValueError, IndexError):
            pass  # an argument that the model left out, and that has no default
    if not args:
        return sentences.may_i.format(tool=words)
    return sentences.may_i_with.format(tool=words, arguments=_in_words(args))


def _in_words(value: Any) -> str:
    """Returns JSON as a person reads it: no brackets, no quotes."""
    if is_object(value):
        fields: list[str] = []
        for name, field in value.items():
            text = _in_words(field)
            # The fields of a field say themselves what they are.
            fields.append(text if is_object(field) else f"{words_of_id(name)}: {text}")
        return ", ".join(fields)
    if is_list(value):
        return ", ".join(map(_in_words, value))
    return value if isinstance(value, str) else json.dumps(value)


def _result_of(entry: LedgerEntry, last: ToolResult | None = None) -> ToolResult:
    """Returns what a model is told of an act that is not done again. `last`: what its own call came to just now."""
    act = entry.act
    if act is None or act.text is None:
        detail = "its end is not known"
        if last is not None:
            detail = f"{last.fault or 'error'}: {last.detail or last.text}"
        text = f"{entry.what}: {UNCERTAIN}"
        return ToolResult(text=text, caveat=UNCERTAIN, fault="uncertain", detail=detail)
    if act.failure is None:
        return ToolResult(text=act.text)
    return ToolResult(text=act.text, fault=act.failure.kind, detail=act.failure.text)
