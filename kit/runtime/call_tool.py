"""Runs one tool call of a sub-agent: whitelist, context, span; what goes wrong becomes a value here."""

from collections.abc import Mapping

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool

from kit.core.event import Component, ToolEnded, ToolStarted
from kit.core.outcome import Usage
from kit.runtime.context import RunContext
from kit.runtime.stream import emitter
from kit.tools.tool import ToolContext, ToolResult, within

UNAVAILABLE = "This data is unavailable right now."


async def call_tool(call: ToolCall, tools: Mapping[str, BaseTool], agent: str, ctx: RunContext) -> tuple[ToolMessage, ToolResult]:
    """Runs a tool call on behalf of the turn's principal and returns its message with its typed result.

    A tool outside the whitelist is refused, a tool that raises is a fault: both are results, neither raises (decisions 9).
    Raw reasons go to the trace only.
    """
    call_id = call["id"] or ctx.turn.log.new_span()
    span = ctx.opened(ToolStarted(agent=agent, tool=call["name"], call_id=call_id, args=call["args"]))
    tool = tools.get(call["name"])
    if tool is None:
        result = ToolResult(text="You have no such tool.", fault="not_allowed", detail=f"{call['name']!r} is not on the card")
    else:
        result = await _run(tool, call, agent, span)
    for component in result.components:
        span.emit(Component(agent=agent, type=component.type, payload=component.payload))
    error = f"{result.fault}: {result.detail}" if result.fault else None
    span.emit(ToolEnded(agent=agent, tool=call["name"], call_id=call_id, result=result.text, error=error))
    ctx.spent.append(Usage(tool_calls=1))
    status = "error" if result.fault else "success"
    return ToolMessage(result.text, tool_call_id=call_id, name=call["name"], status=status), result


async def _run(tool: BaseTool, call: ToolCall, agent: str, ctx: RunContext) -> ToolResult:
    context = ToolContext(agent=agent, turn_id=ctx.turn.log.turn_id, inherited=ctx.inherited, emit=emitter(ctx))
    try:
        with within(context):
            message: ToolMessage = await tool.ainvoke({**call, "type": "tool_call"})
    except Exception as error:  # the second and last place that turns an exception into a value (decisions 9)
        return ToolResult(text=UNAVAILABLE, fault="exception", detail=f"{type(error).__name__}: {error}")
    if isinstance(message.artifact, ToolResult):
        return message.artifact
    return ToolResult(text=str(message.text))
