"""The offline stand-in: a chat model that needs no key, no download and no network, and answers the
same way every time.

It is not a language model. It knows only what any model is given: messages, and the names, descriptions and schemas of
bound tools. It routes by similarity, fills arguments from schemas, and composes answers out of sentences it was handed.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from kit.core.card import PlanExample
from kit.core.model import OFFLINE, EmbedderName, ModelSpec
from kit.models.message import call_chunks, chosen_tool, token_count
from kit.models.offline import similarity
from kit.models.offline.conversation import Conversation, Tool, text_of, tool_of
from kit.models.offline.reply import Reply, Request, reply
from kit.models.offline.wording import LONG_TO_LEARN

NAME = "offline stand-in"
_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_CHUNK = re.compile(r"(?<!\s)\s*+\S++(?:\s++\S++){0,4}+(?:\s+$)?")
"""Up to five words: about the pieces, and the pace, in which providers send theirs."""


class OfflineModel(BaseChatModel):
    """A deterministic chat model embedded in the kit; never to be reported as a language model's result."""

    name: str | None = NAME
    pace: float = 0.01
    """Seconds between streamed chunks."""
    think: float = 0.03
    """Seconds before the first chunk, and before an answer that is not streamed."""

    plan_examples: tuple[PlanExample, ...] = ()
    """The deck's requests with their steps, by which it plans."""
    embedder: EmbedderName = "words"
    """By whose vectors it compares texts."""

    @property
    def _llm_type(self) -> str:
        return "offline-stand-in"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.name}

    @property
    def spec(self) -> ModelSpec:
        """What is known of it: that it is no language model."""
        return OFFLINE

    def paced(self, factor: float) -> "OfflineModel":
        """The same model, `factor` times as slow; 0 answers at once."""
        return self.model_copy(update={"pace": self.pace * factor, "think": self.think * factor})

    @staticmethod
    def warm(embedder: EmbedderName = "words") -> None:
        """Reads the vectors now (about 0.3 s of CPU), instead of at the first question."""
        similarity.load(embedder)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Binds tools; dicts already in OpenAI format are taken as they are."""
        specs = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=specs, tool_choice=tool_choice, **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return generate_from_stream(iter(self._chunks(messages, kwargs)))

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        chunks = await self._chunks_in_turn(messages, kwargs)
        await asyncio.sleep(self.think)
        return generate_from_stream(iter(chunks))

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        chunks = await self._chunks_in_turn(messages, kwargs)
        await asyncio.sleep(self.think)
        for n, chunk in enumerate(chunks):
            if n:
                await asyncio.sleep(self.pace)
            yield chunk

    async def _chunks_in_turn(
        self, messages: list[BaseMessage], kwargs: dict[str, Any]
    ) -> list[ChatGenerationChunk]:
        """Composes a reply, one in each step of the loop: a hundred turns that ask at the same moment kept
        it silent for half a second."""
        lock = _LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        requests: Mapping[str, tuple[str, ...]] = kwargs.get("requests") or {}
        async with lock:
            await asyncio.sleep(0)
            if sum(map(len, requests.values())) < LONG_TO_LEARN:
                return self._chunks(messages, kwargs)
            # It may have to learn from them first, for seconds, in which the rest of the process goes on.
            return await asyncio.to_thread(self._chunks, messages, kwargs)

    def _chunks(
        self, messages: list[BaseMessage], kwargs: dict[str, Any]
    ) -> list[ChatGenerationChunk]:
        """Text a few words at a time, then the calls, then the usage."""
        requests: Mapping[str, tuple[str, ...]] = kwargs.get("requests") or {}
        tools: list[Tool] = []
        for spec in cast("Sequence[dict[str, Any]]", kwargs.get("tools") or ()):
            tool = tool_of(spec, requests)
            # What shows components is left to the kit: a lookup's result says which.
            if not tool.name.startswith("render_"):
                tools.append(tool)
        request = Request(
            Conversation(messages, self.embedder, kwargs.get("names") or {}),
            tools,
            chosen_tool(kwargs.get("tool_choice")),
            self.plan_examples,
            requests,
            acts=frozenset(kwargs.get("acts") or ()),
            topics=kwargs.get("topics") or {},
        )
        answer = reply(request)
        ending = {
            "model_name": self.name,
            "finish_reason": "tool_calls" if answer.calls else "stop",
        }
        usage = token_count(_input_tokens(messages, tools), _output_tokens(answer))
        last = AIMessageChunk(
            content="", usage_metadata=usage, response_metadata=ending, chunk_position="last"
        )
        chunks = [AIMessageChunk(content=piece) for piece in _CHUNK.findall(answer.text)]
        for call in call_chunks(answer.calls):
            chunks.append(AIMessageChunk(content="", tool_call_chunks=[call]))
        return [ChatGenerationChunk(message=chunk) for chunk in [*chunks, last]]


def _input_tokens(messages: Sequence[BaseMessage], tools: Sequence[Tool]) -> int:
    """At four characters a token."""
    characters = 0
    for message in messages:
        content = cast("Any", message.content)
        characters += len(content if isinstance(content, str) else text_of(message))
    for tool in tools:
        characters += len(tool.name) + len(tool.description) + 60 * len(tool.schema)
    return max(1, characters // 4)


def _output_tokens(answer: Reply) -> int:
    characters = len(answer.text)
    for call in answer.calls:
        characters += len(call["name"]) + len(json.dumps(call["args"], default=str))
    return max(1, characters // 4)
