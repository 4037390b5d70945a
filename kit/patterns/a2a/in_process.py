"""The SDK's client and the SDK's server in one process: messages cross as objects, without HTTP and JSON between."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
from a2a.client import Client, ClientConfig
from a2a.client.base_client import BaseClient
from a2a.client.client import ClientCallContext
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import RequestHandler
from a2a.types import AgentCard, CancelTaskRequest, SendMessageRequest, StreamResponse, Task
from a2a.utils.errors import TaskNotFoundError
from a2a.utils.proto_utils import to_stream_response


class InProcessTransport(JsonRpcTransport):
    """What a turn asks of a peer goes straight to its handler; the rest of the protocol goes over
    `http`, as from anywhere.

    A hop over HTTP costs three times as much, nearly all of it in turning messages into bytes and
    back; what a message holds is the same (tests/patterns/test_a2a.py plays both ways).
    """

    def __init__(self, http: httpx.AsyncClient, peer: AgentCard, handler: RequestHandler):
        super().__init__(http, peer, peer.supported_interfaces[0].url, is_shared_httpx=True)
        self._handler = handler

    async def send_message_streaming(
        self, request: SendMessageRequest, *, context: ClientCallContext | None = None
    ) -> AsyncGenerator[StreamResponse]:
        """Updates of the task as the handler tells them; closing this stream is hanging up."""
        stream = self._handler.on_message_send_stream(request, _server_context(context))
        task = asyncio.current_task()
        stops = 0
        if task is not None:
            stops = task.cancelling()
        try:
            async for event in stream:
                yield to_stream_response(event)
        finally:
            await stream.aclose()
        if task is not None and task.cancelling() > stops:
            # the handler takes a caller that is stopped for one that hung up, and ends in peace
            raise asyncio.CancelledError

    async def cancel_task(
        self, request: CancelTaskRequest, *, context: ClientCallContext | None = None
    ) -> Task:
        """Raises what the handler raises, and TaskNotFoundError for a task nobody knows."""
        task = await self._handler.on_cancel_task(request, _server_context(context))
        if task is None:
            raise TaskNotFoundError
        return task


def in_process_client(http: httpx.AsyncClient, peer: AgentCard, handler: RequestHandler) -> Client:
    """A client of one peer in this process."""
    return BaseClient(
        peer, ClientConfig(streaming=True), InProcessTransport(http, peer, handler), []
    )


def _server_context(context: ClientCallContext | None) -> ServerCallContext:
    """What a server would know of a caller from the headers."""
    headers: dict[str, str] = {}
    if context is not None and context.service_parameters:
        headers.update(context.service_parameters)
    return ServerCallContext(state={"headers": headers})
