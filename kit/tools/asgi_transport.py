"""Calls an ASGI app in this process the way a socket would: bodies stream, timeouts hold, closing cancels."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

log = logging.getLogger("kit.tools")
_LATE = {"pool": httpx.PoolTimeout, "write": httpx.WriteTimeout, "read": httpx.ReadTimeout}
_END = b""
"""No chunk is empty, so an empty one can end a body."""
_BUFFERED = 32
"""Chunks either side may run ahead of the other; a socket has such a buffer too."""


class StreamingASGITransport(httpx.AsyncBaseTransport):
    """httpx.ASGITransport collects the whole response and ignores timeouts; this one does neither.

    At most `connections` requests run at once; the others wait, at most the pool timeout. Where the
    app is not `isolated`, it runs in its caller's context: what was set around a turn holds on the
    other side too.
    """

    def __init__(self, app: Any, *, connections: int = 100, isolated: bool = True):
        self._app: App = app
        self._isolated = isolated
        self._slots = asyncio.Semaphore(connections)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answers when the app sends its head. Raises httpx timeouts, and RemoteProtocolError for a body cut short."""
        await _in_time(self._slots.acquire(), request, "pool")
        context = contextvars.Context() if self._isolated else contextvars.copy_context()
        exchange = _Exchange(self._app, request, self._slots.release, context)
        try:
            await exchange.write()
            status, headers = await exchange.head()
        except BaseException:
            await exchange.aclose()
            raise
        return httpx.Response(status, headers=headers, stream=exchange)


class _Exchange(httpx.AsyncByteStream):
    """One request and its response; owns the task the app runs in."""

    def __init__(
        self,
        app: App,
        request: httpx.Request,
        release: Callable[[], None],
        context: contextvars.Context,
    ):
        self._request = request
        self._release = release
        self._inward: asyncio.Queue[bytes] = asyncio.Queue(_BUFFERED)
        self._outward: asyncio.Queue[bytes] = asyncio.Queue(_BUFFERED)
        self._head: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._whole = asyncio.Event()
        self._sent_whole_request = False
        self._read_whole = False
        self._closed = False
        # Mostly an empty context: what the caller has set is as far away as behind a socket.
        running = self._run(app)
        self._task = asyncio.create_task(running, context=context)
        self._task.add_done_callback(self._finish)

    async def write(self) -> None:
        """Hands the request body over, as far as the app takes it."""
        assert isinstance(self._request.stream, httpx.AsyncByteStream)
        async for chunk in self._request.stream:
            if chunk and not self._task.done():
                await _in_time(self._inward.put(chunk), self._request, "write")
        if not self._task.done():
            await _in_time(self._inward.put(_END), self._request, "write")

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers, within the read timeout."""
        return await _in_time(asyncio.shield(self._head), self._request, "read")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not (self._task.done() and self._outward.empty()):
            chunk = await _in_time(self._outward.get(), self._request, "read")
            if chunk == _END:
                break
            yield chunk
        self._read_whole = self._whole.is_set()
        if not self._read_whole:
            raise httpx.RemoteProtocolError(
                "the service closed the connection before the body was complete"
            )

    async def aclose(self) -> None:
        """Ends the app's task: waits for one whose body was read to its end, cancels any other."""
        if self._closed:
            return
        self._closed = True
        if not self._read_whole:
            self._task.cancel()
        # `wait` and not the task itself, whose own end, cancelled or failed, is not the caller's.
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait([self._task])
            raise
        finally:
            self._release()

    def _finish(self, task: asyncio.Task[None]) -> None:
        """Does what a server does when its app returns: logs a fault, answers 500 if nothing was
        said, ends the body."""
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed", self._request.url.path, exc_info=error)
        if not self._head.done():
            self._head.set_result(
                (500, [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")])
            )
            self._outward.put_nowait(b"Internal Server Error")
            self._whole.set()
        # A full queue has a reader that will see that the task is done.
        if not self._outward.full():
            self._outward.put_nowait(_END)

    async def _run(self, app: App) -> None:
        await app(_scope(self._request), self._receive, self._send)

    async def _receive(self) -> Message:
        # An app that asks again waits for its client to leave, which a server says once it has answered.
        if self._sent_whole_request:
            await self._whole.wait()
            return {"type": "http.disconnect"}
        chunk = await self._inward.get()
        self._sent_whole_request = chunk == _END
        return {"type": "http.request", "body": chunk, "more_body": chunk != _END}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._head.done():
            self._head.set_result((message["status"], list(message.get("headers", []))))
        elif message["type"] == "http.response.body" and not self._whole.is_set():
            if message.get("body") and self._request.method != "HEAD":
                await self._outward.put(bytes(message["body"]))
            if not message.get("more_body", False):
                self._whole.set()
                await self._outward.put(_END)


async def _in_time(waiting: Awaitable[Any], request: httpx.Request, kind: str) -> Any:
    """Waits as long as the request's timeout of this kind allows, and raises httpx's error for it."""
    seconds: float | None = request.extensions.get("timeout", {}).get(kind)
    try:
        async with asyncio.timeout(seconds):
            return await waiting
    except TimeoutError as error:
        raise _LATE[kind](f"nothing came within {seconds} s") from error


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
