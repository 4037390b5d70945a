"""HTTP of which no more is read than an answer may need: of services and of agents behind A2A."""

from collections.abc import AsyncGenerator
from typing import cast

import httpx

from kit.bridges.part import BridgeFault, too_long

MOST_BYTES = 8_000_000
"""Bytes of one reply: an answer of the most characters, and what holds it."""


def bounded_client(seconds: float) -> httpx.AsyncClient:
    """Returns a client that waits so long, and raises BridgeFault for a reply without end."""
    return httpx.AsyncClient(
        timeout=httpx.Timeout(seconds),
        transport=BoundedTransport(),
        headers={"Accept-Encoding": "identity"},
    )


class BoundedTransport(httpx.AsyncHTTPTransport):
    """Raises BridgeFault for a reply that is too long, or packed: it could be a thousand times as long as what
    crosses."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise BridgeFault(
                "contract_violation", "a packed answer, where a plain one was asked for"
            )
        response.stream = _BoundedStream(cast("httpx.AsyncByteStream", response.stream))
        return response


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream):
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MOST_BYTES:
                raise too_long()
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
