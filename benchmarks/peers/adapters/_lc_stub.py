"""The models of the workload as LangChain chat models, for whatever calls models through LangChain."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolCallChunk,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from workload import History, Reply, deltas, reply, submission


class SubModel(BaseChatModel):
    """The model of one sub-agent; streams where the workload does."""

    spec: Any
    sid: str = ""

    def __init__(self, spec: Any, sid: str = ""):
        super().__init__(spec=spec, sid=sid, disable_streaming=not spec.chunks)

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    async def _reply(
        self, messages: list[BaseMessage], tools: Sequence[dict[str, Any]] = ()
    ) -> Reply:
        """Asks for what the schema of the tools wants: the request under its name there, and the number of intents."""
        place = len(messages)
        while isinstance(messages[place - 1], ToolMessage):
            place -= 1
        request = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
        results = [str(message.content) for message in messages[place:]]
        if self.sid:
            return await reply(self.spec, self.sid, str(request.content), results)
        name, fields = (
            tools[0]["function"]["name"],
            tools[0]["function"]["parameters"]["properties"],
        )
        if not name.startswith("ask_"):
            return await submission(self.spec, name, next(iter(fields)))
        count = {"intent_count": self.spec.n} if "intent_count" in fields else {}
        return await reply(
            self.spec, "", str(request.content), results, next(iter(fields)), **count
        )

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("the benchmark awaits its models")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: Any = None,
        tools: Any = (),
        **kwargs: Any,
    ) -> ChatResult:
        said = await self._reply(messages, tools)
        calls = [{"id": call.id, "name": call.name, "args": call.args} for call in said.calls]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(said.text, tool_calls=calls))]
        )

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: Any = None,
        tools: Any = (),
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = await self._reply(messages, tools)
        begun = -1
        for place, piece in deltas(said, self.spec.chunks):
            await asyncio.sleep(0)
            if place is None:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
                continue
            call = said.calls[place] if place > begun else None
            begun = place
            part = ToolCallChunk(
                name=call and call.name, id=call and call.id, args=piece, index=place
            )
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[part]))


class OrchModel(SubModel):
    """The model of the orchestrator."""


def messages_of(history: History) -> list[BaseMessage]:
    return [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in history]
