"""The support upstream: its streaming client, and the tool that asks it and keeps its conversation going."""

import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, cast

from pydantic import Field, TypeAdapter, ValidationError

from kit.core.bodies.call import Envelope
from kit.core.bodies.speech import Status
from kit.core.context import OPERATOR, Principal, Reader, SessionKey
from kit.core.envelope import Inbound
from kit.core.errors import StoreError
from kit.core.record import Message, Note
from kit.core.value import Value
from kit.tools.enricher import (
    UNAVAILABLE,
    EnrichError,
    ToolConfig,
    fit_arguments,
    read_config,
    structured,
)
from kit.tools.tool import ToolContext, ToolLimits, ToolResult, tool_context

if TYPE_CHECKING:
    import httpx
    from langchain_core.tools import BaseTool


LAPSE = 55 * 60.0
"""Seconds a conversation may be continued after its last question."""
REPLAYED = 6
"""Turns told again at the head of a conversation that takes the place of a lapsed one."""
DESCRIPTION = (
    "Ask the support service about a problem with the app or the account: missing points, a "
    "receipt that did not scan or was "
    "rejected, a gift card that did not arrive, connecting eReceipts, the points card, referrals, the profile."
)
PATIENCE = ToolLimits(timeout_ms=10_000)
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
    """The first chunk: which conversation this is."""

    kind: Literal["opened"] = "opened"
    conversation_id: str
    continued: bool = False
    principal: str | None = None
    """Whom the service speaks about, when it says so; anybody else's answer is dropped unread."""


class Fragment(Inbound):
    """A sentence of the answer."""

    kind: Literal["text"] = "text"
    text: str


class Closed(Inbound):
    """The last chunk: the answer is whole."""

    kind: Literal["closed"] = "closed"
    article: str | None = None


SupportChunk = Annotated[Opened | Fragment | Closed, Field(discriminator="kind")]
_chunk: TypeAdapter[Opened | Fragment | Closed] = TypeAdapter(SupportChunk)


class Support(Protocol):
    """Streams an answer: Opened, a Fragment for each sentence, Closed. Raises EnrichError; close it with aclosing."""

    def ask(
        self, question: SupportQuestion
    ) -> AsyncGenerator[Opened | Fragment | Closed, None]: ...


@dataclass(frozen=True, slots=True)
class HttpSupport:
    """Support over HTTP: a socket, or the service in this process."""

    client: "httpx.AsyncClient"

    async def ask(
        self, question: SupportQuestion
    ) -> AsyncGenerator[Opened | Fragment | Closed, None]:
        """Chunks as they arrive."""
        import httpx

        body = question.model_dump(mode="json", exclude={"principal"}, exclude_none=True)
        headers = {"x-principal": str(question.principal)}
        try:
            async with self.client.stream(
                "POST", "/v1/ask", content=json.dumps(body), headers=headers
            ) as response:
                if response.status_code != 200:
                    raise EnrichError(
                        "unavailable", f"support service answered {response.status_code}"
                    )
                async with aclosing(
                    cast(AsyncGenerator[str, None], response.aiter_lines())
                ) as lines:
                    async for line in lines:
                        yield _chunk.validate_json(line)
        except httpx.TimeoutException as error:
            raise EnrichError("timeout", f"support service: {type(error).__name__}") from error
        except httpx.HTTPError as error:
            raise EnrichError("unavailable", f"support service: {type(error).__name__}") from error
        except ValidationError:
            raise EnrichError(
                "contract_violation", "the support service sent a line that cannot be read"
            ) from None


class Episodes(Protocol):
    """What is remembered of an episode: a store."""

    def note(self, key: SessionKey, name: str) -> Note | None: ...

    def keep_note(self, key: SessionKey, name: str, note: Note) -> None: ...

    def history(
        self, key: SessionKey, agent: str = "", limit: int = 40, *, reader: Reader = OPERATOR
    ) -> list[Message]: ...


class Unkept:
    """Episodes of a kit without a store: conversation ids in memory, and no history."""

    def __init__(self) -> None:
        self._notes: dict[tuple[SessionKey, str], Note] = {}

    def note(self, key: SessionKey, name: str) -> Note | None:
        return self._notes.get((key, name))

    def keep_note(self, key: SessionKey, name: str, note: Note) -> None:
        self._notes[key, name] = note

    def history(
        self, key: SessionKey, agent: str = "", limit: int = 40, *, reader: Reader = OPERATOR
    ) -> list[Message]:
        return []


