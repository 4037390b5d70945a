"""In this process an app streams, times out and is left exactly as it is behind a socket."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from kit.tools.asgi_transport import StreamingASGITransport
from kit.worlds.service.serve import serving
from tests.kits import nothing_runs

DELAYS = (0.05, 0.05, 0.2)
left: list[str] = []


async def chunks() -> AsyncIterator[bytes]:
    try:
        for number, delay in enumerate(DELAYS):
            await asyncio.sleep(delay)
            yield f"{number}\n".encode()
    except asyncio.CancelledError:
        left.append("cancelled")
        raise
    left.append("finished")


async def stream(_: Request) -> StreamingResponse:
    return StreamingResponse(chunks())


async def slow(_: Request) -> PlainTextResponse:
    try:
        await asyncio.sleep(0.2)
    except asyncio.CancelledError:
        left.append("cancelled")
        raise
    return PlainTextResponse("late")


async def echo(request: Request) -> JSONResponse:
    body = await request.body()
    return JSONResponse(
        {"size": len(body), "header": request.headers.get("x-mark"), "query": request.url.query}
    )


async def broken(_: Request) -> PlainTextResponse:
    raise ValueError("the app's own secret")


async def cut(_: Request) -> StreamingResponse:
    async def half() -> AsyncIterator[bytes]:
        yield b"half"
        await asyncio.sleep(0.01)
        raise ValueError("in the middle")

    return StreamingResponse(half())


APP = Starlette(
    routes=[
        Route("/stream", stream),
        Route("/slow", slow, methods=["GET", "POST"]),
        Route("/echo", echo, methods=["POST"]),
        Route("/broken", broken),
        Route("/cut", cut),
    ]
)


def inside(**options: object) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=StreamingASGITransport(APP),
        base_url="http://app.internal",
        **options,  # type: ignore
    )


async def outcome(client: httpx.AsyncClient, path: str, read: float) -> str:
    """The body, or the name of what was raised."""
    try:
        return (await client.get(path, timeout=httpx.Timeout(1, read=read))).text
    except httpx.HTTPError as error:
        return type(error).__name__


TIMEOUTS = [
    ("/slow", 0.1, "ReadTimeout"),
    ("/slow", 1.0, "late"),
    ("/stream", 0.12, "ReadTimeout"),
    ("/stream", 1.0, "0\n1\n2\n"),
]


@pytest.mark.realtime
async def test_timeouts_and_failures_are_equal_over_a_socket():
    cases = [
        *TIMEOUTS,
        ("/broken", 1.0, "Internal Server Error"),
        ("/cut", 1.0, "RemoteProtocolError"),
    ]
    async with inside() as client:
        here = [await outcome(client, path, read) for path, read, _ in cases]
    assert nothing_runs()
    async with serving(APP) as url, httpx.AsyncClient(base_url=url) as client:
        there = [await outcome(client, path, read) for path, read, _ in cases]
    assert here == there == [expected for *_, expected in cases]


async def test_closing_early_cancels_the_app():
    left.clear()
    async with inside() as client:
        async with client.stream("GET", "/stream") as response:
            async for _ in response.aiter_bytes():
                break
        assert left == ["cancelled"]
    await asyncio.sleep(0)
    assert nothing_runs()


async def test_cancelling_the_caller_cancels_the_app():
    left.clear()
    async with inside() as client:
        asking = asyncio.create_task(client.get("/slow"))
        await asyncio.sleep(0.1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert left == ["cancelled"]
    assert nothing_runs()
