"""Calls an ASGI app in this process the way a socket would: bodies stream, timeouts hold, closing cancels."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

log = logging.getLogger("kit.tools")
_END = b""
"""No chunk is empty, so an empty one can end a body."""


class StreamingASGITransport(httpx.AsyncBaseTransport):
    """httpx.ASGITransport collects the whole response and ignores timeouts; this one does neither.

    Where the app is not `isolated`, it runs in its caller's context: what was set around a turn holds on the
    other side too.
    """

    def __init__(self, app: Any, *, isolated: bool = True):
        self._app: App = app
        self._isolated = isolated

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answers when the app sends its head. Raises ReadTimeout, and RemoteProtocolError for a body cut short."""
        await request.aread()
        # Mostly an empty context: what the caller has set is as far away as behind a socket.
        context = contextvars.Context() if self._isolated else contextvars.copy_context()
        exchange = _Exchange(self._app, request, context)
        try:
            status, headers = await exchange.head()
        except BaseException:
            await exchange.aclose()
            raise
        return httpx.Response(status, headers=headers, stream=exchange)


class _Exchange(httpx.AsyncByteStream):
    """One request and its response; owns the task the app runs in."""

    def __init__(self, app: App, request: httpx.Request, context: contextvars.Context):
        self._request = request
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._head: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._whole = asyncio.Event()
        self._is_request_read = False
        self._is_read = False
        running = self._run(app)
        self._task = asyncio.create_task(running, context=context)
        self._task.add_done_callback(self._finish)

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers, within the read timeout."""
        return await self._in_time(asyncio.shield(self._head))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._in_time(self._chunks.get()):
            yield chunk
        self._is_read = self._whole.is_set()
        if not self._is_read:
            raise httpx.RemoteProtocolError(
                "the service closed the connection before the body was complete"
            )

    async def aclose(self) -> None:
        """Ends the app's task: waits for one whose body was read to its end, cancels any other."""
        if not self._is_read:
            self._task.cancel()
        # `wait` and not the task itself, whose own end, cancelled or failed, is not the caller's.
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait([self._task])
            raise

    async def _in_time(self, waiting: Awaitable[T]) -> T:
        """Waits as long as the request's read timeout allows, and raises httpx's error for it."""
        seconds: float | None = self._request.extensions.get("timeout", {}).get("read")
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"nothing came within {seconds} s") from error

    def _finish(self, task: asyncio.Task[None]) -> None:
        """Does what a server does when its app returns: logs a fault, answers 500 if nothing was
        said, ends the body."""
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed", self._request.url.path, exc_info=error)
        if not self._head.done():
            self._head.set_result((500, [(b"content-type", b"text/plain; charset=utf-8")]))
            self._chunks.put_nowait(b"Internal Server Error")
            self._whole.set()
        self._chunks.put_nowait(_END)

    async def _run(self, app: App) -> None:
        await app(_scope(self._request), self._receive, self._send)

    async def _receive(self) -> Message:
        # An app that asks again waits for its client to leave, which a server says once it has answered.
        if self._is_request_read:
            await self._whole.wait()
            return {"type": "http.disconnect"}
        self._is_request_read = True
        return {"type": "http.request", "body": self._request.content, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._head.done():
            self._head.set_result((message["status"], list(message.get("headers", []))))
        elif message["type"] == "http.response.body":
            if message.get("body"):
                self._chunks.put_nowait(bytes(message["body"]))
            if not message.get("more_body", False):
                self._whole.set()
                self._chunks.put_nowait(_END)


def _scope(request: httpx.Request) -> Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
        "extensions": {},
    }
