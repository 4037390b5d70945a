"""A turn that a server runs, with the face of one that runs in this process."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

from pydantic import SecretStr

from kit.core.context import Principal
from kit.core.errors import SettingsError
from kit.core.event import Event
from kit.runtime.elsewhere.told_turn import reply_of
from kit.runtime.handle import Reply
from kit.service.client import EventStream, ServiceClient, ServiceUnavailable
from kit.settings import Settings


class RemoteTurn:
    """Follows, awaits and stops a turn of a server, as `kit.runtime.handle.Turn` does one of its own."""

    def __init__(
        self,
        client: ServiceClient,
        stream: EventStream,
        reading: AsyncGenerator[Event],
        first: Event,
    ):
        self.id: str = first.turn_id
        """That of the turn which is followed."""
        self.events = [first]
        """What happened so far, as far as it was read."""
        self._client = client
        self._stream = stream
        self._reading = reading
        self._stopping: asyncio.Task[object] | None = None

    @classmethod
    async def begin(cls, client: ServiceClient, stream: EventStream) -> "RemoteTurn":
        """Waits for the first event, which names the turn. Raises ServiceError."""
        reading = aiter(stream)
        return cls(client, stream, reading, await anext(reading))

    async def __aiter__(self) -> AsyncGenerator[Event]:
        for event in list(self.events):
            yield event
        async for event in self._reading:
            self.events.append(event)
            yield event

    def __await__(self) -> Generator[Any, None, Reply]:
        return self._reply().__await__()

    async def _reply(self) -> Reply:
        # Whoever was reading may have been cancelled: the stream goes on where that was.
        await self._reading.aclose()
        async for event in self._stream:
            self.events.append(event)
        assert self._stream.result is not None
        result = self._stream.result
        if result.turn_id != self.id:
            # Its worker died, and another turn has finished what it had begun.
            self.id = result.turn_id
            self.events = [event async for event in self._client.follow(result.turn_id)]
        reply = reply_of(self.events)
        if reply is None:
            raise ServiceUnavailable(0, f"the server ended before turn {result.turn_id} did")
        return reply

    def cancel(self) -> None:
        """Has the server stop the turn; it completes as `cancelled`."""
        # The loop holds a task weakly.
        self._stopping = asyncio.ensure_future(self._client.cancel_turn(self.id))


def client_of(settings: Settings) -> ServiceClient:
    """Returns a client of the service of the settings. Raises SettingsError where they do not say who asks."""
    if settings.service_url is None:
        raise SettingsError("KIT_SERVICE_URL is not set: it names the service that answers")
    if settings.tenant is None or settings.user is None:
        raise SettingsError(
            "the service of KIT_SERVICE_URL is told who asks: set KIT_TENANT and KIT_USER"
        )
    key = settings.variables.get("SKILL_SERVICE_KEY")
    return ServiceClient(
        settings.service_url,
        Principal(tenant_id=settings.tenant, user_id=settings.user),
        SecretStr(key) if key else None,
    )
