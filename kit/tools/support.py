"""The support upstream: its streaming client, and the tool that asks it and keeps its conversation going."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, cast

import httpx
from langchain_core.tools import BaseTool
from pydantic import Field, TypeAdapter, ValidationError

from kit.core.context import Principal
from kit.core.envelope import Inbound
from kit.core.event import Status
from kit.core.value import Value
from kit.tools.enricher import UNAVAILABLE, EnrichError, fitted, read_config, structured
from kit.tools.tool import ToolContext, ToolResult, tool_context

LAPSE = 55 * 60.0
"""Seconds a conversation may be continued after its last question (SAT-9)."""
DESCRIPTION = (
    "Ask the support service about a problem with the app or the account: missing points, a receipt that did not scan or was "
    "rejected, a gift card that did not arrive, connecting eReceipts, the points card, referrals, the profile."
)
PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "query": {"type": "string", "description": "The user's question in the user's own words."},
    "category": {"type": "string", "description": "The support topic, when it is clear."},
}


class SupportQuestion(Value):
    """What the support service is asked, on behalf of whom."""

    query: str
    principal: Principal
    conversation_id: str | None = None
    category: str | None = None
    context: str | None = None
    """What earlier turns were about; the service reads no history."""


class Opened(Inbound):
    kind: Literal["opened"] = "opened"
    conversation_id: str
    continued: bool = False


class Fragment(Inbound):
    kind: Literal["text"] = "text"
    text: str


class Closed(Inbound):
    kind: Literal["closed"] = "closed"
    article: str | None = None


SupportChunk = Annotated[Opened | Fragment | Closed, Field(discriminator="kind")]
_chunk: TypeAdapter[Opened | Fragment | Closed] = TypeAdapter(SupportChunk)


class Support(Protocol):
    """Streams an answer: Opened, a Fragment for each sentence, Closed. Raises EnrichError; close it with aclosing."""

    def ask(self, question: SupportQuestion) -> AsyncGenerator[Opened | Fragment | Closed, None]: ...


@dataclass(frozen=True, slots=True)
class HttpSupport:
    """Support over HTTP: a socket, or the service in this process."""

    client: httpx.AsyncClient

    async def ask(self, question: SupportQuestion) -> AsyncGenerator[Opened | Fragment | Closed, None]:
        """Chunks as they arrive."""
        body = question.model_dump(mode="json", exclude={"principal"}, exclude_none=True)
        headers = {"x-principal": str(question.principal)}
        try:
            async with self.client.stream("POST", "/v1/ask", content=json.dumps(body), headers=headers) as response:
                if response.status_code != 200:
                    raise EnrichError("unavailable", f"support service answered {response.status_code}")
                async with aclosing(cast(AsyncGenerator[str, None], response.aiter_lines())) as lines:
                    async for line in lines:
                        yield _chunk.validate_json(line)
        except httpx.TimeoutException as error:
            raise EnrichError("timeout", f"support service: {type(error).__name__}") from error
        except httpx.HTTPError as error:
            raise EnrichError("unavailable", f"support service: {type(error).__name__}") from error
        except ValidationError:
            raise EnrichError("contract_violation", "the support service sent a line that cannot be read") from None


class Conversations:
    """Which support conversation an episode is in; one that lapsed is forgotten."""

    def __init__(self) -> None:
        self._known: dict[tuple[Principal, str], tuple[str, float]] = {}

    def current(self, context: ToolContext) -> str | None:
        """The id to continue, or None."""
        now = asyncio.get_running_loop().time()
        self._known = {key: entry for key, entry in self._known.items() if now - entry[1] <= LAPSE}
        entry = self._known.get((context.inherited.principal, context.inherited.episode_id))
        return entry[0] if entry else None

    def keep(self, context: ToolContext, conversation_id: str) -> None:
        key = (context.inherited.principal, context.inherited.episode_id)
        self._known[key] = (conversation_id, asyncio.get_running_loop().time())


def support_tool(name: str, support: Support, config: Mapping[str, Any], conversations: Conversations) -> BaseTool:
    """The tool a support agent calls; its text is material for the answer, never the answer itself (PC1-R-7)."""
    seconds = read_config(name, {"timeout_ms": 10_000, **config}).timeout_ms / 1000

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        context = tool_context()
        context.emit(Status(agent=context.agent, status="asking_support"))
        said = fitted(arguments, PROPERTIES)
        question = SupportQuestion(
            query=said.get("query", ""),
            principal=context.inherited.principal,
            conversation_id=conversations.current(context),
            category=said.get("category"),
            context=context.inherited.prior_context,
        )
        try:
            async with asyncio.timeout(seconds):
                text = await _listen(support, question, context, conversations)
        except TimeoutError:
            result = ToolResult(text=UNAVAILABLE, fault="timeout", detail=f"no answer within {seconds:g} s")
        except EnrichError as error:
            result = ToolResult(text=UNAVAILABLE, fault=error.reason, detail=str(error))
        else:
            result = ToolResult(text=text) if text else ToolResult(text=UNAVAILABLE, fault="unavailable", detail="empty answer")
        return result.text, result

    return structured(name, DESCRIPTION, PROPERTIES, ("query",), call)


async def _listen(support: Support, question: SupportQuestion, context: ToolContext, conversations: Conversations) -> str:
    said: list[str] = []
    async with aclosing(support.ask(question)) as chunks:
        async for chunk in chunks:
            match chunk:
                case Opened(conversation_id=key):
                    conversations.keep(context, key)
                case Fragment(text=text):
                    said.append(text)
                case Closed():
                    return " ".join(said)
    raise EnrichError("unavailable", "the support service stopped in the middle of its answer")
