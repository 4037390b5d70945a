"""Strands: an agent holds its conversation and refuses a second turn at once, so each turn makes its agents."""

import asyncio
from typing import Any

from strands import Agent, tool
from strands.models import Model

from workload import (
    DESC,
    LOOKUP_DESC,
    ORCH_PROMPT,
    SUB_PROMPT,
    History,
    Spec,
    deltas,
    lookup,
    reply,
)

NAME = "Strands"
PACKAGES = ["strands-agents"]


class _Model(Model):
    def __init__(self, spec: Spec, sid: str = ""):
        self._spec, self._sid = spec, sid

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> dict[str, str]:
        return {"model_id": "stub"}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        texts = [
            part["text"]
            for message in messages
            if message["role"] == "user"
            for part in message["content"]
            if "text" in part
        ]
        results = [
            part["toolResult"]["content"][0]["text"]
            for part in messages[-1]["content"]
            if "toolResult" in part
        ]
        said = await reply(self._spec, self._sid, texts[-1], results)
        yield {"messageStart": {"role": "assistant"}}
        block: int | None = -1
        for place, piece in deltas(said, self._spec.chunks or 1):
            if self._spec.chunks:
                await asyncio.sleep(0)
            if place != block:
                if block != -1:
                    yield {"contentBlockStop": {}}
                block = place
                yield {"contentBlockStart": {"start": _start(said, place)}}
            yield {
                "contentBlockDelta": {
                    "delta": {"text": piece} if place is None else {"toolUse": {"input": piece}}
                }
            }
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if said.calls else "end_turn"}}


def _start(said: Any, place: int | None) -> dict[str, Any]:
    return (
        {}
        if place is None
        else {"toolUse": {"name": said.calls[place].name, "toolUseId": said.calls[place].id}}
    )


class Adapter:
    def __init__(self, spec: Spec):
        self._lead = _Model(spec)
        self._own = [tool(lookup, name="lookup", description=LOOKUP_DESC)] if spec.sub_tool else []
        self._tools = [
            tool(self._ask(_Model(spec, i), i), name=f"ask_{i}", description=DESC.format(id=i))
            for i in spec.ids
        ]

    def _ask(self, model: _Model, sid: str) -> Any:
        async def ask(request: str) -> str:
            agent = Agent(
                model=model,
                tools=self._own,
                system_prompt=SUB_PROMPT.format(id=sid),
                callback_handler=None,
            )
            return str(await agent.invoke_async(request)).rstrip("\n")

        return ask

    async def turn(self, text: str, history: History = ()) -> str:
        past = [{"role": role, "content": [{"text": said}]} for role, said in history]
        agent = Agent(
            model=self._lead,
            tools=self._tools,
            system_prompt=ORCH_PROMPT,
            callback_handler=None,
            messages=past,
        )
        return str(await agent.invoke_async(text)).rstrip("\n")
