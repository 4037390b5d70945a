"""What one would write by hand over LangChain's chat models: no cap, no deadline, no trace. The
floor of the comparison."""

import asyncio
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import add_ai_message_chunks

from adapters._lc_stub import OrchModel, SubModel, messages_of
from workload import DESC, LOOKUP_DESC, ORCH_PROMPT, SUB_PROMPT, History, Spec, lookup

NAME = "hand loop"
PACKAGES = ["langchain-core"]


def _tool(name: str, description: str, argument: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


class Adapter:
    def __init__(self, spec: Spec):
        self._streams = spec.chunks > 0
        self._lead = OrchModel(spec).bind_tools(
            [_tool(f"ask_{i}", DESC.format(id=i), "request") for i in spec.ids]
        )
        tools = [_tool("lookup", LOOKUP_DESC, "key")]
        models = {i: SubModel(spec, i) for i in spec.ids}
        self._subs: dict[str, Any] = {
            i: model.bind_tools(tools) if spec.sub_tool else model for i, model in models.items()
        }

    async def _call(self, model: Any, messages: list[BaseMessage]) -> Any:
        if not self._streams:
            return await model.ainvoke(messages)
        chunks = [chunk async for chunk in model.astream(messages)]
        return add_ai_message_chunks(chunks[0], *chunks[1:])

    async def _loop(self, model: Any, messages: list[BaseMessage], call_tool: Any) -> str:
        while (said := await self._call(model, messages)).tool_calls:
            results = await asyncio.gather(
                *(call_tool(call["name"], **call["args"]) for call in said.tool_calls)
            )
            pairs = zip(said.tool_calls, results, strict=True)
            messages += [
                said,
                *(ToolMessage(result, tool_call_id=call["id"]) for call, result in pairs),
            ]
        return str(said.content)

    async def _ask(self, name: str, request: str) -> str:
        sid = name.removeprefix("ask_")
        return await self._loop(
            self._subs[sid],
            [SystemMessage(SUB_PROMPT.format(id=sid)), HumanMessage(request)],
            _lookup,
        )

    async def turn(self, text: str, history: History = ()) -> str:
        return await self._loop(
            self._lead,
            [SystemMessage(ORCH_PROMPT), *messages_of(history), HumanMessage(text)],
            self._ask,
        )


async def _lookup(name: str, key: str) -> str:
    return await lookup(key)
