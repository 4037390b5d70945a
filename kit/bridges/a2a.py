"""An agent behind the Agent2Agent protocol as a system, named by the address of its card."""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kit.bridges.framework import WAITS, text_with_context
from kit.bridges.http import check_address, seconds_of
from kit.bridges.part import BridgeFault, Part, Piece, Question, Reported
from kit.core.errors import CodeError
from kit.core.extra import require
from kit.core.outcome import Reason

if TYPE_CHECKING:
    import httpx
    from a2a.client.client import Client, ClientCallContext

CARD = "agent-card.json"
"""How the address of a card ends."""
GIVE_UP = 1.0
"""Seconds an agent gets to hear that its work is not wanted any more."""


@dataclass(frozen=True, slots=True)
class A2ABridge:
    """An agent whose card is at an address. The protocol tells neither its calls nor its spend."""

    url: str

    @classmethod
    def at(cls, url: str) -> "A2ABridge":
        """An agent by the address of its card. Raises CodeError for an address that cannot be asked,
        and where the SDK is not installed."""
        check_address(url)
        require("a2a", "a2a")
        # The SDK would open a hundred spans a call.
        os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
        return cls(url)

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Sends the question and follows the task to its end; one that is given up is told so.

        Raises BridgeFault for an agent that cannot be reached, has failed, breaks off, or wants something.
        """
        import httpx
        from a2a.client.client import ClientCallContext
        from a2a.types import Message, Role, SendMessageRequest
        from a2a.types import Part as TextPart
        from a2a.utils.errors import A2AError

        from kit.bridges.bounded import bounded_client

        principal = question.principal
        metadata = {"tenant_id": principal.tenant_id, "user_id": principal.user_id}
        message = Message(
            message_id=uuid.uuid4().hex,
            role=Role.ROLE_USER,
            parts=[TextPart(text=text_with_context(question))],
            metadata=metadata,
        )
        context = ClientCallContext(service_parameters={"x-principal": str(principal)})
        task = _Task()
        try:
            async with bounded_client(seconds_of(question)) as http:
                client = await self._client(http)
                updates: Any = client.send_message(
                    SendMessageRequest(message=message), context=context
                )
                try:
                    async with aclosing(updates):
                        async for update in updates:
                            for piece in task.hear(update):
                                yield piece
                finally:
                    await task.give_up(client, context)
        except httpx.TimeoutException as error:
            raise BridgeFault("timeout", f"{self.url}: {type(error).__name__}") from error
        except (httpx.HTTPError, A2AError) as error:
            detail = f"{self.url}: {type(error).__name__}: {error}"
            raise BridgeFault("unavailable", detail) from error
        if not task.is_final:
            detail = f"{self.url}: it said no more before its task had ended"
            raise BridgeFault("unavailable", detail)
        yield Reported(task.answer)

    async def _client(self, http: "httpx.AsyncClient") -> "Client":
        """A client of the agent, over the address that its card gives."""
        from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

        base, _, path = self.url.partition("://")[2].partition("/")
        resolver = A2ACardResolver(http, f"{urlsplit(self.url).scheme}://{base}", path)
        card = await resolver.get_agent_card()
        for interface in card.supported_interfaces:
            try:
                check_address(interface.url)
            except CodeError as error:
                raise BridgeFault("not_allowed", f"its card says: {error}") from error
        return ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)


class _Task:
    """What an agent has said of the task that it made of the question."""

    def __init__(self) -> None:
        self._id = ""
        self._artifacts: dict[str, str] = {}
        """Id of an artifact -> its text, in the order in which they came."""
        self.is_final = False
        """Whether it has said that the task ended, or answered by a message in place of a task."""
        self._words = ""
        """Those of a message, or with which the task ended."""

    @property
    def answer(self) -> str:
        """What it has made, else the words with which it ended."""
        return "\n\n".join(filter(None, self._artifacts.values())) or self._words

    def hear(self, update: Any) -> list[Piece]:
        """Takes one update: a task, a status, an artifact, or a whole message; what is said of another task is none
        of its. Raises BridgeFault for a task that ended otherwise than by an answer."""
        kind = update.WhichOneof("payload")
        if kind is None:
            return []
        part: Any = getattr(update, kind)
        if kind == "message":
            self.is_final = True
            self._words = _text_in(part.parts)
            return [Piece(self._words)]
        task_id = part.id if kind == "task" else part.task_id
        self._id = self._id or task_id
        if task_id != self._id:
            return []
        if kind == "artifact_update":
            return self._take(part.artifact, appends=part.append)
        pieces: list[Piece] = []
        if kind == "task":
            for artifact in part.artifacts:
                pieces += self._take(artifact, appends=False)
        self._check(part.status)
        return pieces

    def _take(self, artifact: Any, *, appends: bool) -> list[Piece]:
        """Keeps the text of an artifact; gives what of it is new. One that comes again replaces itself."""
        text = _text_in(artifact.parts)
        before = self._artifacts.get(artifact.artifact_id)
        if before is None:
            separator = "\n\n" if any(self._artifacts.values()) else ""
            self._artifacts[artifact.artifact_id] = text
            return [Piece(separator + text)]
        if appends:
            self._artifacts[artifact.artifact_id] = before + text
            return [Piece(text)]
        self._artifacts[artifact.artifact_id] = text
        return []

    def _check(self, status: Any) -> None:
        from a2a.types import TaskState

        words = _text_in(status.message.parts)
        if status.state == TaskState.TASK_STATE_COMPLETED:
            self.is_final = True
            self._words = words
            return
        if status.state in (
            TaskState.TASK_STATE_INPUT_REQUIRED,
            TaskState.TASK_STATE_AUTH_REQUIRED,
        ):
            raise BridgeFault("insufficient", f"{WAITS}: {words}")
        reasons: dict[Any, Reason] = {
            TaskState.TASK_STATE_FAILED: "exception",
            TaskState.TASK_STATE_CANCELED: "exception",
            TaskState.TASK_STATE_REJECTED: "refusal",
        }
        if status.state in reasons:
            self.is_final = True
            raise BridgeFault(reasons[status.state], f"the agent says: {words}")

    async def give_up(self, client: "Client", context: "ClientCallContext") -> None:
        """Tells the agent to stop, where it has not ended: it would go on working for nobody."""
        import httpx
        from a2a.types import CancelTaskRequest
        from a2a.utils.errors import A2AError

        if self.is_final or not self._id:
            return
        # Whatever comes of that, nobody waits for it.
        with suppress(A2AError, httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(GIVE_UP):
                await client.cancel_task(CancelTaskRequest(id=self._id), context=context)


def is_card_address(reference: str) -> bool:
    """Whether an address is that of an agent's card."""
    return urlsplit(reference).path.endswith(CARD)


def _text_in(parts: Any) -> str:
    return "".join([part.text for part in parts if part.text])
