"""Clients of the embedded services, for the tool factories of the worlds: over a socket, or in this process."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kit.tools.tool_factory import ToolSetup

if TYPE_CHECKING:
    import httpx

URL = "KIT_UPSTREAM_URL"
"""Where `python -m kit.worlds` serves; unset, the services run in this process."""
KEY = "KIT_ENVELOPE_KEY"
"""The context service signs with it, and the tools refuse what is not signed so; unset, neither."""


@asynccontextmanager
async def open_client(
    setup: ToolSetup, service: str, app: Callable[[], object]
) -> AsyncGenerator["httpx.AsyncClient"]:
    """A client of one service. `app` makes the service that is called where none is served elsewhere."""
    import httpx

    from kit.tools.asgi_transport import StreamingASGITransport
    from kit.tools.faults import asking_for_faults

    if url := setup.environment.get(URL):
        client = httpx.AsyncClient(base_url=f"{url.rstrip('/')}/{service}", timeout=10)
    else:
        client = httpx.AsyncClient(
            transport=StreamingASGITransport(app()),
            base_url=f"http://{service}.internal",
            timeout=10,
        )
    if setup.faults:
        client.event_hooks = {"request": [asking_for_faults]}
    async with client:
        yield client
