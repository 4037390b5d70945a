"""A weather desk in the OpenAI Agents SDK, built as its quickstart builds one: an agent, a function tool, a model."""

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunContextWrapper, function_tool
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)

USAGE: dict[str, Any] = {
    "input_tokens": 50,
    "output_tokens": 5,
    "total_tokens": 55,
    "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class ScriptedResponses(Model):
    """What a model would say: it calls one tool, then answers with what that gave."""

    def __init__(self, tool: str = "get_weather"):
        self._tool = tool

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError("it streams")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        items = args[1]
        result = items[-1]["output"] if isinstance(items, list) and "output" in items[-1] else ""
        text = f"For tomorrow: {result}"
        output: Any = ResponseOutputMessage(
            id="m1",
            role="assistant",
            status="completed",
            type="message",
            content=[ResponseOutputText(text=text, type="output_text", annotations=[])],
        )
        if not result:
            output = ResponseFunctionToolCall(
                name=self._tool,
                arguments='{"city": "Leeds"}',
                call_id="w1",
                type="function_call",
            )
        for number, piece in enumerate(text.split(" ") if result else ()):
            yield ResponseTextDeltaEvent(
                content_index=0,
                delta=f"{piece} ",
                item_id="m1",
                logprobs=[],
                output_index=0,
                sequence_number=number,
                type="response.output_text.delta",
            )
        response = Response(
            id="r1",
            created_at=0,
            model="scripted",
            object="response",
            output=[output],
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
            usage=ResponseUsage.model_validate(USAGE),
        )
        yield ResponseCompletedEvent(
            response=response, sequence_number=9, type="response.completed"
        )


@function_tool
async def get_weather(wrapper: RunContextWrapper[Any], city: str) -> str:
    """Get the weather of a city."""
    return f"sunny in {city}, {wrapper.context.user_id}."


weather_agent = Agent(
    name="Weather desk",
    instructions="You say what the weather is.",
    model=ScriptedResponses(),
    tools=[get_weather],
)