@dataclass(frozen=True, slots=True)
class Conversations:
    """Which support conversation an episode is in. Its id is kept with the episode, one for each owner."""

    episodes: Episodes = field(default_factory=Unkept)
    clock: Callable[[], float] = time.time
    """Seconds since the epoch: an id outlives the process that got it."""

    def current(self, context: ToolContext) -> tuple[str | None, str | None]:
        """The id to continue; else, where one has lapsed, the last turns of this agent to begin a
        new conversation with."""
        inherited = context.inherited
        try:
            note = self.episodes.note(inherited.session_key, _name(context))
            if note is None or self.clock() - note.at <= LAPSE:
                return note.value if note else None, None
            lines = self.episodes.history(
                inherited.session_key, context.agent, 2 * REPLAYED, reader=inherited.principal
            )
        except StoreError:  # a question is answered without its memory rather than not at all
            return None, None
        return None, "\n".join(f"{line.role}: {line.text}" for line in lines) or None

    def keep(self, context: ToolContext, conversation_id: str) -> None:
        """Remembers the conversation, from now on."""
        note = Note(value=conversation_id, at=self.clock())
        with suppress(StoreError):
            self.episodes.keep_note(context.inherited.session_key, _name(context), note)


def _name(context: ToolContext) -> str:
    return f"support:{context.inherited.principal}"


def support_tool(
    name: str, support: Support, config: Mapping[str, Any], conversations: Conversations
) -> "BaseTool":
    """The tool a support agent calls; its text is material for the answer, never the answer itself."""
    read_config(name, config, ToolConfig)

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        context = tool_context()
        context.emit(Status(agent=context.agent, status="asking_support"))
        parts = fit_arguments(arguments, PROPERTIES)
        try:
            question = _question(
                parts.get("query", ""), context, conversations, parts.get("category")
            )
            text = "".join(
                [piece async for piece in _fragments(support, question, context, conversations)]
            )
        except EnrichError as error:
            result = ToolResult(text=UNAVAILABLE, fault=error.reason, detail=str(error))
        else:
            if text:
                result = ToolResult(text=text)
            else:
                result = ToolResult(text=UNAVAILABLE, fault="unavailable", detail="empty answer")
        return result.text, result

    return structured(name, DESCRIPTION, PROPERTIES, ("query",), call)


def support_api(
    support: Support, conversations: Conversations
) -> Callable[[str], AsyncGenerator[str, None]]:
    """Returns the support service as a sub-agent of its own, without a model: what it streams is
    the answer, piece by piece."""

    async def pieces(query: str) -> AsyncGenerator[str, None]:
        context = tool_context()
        context.emit(Status(agent=context.agent, status="asking_support"))
        async with aclosing(
            _fragments(support, _question(query, context, conversations), context, conversations)
        ) as stream:
            async for piece in stream:
                yield piece

    return pieces


def _question(
    query: str, context: ToolContext, conversations: Conversations, category: str | None = None
) -> SupportQuestion:
    key, replay = conversations.current(context)
    return SupportQuestion(
        query=query,
        principal=context.inherited.principal,
        conversation_id=key,
        category=category,
        context="\n".join(part for part in (replay, context.inherited.prior_context) if part)
        or None,
    )


def _foreign(context: ToolContext) -> Envelope:
    return Envelope(
        agent=context.agent,
        domain_type="support",
        enricher_id="conversation",
        status="error",
        principal_verified=False,
        principal=context.inherited.principal,
    )


async def _fragments(
    support: Support, question: SupportQuestion, context: ToolContext, conversations: Conversations
) -> AsyncGenerator[str, None]:
    """Yields the sentences of an answer as they arrive, once it is known whom it is for."""
    gap = ""
    async with aclosing(support.ask(question)) as chunks:
        async for chunk in chunks:
            match chunk:
                case Opened(principal=whom) if whom not in (None, str(question.principal)):
                    context.emit(_foreign(context))
                    raise EnrichError(
                        "principal_mismatch", "the support service answered about another principal"
                    )
                case Opened(conversation_id=key):
                    conversations.keep(context, key)
                case Fragment(text=text):
                    yield gap + text
                    gap = " "
                case Closed():
                    return
    raise EnrichError("unavailable", "the support service stopped in the middle of its answer")
