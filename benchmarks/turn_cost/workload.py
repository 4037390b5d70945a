"""One turn of pure overhead: stub models that only yield to the loop, run by a hand-written loop and by the kit.

A turn is: an orchestrator call that asks N sub-agents, N sub-agent calls at the same time, a composing call.
Latency is zero, so whatever a turn costs is the cost of the machinery.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCallChunk,
    ToolMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from kit.bench.routing import BENCH_USER, RoutingKit, star_deck
from kit.core.card import AgentCard
from kit.core.context import Session
from kit.models.asynchronous import AsyncChatModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore

CHUNKS = 20
_PROMPT = (
    "You are the orchestrator. Call one ask tool for each intent of the user, then compose "
    "one answer from the results."
)
_ids = itertools.count()


class Runner(Protocol):
    """Anything that can run the turn."""

    async def turn(self, text: str) -> str: ...


class StubModel(AsyncChatModel):
    """Asks `asks` when it has tools to call, else answers; yields to the loop once a call, as a network would."""

    asks: list[str] = []
    who: str = ""

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=list(tools), **kwargs)

    def _reply(self, messages: list[BaseMessage]) -> tuple[str, list[dict[str, Any]]]:
        request = str(messages[-1].content)
        if not self.asks:
            return f"R:{self.who}:{request}", []
        if isinstance(messages[-1], ToolMessage):
            contents: list[str] = []
            for message in reversed(messages):
                if not isinstance(message, ToolMessage):
                    break
                contents.append(str(message.content))
            return " | ".join(reversed(contents)), []
        args = {"query": request, "intent_count": len(self.asks)}
        return "", [{"name": name, "args": args, "id": f"c{next(_ids)}"} for name in self.asks]

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(0)
        text, calls = self._reply(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=calls))])


class StreamingStub(StubModel):
    """The same, in CHUNKS chunks a call."""

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        text, calls = self._reply(messages)
        pieces: list[str] = []
        for i in range(CHUNKS):
            pieces.append(text[i * len(text) // CHUNKS : (i + 1) * len(text) // CHUNKS])
        for piece in pieces[:-1] if calls else pieces:
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        if calls:
            chunks: list[ToolCallChunk] = []
            for index, call in enumerate(calls):
                chunks.append(
                    ToolCallChunk(
                        name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index
                    )
                )
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=chunks))


def _stub(streaming: bool, **fields: Any) -> StubModel:
    if streaming:
        return StreamingStub(**fields)
    return StubModel(**fields)


def agent_ids(n: int) -> list[str]:
    """a, b, c ..."""
    texts: list[str] = []
    for i in range(n):
        texts.append(chr(ord("a") + i))
    return texts


class HandLoop:
    """The least code that runs the turn over BaseChatModel: no cap, no deadline, no trace. The
    floor to compare with."""

    def __init__(self, n: int, streaming: bool):
        ids = agent_ids(n)
        schema = {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        }
        tools: list[
            dict[str, str | dict[str, str | dict[str, str | dict[str, dict[str, str]] | list[str]]]]
        ] = []
        for i in ids:
            tools.append(
                {
                    "type": "function",
                    "function": {"name": f"ask_{i}", "description": i, "parameters": schema},
                }
            )
        self._streaming = streaming
        self._lead = _stub(streaming, asks=[f"ask_{i}" for i in ids]).bind_tools(tools)
        self._subs = {f"ask_{i}": _stub(streaming, who=i) for i in ids}

    async def _call(self, model: Any, messages: list[BaseMessage]) -> Any:
        if not self._streaming:
            return await model.ainvoke(messages)
        chunks = [chunk async for chunk in model.astream(messages)]
        return add_ai_message_chunks(chunks[0], *chunks[1:])

    async def _ask(self, call: Any) -> str:
        try:
            messages: list[BaseMessage] = [
                SystemMessage("Answer within your domain only."),
                HumanMessage(call["args"]["query"]),
            ]
            return str((await self._call(self._subs[call["name"]], messages)).content)
        # As hand-written loops do.
        except Exception as error:
            return f"error: {type(error).__name__}"

    async def turn(self, text: str) -> str:
        messages: list[BaseMessage] = [SystemMessage(_PROMPT), HumanMessage(text)]
        while True:
            reply = await self._call(self._lead, messages)
            messages.append(reply)
            if not reply.tool_calls:
                return str(reply.content)
            results = await asyncio.gather(*(self._ask(call) for call in reply.tool_calls))
            messages += [
                ToolMessage(r, tool_call_id=call["id"])
                for call, r in zip(reply.tool_calls, results, strict=True)
            ]


class KitLoop:
    """The same turn through the kit: cards, cap, deadlines, events, and every turn traced to SQLite."""

    def __init__(self, n: int, streaming: bool, store: str = ":memory:"):
        ids = agent_ids(n)
        cards: list[AgentCard] = []
        for i in ids:
            cards.append(
                AgentCard(id=i, description=f"Answers questions of domain {i}.", model="offline")
            )
        models: dict[str, str | BaseChatModel] = {}
        for i in ids:
            models[i] = _stub(streaming, who=i)
        models["orchestrator"] = _stub(streaming, asks=[f"ask_{i}" for i in ids])
        self._kit = RoutingKit(
            bind(star_deck(cards, "Routes.", cap=max(8, n)), models, {}), SqliteStore(store)
        )
        self._turns = itertools.count()

    async def turn(self, text: str) -> str:
        session = Session(id=f"s{next(self._turns)}", principal=BENCH_USER)
        return (await run_turn(text, session, self._kit)).text
