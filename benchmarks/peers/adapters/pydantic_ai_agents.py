"""Pydantic AI: an agent each, the sub-agents run inside async tools of the orchestrator."""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from workload import (
    DESC,
    LOOKUP_DESC,
    ORCH_PROMPT,
    SUB_PROMPT,
    History,
    Reply,
    Spec,
    deltas,
    lookup,
    reply,
)

NAME = "Pydantic AI"
PACKAGES = ["pydantic-ai-slim"]


def _model(spec: Spec, sid: str = "") -> FunctionModel:
    async def say(messages: Any) -> Reply:
        prompts = (
            part
            for message in reversed(messages)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        )
        results = [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        return await reply(spec, sid, next(prompts).content, results)

    async def whole(messages: Any, info: Any) -> ModelResponse:
        said = await say(messages)
        calls = [ToolCallPart(call.name, call.args, tool_call_id=call.id) for call in said.calls]
        return ModelResponse(parts=calls or [TextPart(said.text)])

    async def stream(messages: Any, info: Any) -> Any:
        said = await say(messages)
        begun = -1
        for place, piece in deltas(said, spec.chunks):
            await asyncio.sleep(0)
            if place is None:
                yield piece
                continue
            name, call_id = (
                (said.calls[place].name, said.calls[place].id) if place > begun else (None, None)
            )
            begun = place
            yield {place: DeltaToolCall(name, piece, tool_call_id=call_id)}

    return FunctionModel(whole, stream_function=stream)


async def _run(agent: Agent, streams: bool, text: str, history: Any = None) -> str:
    if not streams:
        return (await agent.run(text, message_history=history)).output
    output = ""
    async with agent.run_stream_events(text, message_history=history) as events:
        async for event in events:
            if event.event_kind == "agent_run_result":
                output = event.result.output
    return output


class Adapter:
    def __init__(self, spec: Spec):
        self._streams = spec.chunks > 0
        self._agent = Agent(_model(spec), instructions=ORCH_PROMPT)
        for i in spec.ids:
            sub = Agent(_model(spec, i), instructions=SUB_PROMPT.format(id=i))
            if spec.sub_tool:
                sub.tool_plain(lookup, name="lookup", description=LOOKUP_DESC)
            self._agent.tool_plain(
                _ask(sub, self._streams), name=f"ask_{i}", description=DESC.format(id=i)
            )

    async def turn(self, text: str, history: History = ()) -> str:
        past = [
            ModelRequest(parts=[UserPromptPart(said)])
            if role == "user"
            else ModelResponse(parts=[TextPart(said)])
            for role, said in history
        ]
        return await _run(self._agent, self._streams, text, past or None)


def _ask(sub: Agent, streams: bool) -> Any:
    async def ask(request: str) -> str:
        return await _run(sub, streams, request)

    return ask
