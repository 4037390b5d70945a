"""A compiled graph of LangGraph as a system: `create_agent`, a StateGraph, whatever takes and gives `messages`."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from kit.bridges.framework import WAITS, arguments_of, is_a, text_with_context
from kit.bridges.part import BridgeFault, Called, Calling, Part, Piece, Question, Reported, Spent
from kit.core.errors import CodeError
from kit.core.outcome import Usage
from kit.core.schema.json_value import is_mapping


@dataclass(frozen=True, slots=True)
class GraphBridge:
    """A compiled graph whose state has `messages`. Each question is a thread of its own."""

    graph: Any

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Streams the graph. Raises BridgeFault for a graph that waits for a person, or whose steps ran out."""
        # Loaded already, with the graph; a deck without one need not wait for it.
        from langchain_core.messages import HumanMessage
        from langgraph.errors import GraphRecursionError

        reading = _Reading()
        config = {
            "configurable": {
                # A checkpointer wants one, and no two principals may share it.
                "thread_id": uuid.uuid4().hex,
                "tenant_id": question.principal.tenant_id,
                "user_id": question.principal.user_id,
            }
        }
        stream = self.graph.astream(
            {"messages": [HumanMessage(text_with_context(question))]},
            config,
            stream_mode=["messages", "updates", "values"],
            subgraphs=True,
        )
        try:
            async with aclosing(stream):
                async for namespace, mode, data in stream:
                    for part in reading.parts(mode, data, is_top=not namespace):
                        yield part
        except GraphRecursionError as error:
            raise BridgeFault("budget", str(error)) from error
        yield Reported(reading.text)


def graph_bridge(value: object, source: str) -> GraphBridge | None:
    """A bridge to a compiled graph; None for anything else. Raises CodeError for a graph that
    cannot be asked as it is."""
    if is_a(value, "langgraph", "StateGraph"):
        raise CodeError(f"{source} is a graph that is not compiled; name `graph.compile()`")
    if not is_a(value, "langgraph", "Pregel"):
        return None
    graph: Any = value
    if "messages" not in graph.channels:
        raise CodeError(
            f"{source} is a graph whose state has no `messages`; wrap it: `async def "
            "answer(message): ...` that calls `graph.ainvoke` with the state it takes"
        )
    return GraphBridge(graph)


@dataclass(slots=True)
class _Reading:
    """What a graph has streamed so far."""

    text: str = ""
    _seen: set[str] = field(default_factory=set[str])
    """Ids of messages: an outer graph gives again what an inner one has given."""

    def parts(self, mode: str, data: Any, *, is_top: bool) -> list[Part]:
        """The parts of one item of the stream."""
        if mode == "messages":
            message = data[0]
            # What agents inside the graph say to one another is not the answer.
            if is_top and message.type == "AIMessageChunk" and message.text:
                return [Piece(message.text)]
            return []
        if mode == "values":
            if is_top:
                self.text = _last_text(data)
            return []
        parts: list[Part] = []
        for node, update in data.items():
            if node == "__interrupt__":
                raise BridgeFault("insufficient", WAITS)
            for message in _messages_in(update):
                if message.id is None or message.id not in self._seen:
                    self._seen.add(message.id or "")
                    parts += _parts_of(message)
        return parts


def _messages_in(update: Any) -> list[Any]:
    """The messages that a node has added; it may give one or several updates, or none."""
    messages: list[Any] = []
    for item in _listed(update):
        if is_mapping(item) and "messages" in item:
            messages += _listed(item["messages"])
    return [message for message in messages if getattr(message, "type", "") in ("ai", "tool")]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(cast("list[Any]", value))
    return [value]


def _parts_of(message: Any) -> list[Part]:
    if message.type == "tool":
        fault = message.text if message.status == "error" else None
        called = Called(
            message.name or "tool",
            call_id=message.tool_call_id,
            result=message.text,
            fault=fault,
        )
        return [called]
    parts: list[Part] = []
    usage = message.usage_metadata
    if usage is not None:
        cached = usage.get("input_token_details", {}).get("cache_read", 0)
        spent = Usage(
            input_tokens=usage["input_tokens"],
            output_tokens=usage["output_tokens"],
            cached_tokens=cached,
            model_calls=1,
        )
        parts.append(Spent(spent))
    elif message.response_metadata:
        # A model's, and it did not count.
        parts.append(Spent(Usage(model_calls=1, untold_tokens=1)))
    for call in message.tool_calls:
        parts.append(Calling(call["name"], call["id"] or "", arguments_of(call["args"])))
    return parts


def _last_text(state: Any) -> str:
    """The words of the last message, where it is a model's and not a tool's."""
    messages: list[Any] = state.get("messages") or []
    if messages and messages[-1].type == "ai":
        return messages[-1].text
    return ""
