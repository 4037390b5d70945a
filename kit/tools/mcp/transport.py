"""How messages reach an MCP server and come back: a process of its own, or HTTP. A message over the
limit is cut off here."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, jsonrpc_message_adapter

from kit.core.schema.json_value import is_list

GRACE = 1.0
"""Seconds a server has to end once its input is closed, and again once it is asked to by a signal."""
MOST_ITEMS = 1_000
"""Items of a list in a message's result, such as the parts of an answer: the SDK makes an object of each."""
LAST_WORDS = 2_000
"""Bytes kept of what a server writes to its standard error."""
Inward: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Streams: TypeAlias = tuple[Any, Any]
"""What the SDK calls a transport's streams: to read messages from, to write messages to."""


class TooLarge(Exception):
    """A message of a server that is longer than it may be."""


@dataclass
class Wire:
    """What happens to a connection beside its messages."""

    most_bytes: int
    cut: str = ""
    """Why a message was cut off; empty where none was."""
    unauthorized: bool = False
    """A request was answered 401."""
    last_words: bytes = b""
    """The end of what the server wrote to its standard error."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the connection has ended, or has to be looked at."""
    over: bool = False

    def end(self) -> None:
        """Says that no further message will come."""
        self.over = True
        self.news.set()

    def too_large(self, why: str = "") -> TooLarge:
        """Notes that a message was cut off, and why; returns what to raise."""
        self.cut = why or f"a message of more than {self.most_bytes:,} bytes was cut off"
        return TooLarge(self.cut)


class _WithinLimits(ObjectReceiveStream[SessionMessage | Exception]):
    """The messages of a server, up to one whose result has too many items: the connection ends there."""

    def __init__(self, messages: Any, wire: Wire):
        self._messages = messages
        self._wire = wire

    async def receive(self) -> SessionMessage | Exception:
        message: SessionMessage | Exception = await self._messages.receive()
        if isinstance(message, Exception) or not isinstance(message.message, JSONRPCResponse):
            return message
        for name, value in message.message.result.items():
            if not is_list(value):
                continue
            count = len(value)
            if count > MOST_ITEMS:
                self._wire.too_large(
                    f"{name!r} of a result has {count:,} items; at most {MOST_ITEMS:,} are read"
                )
                self._wire.end()
                raise anyio.EndOfStream
        return message

    async def aclose(self) -> None:
        await self._messages.aclose()


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], wire: Wire
) -> AsyncGenerator[Streams]:
    """Runs a server as a process group of its own, and ends all of it. Raises OSError where it cannot be started."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # A group of its own: a server that has children of its own is ended with all of them.
        start_new_session=True,
        limit=wire.most_bytes,
    )
    inward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, inward, wire)),
        asyncio.create_task(_write(process, outward, wire)),
        asyncio.create_task(_overhear(process, wire)),
    ]
    try:
        yield _WithinLimits(messages, wire), answers
    finally:
        try:
            with anyio.CancelScope(shield=True):
                await _stop(process, tasks)
        finally:
            _signal(process, signal.SIGKILL)
            for stream in (inward, messages, answers, outward):
                stream.close()


async def _stop(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Closes its input, asks it to end, kills it and its children; waits for each no longer than it may take."""
    assert process.stdin is not None
    process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            _signal(process, number)
        else:
            break
    # The server itself has ended; its children may have not.
    _signal(process, signal.SIGKILL)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # asyncio closes the pipes only where they are read to their end, and warns of any other.
    cast("Any", process)._transport.close()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Sends a signal to the process and its children, if there is anybody left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _read(process: asyncio.subprocess.Process, inward: Inward, wire: Wire) -> None:
    """Hands on each line that is a message; whatever else a server prints is passed over."""
    assert process.stdout is not None
    try:
        async with inward:
            while line := await _line(process.stdout, wire):
                try:
                    message = _message(line)
                except (ValueError, RecursionError) as error:
                    if _is_too_deep(line, error):
                        raise wire.too_large("a message is nested too deep to be read") from error
                    continue
                await inward.send(message)
    except (TooLarge, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    finally:
        wire.end()


def _is_too_deep(line: bytes, error: Exception) -> bool:
    """Whether a line that could not be read begins as a message does, and is nested too deep to be read."""
    return line.lstrip().startswith(b"{") and "recursion" in str(error).lower()


def _message(line: bytes) -> SessionMessage:
    """Reads a message. Raises ValueError or RecursionError for what is none."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        # Half of an emoji is no JSON, and what a program leaves that cuts a text by its length.
        value = json.loads(line.decode(errors="replace"))
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))


async def _line(stream: asyncio.StreamReader, wire: Wire) -> bytes:
    try:
        return await stream.readline()
    except ValueError:
        # asyncio's word for a line over the limit.
        raise wire.too_large() from None


async def _write(
    process: asyncio.subprocess.Process,
    outward: MemoryObjectReceiveStream[SessionMessage],
    wire: Wire,
) -> None:
    """Sends each message as a line. Where that fails the connection has ended: a server may go on without listening."""
    assert process.stdin is not None
    try:
        async for message in outward:
            process.stdin.write(
                message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            )
            await process.stdin.drain()
    except OSError:
        pass
    finally:
        wire.end()


async def _overhear(process: asyncio.subprocess.Process, wire: Wire) -> None:
    """Reads what a server writes to its standard error, so that it never waits for a reader."""
    assert process.stderr is not None
    while words := await process.stderr.read(65_536):
        wire.last_words = (wire.last_words + words)[-LAST_WORDS:]


@asynccontextmanager
async def http_transport(
    url: str, headers: Mapping[str, str], wire: Wire
) -> AsyncGenerator[Streams]:
    """Calls a server at a URL. A redirect to another origin is not followed."""
    async with (
        _http_client(headers, wire, None) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=wire.most_bytes) as (
            messages,
            answers,
        ),
    ):
        yield _WithinLimits(messages, wire), answers


async def post(
    url: str, headers: Mapping[str, str], body: Any, most_bytes: int
) -> tuple[int, bytes]:
    """Posts JSON; returns the status and the body of the reply. Raises TimeoutError, TooLarge, or ConnectionError."""
    try:
        async with _http_client(headers, Wire(most_bytes), 30.0) as client:
            reply = await client.post(url, json=body)
            return reply.status_code, reply.content
    except httpx2.TimeoutException as error:
        raise TimeoutError(str(error)) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ConnectionError(str(error)) from error


_certificates = cache(httpx2.create_ssl_context)
"""Read once for a process: that takes 20 ms, and each step of a plan has connections of its own."""


def _http_client(headers: Mapping[str, str], wire: Wire, read: float | None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        transport=_Limited(wire),
        timeout=httpx2.Timeout(30.0, read=read),
    )


class _Limited(httpx2.AsyncHTTPTransport):
    """HTTP whose replies are cut off at the limit; a compressed one is refused, as its size says nothing."""

    def __init__(self, wire: Wire):
        super().__init__(verify=_certificates())
        self._wire = wire

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.status_code == 401:
            self._wire.unauthorized = True
            self._wire.end()
        # The server has forgotten the session: it was started anew, say.
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            self._wire.end()
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise self._wire.too_large(
                "it answered compressed, which was not asked for, and says nothing of the size"
            )
        # A stream of events has no end of its own; the SDK bounds each event of it.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _LimitedStream(
                cast("httpx2.AsyncByteStream", response.stream), self._wire
            )
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, wire: Wire):
        self._stream = stream
        self._wire = wire

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._wire.most_bytes:
                raise self._wire.too_large()
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
