"""An ASGI app behind a real socket of this machine, for a client in the same process: what crosses
takes what a wire takes."""

import asyncio
import contextvars
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from socket import socket

import httpx
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

_CONTEXT = "x-context"
"""Names the caller's context to the app: faults on purpose and what simulated models are told are
no part of the protocol."""


class LoopbackTransport(httpx.AsyncBaseTransport):
    """Sends requests over the socket that `listening` is; the server starts with the first one and
    ends with `aclose`."""

    def __init__(self, app: ASGIApp, listening: socket):
        self._app = app
        self._listening = listening
        self._contexts: dict[str, contextvars.Context] = {}
        self._numbers = count()
        self._wire = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100)
        )
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_level="warning",
            proxy_headers=False,
        )
        self._server = _Server(config)
        self._running: asyncio.Task[None] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answers when the app sends its head. Raises what httpx raises of a connection."""
        if self._running is None:
            self._running = asyncio.create_task(
                self._server.serve([self._listening]), context=contextvars.Context()
            )
        name = str(next(self._numbers))
        self._contexts[name] = contextvars.copy_context()
        request.headers[_CONTEXT] = name
        try:
            return await self._wire.handle_async_request(request)
        finally:
            self._contexts.pop(name, None)  # of a call that was hung up before the app heard of it

    async def aclose(self) -> None:
        """Closes the connections and ends the server."""
        await self._wire.aclose()
        self._server.should_exit = True
        if self._running is not None:
            await self._running
        self._listening.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the app as its caller would; for anybody else who finds the socket, in a context of its own."""
        name = dict(scope["headers"]).get(_CONTEXT.encode(), b"").decode()
        await asyncio.create_task(
            _run(self._app, scope, receive, send), context=self._contexts.pop(name, None)
        )


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves the signals to the process, which does more than serve."""
        yield


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)
