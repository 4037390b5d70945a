"""A turn that a server runs, with the face of one that runs in this process."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

from pydantic import SecretStr

from kit.core.bodies.call import AgentEnded
from kit.core.bodies.turn import Completed, Routing, TurnUsage
from kit.core.context import Principal
from kit.core.errors import SettingsError
from kit.core.event import Event
from kit.core.outcome import Answer, Failure, Outcome, RoutedOutcome, RoutingDecision, Usage
from kit.core.transcript import transcript
from kit.runtime.handle import Reply
from kit.service.bodies import RunResult
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
        self.id = first.turn_id
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
        return reply_of(self.events, self._stream.result)

    def cancel(self) -> None:
        """Has the server stop the turn; it completes as `cancelled`."""
        # The loop holds a task weakly.
        self._stopping = asyncio.ensure_future(self._client.cancel_turn(self.id))


def reply_of(events: list[Event], result: RunResult) -> Reply:
    """Returns the reply that the events of a turn come to. Raises ServiceError for one that never ended."""
    outcome_of: dict[tuple[str, str], Outcome] = {}
    routing: RoutingDecision | None = None
    usage = Usage()
    end: Completed | None = None
    for event in events:
        match event.body:
            case AgentEnded(outcome=outcome):
                outcome_of[outcome.agent, outcome.call_id] = outcome
            case Routing(decision=decision):
                routing = decision
            case TurnUsage() as body:
                usage = body.usage
            case Completed() as body:
                end = body
            case _:
                pass
    if routing is None or end is None:
        raise ServiceUnavailable(0, f"the server ended before turn {result.turn_id} did")
    outcomes: list[Outcome] = []
    for line in routing.outcomes:
        # Parts of a monolith are its tools' work, and end without an event of their own.
        outcomes.append(outcome_of.get((line.agent, line.call_id)) or _outcome(line))
    lead = transcript(events).lead
    return Reply(
        turn_id=result.turn_id,
        status=end.status,
        text=result.response,
        preamble="" if lead.strip() == result.response.strip() else lead,
        outcomes=tuple(outcomes),
        routing=routing,
        usage=usage,
        events=tuple(events),
        saved=end.saved,
    )


def _outcome(line: RoutedOutcome) -> Outcome:
    if line.reason is None:
        return Answer(call_id=line.call_id, agent=line.agent, text="")
    axis = "data" if line.result == "data_error" else "invocation"
    return Failure(call_id=line.call_id, agent=line.agent, axis=axis, reason=line.reason)


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
