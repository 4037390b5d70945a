"""A hotel desk in Pydantic AI, built as its introduction builds a support agent: instructions, tools, a run context."""

from collections.abc import AsyncIterator

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from kit.core.context import Principal

ROOMS = {"Leeds": "the Grand", "Porto": "the Douro"}


async def _speak(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    """What a model would say: it looks once, then answers with what it found."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
    if results:
        yield "In Leeds: "
        yield str(results[0].content)
        return
    yield "Let me look. "
    yield {1: DeltaToolCall(name="find_room", json_args='{"city": "Leeds"}', tool_call_id="r1")}


hotel_agent = Agent(
    FunctionModel(stream_function=_speak, model_name="scripted"),
    deps_type=Principal,
    instructions="You are a hotel desk. Find a room and say who it is for.",
)


@hotel_agent.tool
async def find_room(ctx: RunContext[Principal], city: str) -> str:
    """Find a free room in a city."""
    return f"{ROOMS[city]} has a room for {ctx.deps.user_id}."
