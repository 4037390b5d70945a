"""Acts: calls of tools that ask the user first, or must not be made twice. What is settled about
one outlives the process."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool

from kit.compose.locale import Sentences
from kit.core.bodies.call import CallFailure
from kit.core.bodies.turn import Act, ActStarted, ApprovalAsked
from kit.core.errors import StoreError
from kit.runtime.acts.pause import LedgerEntry, Paused
from kit.runtime.context import RunContext
from kit.tools.limits import ToolLimits
from kit.tools.tool import UNAVAILABLE, ToolResult, parameters

DECLINED = "This was not done, because you said no."
UNCERTAIN = "Whether this was done is not known: it was interrupted in the middle, and it is not tried again."


async def act(
    target: BaseTool,
    call: ToolCall,
    limits: ToolLimits,
    agent: str,
    ctx: RunContext,
    run: Callable[[], Awaitable[ToolResult]],
) -> ToolResult:
    """Makes a call once: with the user's yes where its tool asks for that, and with its beginning in the store.

    Raises Paused where the user has not answered yet.
    """
    key = lookup_key(call)
    entry = ctx.turn.acts.entry(key)
    if entry.state == "done" or (entry.state == "started" and not limits.idempotent):
        return _result_of(entry)
    tool = call["name"]
    if limits.confirm:
        if entry.answer is None:
            # With its defaults: a yes counts for what will be done, not for what the model wrote.
            arguments = {**_defaults(target), **call["args"]}
            question = question_of(limits, tool, arguments, ctx.turn.locale.sentences)
            entry.question = ApprovalAsked(agent=agent, tool=tool, key=key, question=question)
            ctx.emit(entry.question)
            raise Paused
        if not entry.answer:
            return ToolResult(text=DECLINED, caveat=DECLINED)
    entry.act = Act()
    ctx.emit(ActStarted(agent=agent, tool=tool, key=key))
    try:
        await asyncio.to_thread(ctx.turn.keep)
    except StoreError as error:
        # Nobody would know of it after a crash.
        entry.act = None
        return ToolResult(text=UNAVAILABLE, fault="unavailable", detail=f"not begun: {error}")
    result = await run()
    # It may have been done all the same, so its end stays unknown.
    if result.fault == "timeout":
        return _result_of(entry)
    entry.act = Act(text=result.text)
    if result.fault:
        failure = CallFailure(kind=result.fault, text=result.detail)
        error = f"{result.fault}: {result.detail}"
        entry.act = Act(text=result.text, error=error, failure=failure)
    return result


def lookup_key(call: ToolCall) -> str:
    """Names a lookup: its tool, and the arguments that hold something."""
    args = {name: value for name, value in call["args"].items() if value not in (None, "")}
    return f"{call['name']} {json.dumps(args, sort_keys=True, default=str)}"


def idempotency_key(turn_id: str, call: ToolCall) -> str:
    """Returns 32 hexadecimal digits: the same for the same call in the same turn, however often that goes on."""
    return hashlib.sha256(f"{turn_id} {lookup_key(call)}".encode()).hexdigest()[:32]


def question_of(
    limits: ToolLimits, tool: str, args: Mapping[str, Any], sentences: Sentences
) -> str:
    """Words what the user is asked: the sentence of the tool with its arguments filled in, else one that names them."""
    if isinstance(limits.confirm, str):
        try:
            return limits.confirm.format_map({name: str(value) for name, value in args.items()})
        except (KeyError, ValueError, IndexError):
            pass  # an argument that the model left out, and that has no default
    listing = ", ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in args.items()
    )
    name = tool.replace("_", " ")
    if not listing:
        return sentences.may_i.format(tool=name)
    return sentences.may_i_with.format(tool=name, arguments=listing)


def _defaults(tool: BaseTool) -> dict[str, Any]:
    """Returns what the arguments are that a call leaves out: a yes counts for them too."""
    defaults: dict[str, Any] = {}
    for name, field in parameters(tool).items():
        if field.get("default") is not None:
            defaults[name] = field["default"]
    return defaults


def _result_of(entry: LedgerEntry) -> ToolResult:
    """Returns what a model is told of an act that is not done again."""
    act = entry.act
    if act is None or act.text is None:
        return ToolResult(text=UNCERTAIN, caveat=UNCERTAIN)
    if act.failure is None:
        return ToolResult(text=act.text)
    return ToolResult(text=act.text, fault=act.failure.kind, detail=act.failure.text)
