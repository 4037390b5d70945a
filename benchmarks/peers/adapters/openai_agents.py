"""OpenAI Agents SDK: `Agent.as_tool` over a stub model, its tracing off."""

import asyncio
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types import responses

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

NAME = "OpenAI Agents"
PACKAGES = ["openai-agents", "openai"]


class _Model(Model):
    def __init__(self, spec: Spec, sid: str = ""):
        self._spec, self._sid = spec, sid

    async def _reply(self, heard: Any) -> Reply:
        items = [{"role": "user", "content": heard}] if isinstance(heard, str) else heard
        request = next(item["content"] for item in reversed(items) if item.get("role") == "user")
        place = len(items)
        while items[place - 1].get("type") == "function_call_output":
            place -= 1
        return await reply(
            self._spec, self._sid, request, [item["output"] for item in items[place:]], "input"
        )

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        return ModelResponse(
            output=_output(await self._reply(input)), usage=Usage(), response_id=None
        )

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> Any:
        said = await self._reply(input)
        number = 0
        for place, piece in deltas(said, self._spec.chunks):
            await asyncio.sleep(0)
            yield _delta(said, place, piece, number)
            number += 1
        output = _output(said)
        for place, item in enumerate(output):
            yield responses.ResponseOutputItemDoneEvent(
                item=item,
                output_index=place,
                sequence_number=number,
                type="response.output_item.done",
            )
        yield responses.ResponseCompletedEvent(
            response=_response(output), sequence_number=number, type="response.completed"
        )


def _output(said: Reply) -> list[Any]:
    if said.calls:
        return [
            responses.ResponseFunctionToolCall(
                call_id=call.id, name=call.name, arguments=call.json, type="function_call"
            )
            for call in said.calls
        ]
    text = responses.ResponseOutputText(text=said.text, type="output_text", annotations=[])
    return [
        responses.ResponseOutputMessage(
            id="m", role="assistant", status="completed", type="message", content=[text]
        )
    ]


def _delta(said: Reply, place: int | None, piece: str, number: int) -> Any:
    if place is None:
        return responses.ResponseTextDeltaEvent(
            item_id="m", output_index=0, content_index=0, delta=piece, logprobs=[], sequence_number=number,
            type="response.output_text.delta",
        )  # fmt: skip
    return responses.ResponseFunctionCallArgumentsDeltaEvent(
        item_id=said.calls[place].id, output_index=place, delta=piece, sequence_number=number,
        type="response.function_call_arguments.delta",
    )  # fmt: skip


def _response(output: list[Any]) -> responses.Response:
    return responses.Response(
        id="r",
        created_at=0,
        model="stub",
        object="response",
        output=output,
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
    )


class Adapter:
    def __init__(self, spec: Spec):
        set_tracing_disabled(True)
        self._streams, self._config = spec.chunks > 0, RunConfig(tracing_disabled=True)
        own = (
            [function_tool(lookup, name_override="lookup", description_override=LOOKUP_DESC)]
            if spec.sub_tool
            else []
        )
        on_stream = (lambda event: None) if self._streams else None
        tools = [
            Agent(
                name=i, instructions=SUB_PROMPT.format(id=i), model=_Model(spec, i), tools=list(own)
            ).as_tool(f"ask_{i}", DESC.format(id=i), on_stream=on_stream, run_config=self._config)
            for i in spec.ids
        ]
        self._agent = Agent(
            name="orchestrator", instructions=ORCH_PROMPT, model=_Model(spec), tools=list(tools)
        )

    async def turn(self, text: str, history: History = ()) -> str:
        items: Any = [
            *({"role": role, "content": said} for role, said in history),
            {"role": "user", "content": text},
        ]
        if not self._streams:
            return (await Runner.run(self._agent, items, run_config=self._config)).final_output
        run = Runner.run_streamed(self._agent, items, run_config=self._config)
        async for _ in run.stream_events():
            pass
        return run.final_output
