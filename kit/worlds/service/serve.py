"""Serving an app over a socket, on an address that was free when it was taken."""

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from kit.core.errors import UpstreamError
from kit.core.extra import require

if TYPE_CHECKING:
    import uvicorn


def serve(app: ASGIApp, host: str, port: int) -> None:
    """Serves until interrupted. Raises UpstreamError when the address cannot be used."""
    with listen(host, port) as listening:
        _server(app).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises UpstreamError when it is taken or not allowed."""
    if ":" in host:
        family = socket.AF_INET6
    else:
        family = socket.AF_INET
    listening = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # asyncio replies at once where it sees TCP
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            reason = "is already taken"
        else:
            reason = f"cannot be used ({error.strerror or error})"
        raise UpstreamError(
            f"{host}:{port} {reason}: stop what uses it, or choose another with --port"
        ) from error
    return listening


@asynccontextmanager
async def serving(
    app: ASGIApp, host: str = "127.0.0.1", port: int = 0
) -> AsyncGenerator[str, None]:
    """Serves an app on the running loop; yields its URL and stops at the end."""
    with listen(host, port) as listening:
        server = _server(app)
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not running.done():
            await asyncio.sleep(0.005)
        try:
            yield f"http://{host}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


def _server(app: ASGIApp) -> "uvicorn.Server":
    require("serve", "uvicorn")
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app, lifespan="auto", ws="none", log_level="warning", timeout_graceful_shutdown=2
        )
    )
